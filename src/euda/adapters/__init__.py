"""Euclidean augmentation in other people's training loops."""
