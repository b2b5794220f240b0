"""The daemon: answers hooks and ingests, on demand."""
