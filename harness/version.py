"""The version of this package; the build reads it here, too."""

VERSION = "0.1.0"
