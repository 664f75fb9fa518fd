"""Pictures and videos of robots."""
