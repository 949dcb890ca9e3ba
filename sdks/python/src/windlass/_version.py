"""The version of the package; the server has its own."""

__version__ = "0.1.0"
