"""Rows that depend on each other: clusters and series, block lengths, design effects."""
