"""Packs, folders, peers: how events reach other replicas."""
