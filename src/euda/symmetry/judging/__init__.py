"""Is a symmetry true? The simulator is run from states and from their images, and the outcomes are compared."""
