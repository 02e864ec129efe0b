"""Several models on the same rows, and two samples."""
