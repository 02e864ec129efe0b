"""Builders: each makes the document, and the plot if it has one, of one kind of report."""
