"""How often intervals contain the value of a right model."""
