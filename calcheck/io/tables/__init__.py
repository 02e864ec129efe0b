"""Table readers, one module per format."""
