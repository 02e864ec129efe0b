"""Two samples of inputs and targets, whose inputs may differ."""
