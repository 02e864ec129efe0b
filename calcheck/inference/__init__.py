"""Statistical inference: bootstrap, confidence intervals, null distributions, p-values and verdicts."""
