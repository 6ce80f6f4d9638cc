"""Entry point of `python -m racer_viewer`."""

import sys

from racer_viewer.cli import main

if __name__ == "__main__":
    sys.exit(main())
