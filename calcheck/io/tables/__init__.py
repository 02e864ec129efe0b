"""Readers of tables, one format a file."""
