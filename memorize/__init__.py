"""One memory for a person's coding agents."""

__version__ = "0.1.0"
