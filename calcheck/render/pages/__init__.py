"""Pages of reports for a browser: sections, pictures, maps to explore, and data."""
