"""Quantities of rows that several metrics share; each is computed once for a batch of rows."""
