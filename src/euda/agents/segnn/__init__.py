"""The steerable equivariant network."""
