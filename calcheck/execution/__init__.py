"""Execution of computations: array libraries, devices, memory, random streams, batches and progress."""
