"""Withholding of uncertain predictions."""
