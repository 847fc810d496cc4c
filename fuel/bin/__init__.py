"""The commands: each module has ``main(args=None)``, the exit status."""
