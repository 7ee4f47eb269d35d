# {kind: fault, row: load, status: crashed, reason: "exit:3", twin: honest}
"""Ends its process while it is being imported."""

import os

os._exit(3)
