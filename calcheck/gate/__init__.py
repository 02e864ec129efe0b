"""Rules that the results of a report must satisfy. This package reads no files."""
