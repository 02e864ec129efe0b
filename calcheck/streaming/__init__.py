"""Metrics of rows read batch by batch: accumulators, their states, and what follows from them."""
