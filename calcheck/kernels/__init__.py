"""Kernels on inputs and targets, their bandwidths and scaling."""
