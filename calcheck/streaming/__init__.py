"""Streaming: accumulators that compute metrics in batches, their states, and inference from sums."""
