"""From batches to policies."""
