"""Pipelines of which several ranks share the order."""
