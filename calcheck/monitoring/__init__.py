"""Calibration over time: e-processes of PIT values, windows of time, and what is kept of the times so far."""
