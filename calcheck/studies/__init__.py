"""Studies from the papers: how metrics change with models, rows, criteria and settings."""
