"""Statistics of rows that several metrics share; each is cached per batch of rows."""
