"""Storage of states, checkpoints, reports and predictions, with atomic writes."""
