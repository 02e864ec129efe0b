"""Kernels, low-rank output features, and kernel ridge regression: the engine of the conditional metrics."""
