"""What the packaged app begins with."""

import sys
from multiprocessing import freeze_support

if __name__ == "__main__":
    freeze_support()  # ends here in processes that multiprocessing starts: keep it before everything else
    from racer_viewer.runtime import prepare, run_as_python

    prepare()
    if not run_as_python(sys.argv[1:]):
        from racer_viewer.cli import main

        sys.exit(main())
