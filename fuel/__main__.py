"""The command ``fuel`` as ``python -m fuel``, where no script is installed."""
import sys

from fuel.bin.fuel_main import main

if __name__ == '__main__':
    sys.exit(main())
