"""The symmetries of a robot, tested in the simulator."""
