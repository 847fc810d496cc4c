"""The commands. The function ``main(args=None)`` of each module returns its
exit status."""
