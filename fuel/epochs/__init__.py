"""One pass over a stream: its position, its state, how it reads."""
