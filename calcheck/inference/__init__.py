"""How far a value can be trusted: the bootstrap, intervals, and distances from a reference."""
