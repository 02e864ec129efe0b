"""Thresholds of the conclusion."""

CLEAR_P = 0.01  # Maximum p-value of the details that support a clear failure
CLEAR_ERRORS = 3.0  # Minimum difference in standard errors, for the kind of a fault
SUSPECT_ERRORS = 2.5  # Minimum difference in standard errors, for a single share
LARGE_SHIFT, SMALL_SHIFT = 0.3, 0.1  # Biases, relative to the typical error, that hide the shape, and that hide nothing
EVEN = 0.05  # Maximum relative spread of uncertainties that are equal in practice
