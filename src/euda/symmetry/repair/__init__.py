"""What differs between a part and its image, and models in which it does not."""
