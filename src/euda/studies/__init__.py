"""Study file → many runs."""
