"""Observations become memories: windows, extractors, claims."""
