"""Tests of the room recall."""
