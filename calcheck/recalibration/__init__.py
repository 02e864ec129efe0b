"""Corrections of predictive distributions that are fitted to targets: steps, methods, and the choice among them."""
