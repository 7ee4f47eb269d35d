"""Where each command begins: `python -m harness`, `python run_eval.py` and `assay`."""

import sys


def main() -> int:
    """The exit code of the command line."""
    try:
        # Takes a tenth of a second, in which Ctrl-C may come as at any other moment.
        from harness.cli import main as command

        return command()
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    if not sys.flags.safe_path:
        # The current folder, which Python puts there: no place for modules, nor one that candidates may read.
        del sys.path[0]
    sys.exit(main())
