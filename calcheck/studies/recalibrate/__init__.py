"""Recalibration, judged on rows that were not fitted."""
