"""The command line: options in, one call, print."""
