"""Regions of the rows, fixed by inputs alone: bins of columns, groups, and rectangles."""
