"""`python -m harness`: the command line."""

import sys

from harness.cli import main

if __name__ == "__main__":
    if not sys.flags.safe_path:
        # The current folder, which Python puts there: no place for modules, nor one that candidates may read.
        del sys.path[0]
    sys.exit(main())
