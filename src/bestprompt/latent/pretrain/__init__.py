"""How the shipped weights were made: grammar, sampled instructions, objective and training loop."""
