"""What stores results: states, checkpoints, stored reports and predictions, written atomically."""
