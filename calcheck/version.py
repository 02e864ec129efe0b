"""The version, in a file of its own: the package and its modules both name it."""

__version__ = "0.1.0"
