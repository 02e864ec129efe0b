"""Rules on reports."""
