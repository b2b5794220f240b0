"""The SQLite projection of the log, with full text. Derived: it may be deleted at any time and is built again."""
