"""Configuration → one run: a folder that any process can resume."""
