"""Metrics of groups of rows, and the search for regions."""
