"""Share the items of a pipeline among ranks."""
