"""Reading the batches of a server."""
