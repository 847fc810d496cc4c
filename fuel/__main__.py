"""Run the command ``fuel`` as ``python -m fuel``, without its script."""
import sys

from fuel.bin.fuel_main import main

if __name__ == '__main__':
    sys.exit(main())
