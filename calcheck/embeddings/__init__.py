"""Kernel conditional mean embeddings: ridge regression on inputs, features of targets, tests of their distance."""
