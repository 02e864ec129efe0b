"""Where and how computations run: arrays, devices, memory, randomness, progress."""
