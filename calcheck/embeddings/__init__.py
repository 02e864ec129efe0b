"""Conditional mean embeddings: kernel ridge regression on inputs, features of targets, distances and tests."""
