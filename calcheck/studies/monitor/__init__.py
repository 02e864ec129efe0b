"""Monitoring of a model by tests that are valid at any time."""
