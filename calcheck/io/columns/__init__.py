"""Columns and their roles: options, names that tools write, parameters of families, arrays."""
