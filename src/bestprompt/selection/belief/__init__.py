"""What is known of the candidates' scores, of the items and of the noise."""
