#!/usr/bin/env python3
"""Evaluate kernel candidates: `python run_eval.py --help`."""

import sys

from harness.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
