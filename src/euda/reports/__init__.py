"""Metrics of runs → tables, figures, one HTML page."""
