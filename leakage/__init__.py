"""Gradient Leakage Explorer: see what a gradient gives away."""
