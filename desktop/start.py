"""Entry point of the packaged app."""

import sys
from multiprocessing import freeze_support

if __name__ == "__main__":
    freeze_support()  # must come first: child processes of multiprocessing do not return from it
    from racer_viewer.runtime import prepare, run_as_python

    prepare()
    if not run_as_python(sys.argv[1:]):
        from racer_viewer.cli import main

        sys.exit(main())
