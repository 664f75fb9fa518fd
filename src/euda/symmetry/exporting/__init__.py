"""Symmetries as files for other trainers, which work without euda."""
