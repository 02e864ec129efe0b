"""Plausible causes of wrong uncertainties, such as a variance that is read as a standard deviation."""
