"""Comparison of models, trends, and changes between reports."""
