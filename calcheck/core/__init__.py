"""What every room uses: text, checks, lazy values, descriptions of metrics."""
