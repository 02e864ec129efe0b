"""Joint, average and conditional maximum mean discrepancies, and the Fréchet distance."""
