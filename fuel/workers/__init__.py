"""Batches made in other processes of this host."""
