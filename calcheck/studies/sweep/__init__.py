"""A metric over its settings."""
