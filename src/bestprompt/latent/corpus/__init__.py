"""What the autoencoder was trained on and still draws from at run time: a grammar of instructions, and sampled ones."""
