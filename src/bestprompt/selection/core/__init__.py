"""What all of selection rests on: observations and their order, settings, the warm-up, and the contracts."""
