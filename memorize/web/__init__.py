"""The viewer."""
