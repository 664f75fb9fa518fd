"""euda: reinforcement learning that exploits Euclidean symmetry in state-based continuous control."""
