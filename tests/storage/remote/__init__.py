"""Remote files."""
