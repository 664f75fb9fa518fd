"""From transitions to augmented batches."""
