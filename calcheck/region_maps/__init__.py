"""Slices: groups of rows, and regions of the inputs, with what a right model would show in each."""
