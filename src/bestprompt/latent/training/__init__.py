"""How the shipped weights and their corpus were made; nothing here is used at run time."""
