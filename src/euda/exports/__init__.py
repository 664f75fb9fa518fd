"""A run's policy as a file that other programs run without euda."""
