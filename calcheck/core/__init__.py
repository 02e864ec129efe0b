"""What every room uses: the version, text, checks, memory, descriptions of metrics."""

__version__ = "0.1.0"
