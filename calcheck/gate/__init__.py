"""Rules on results: what must not be. Knows no files."""
