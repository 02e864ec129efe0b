"""The version of calcheck, in its own module to avoid circular imports."""

__version__ = "0.1.0"
