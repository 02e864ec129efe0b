"""Builders: each makes the document of one kind of report."""
