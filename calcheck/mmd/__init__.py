"""Maximum mean discrepancies: joint, average and conditional, and the Fréchet distance."""
