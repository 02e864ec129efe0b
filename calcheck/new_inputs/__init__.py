"""What is known about the uncertainties at new inputs, of which targets are not known yet."""
