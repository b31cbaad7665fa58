"""Tidegate among the real programs it is made for."""
