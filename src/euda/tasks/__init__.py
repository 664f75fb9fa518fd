"""Robot → environment: rows, resets, rewards, and what steps MuJoCo."""
