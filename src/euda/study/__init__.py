"""From policies to runs, studies and reports."""
