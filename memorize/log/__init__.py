"""The append-only log: the only room that writes the bytes of events."""
