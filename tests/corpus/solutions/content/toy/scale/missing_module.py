# {kind: fault, row: load, status: unsupported, reason: "missing_module:a_package_that_nobody_has", twin: honest}
"""Needs a package that nobody has."""

import a_package_that_nobody_has  # noqa: F401
