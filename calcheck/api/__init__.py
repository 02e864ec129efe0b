"""The functions for Python and notebooks."""
