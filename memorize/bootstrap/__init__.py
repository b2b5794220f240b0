"""The composition root: puts the rooms together once and hands them to verbs and daemon as ``App``.

Nothing below this room reads the environment, and nothing above it knows how the parts are wired.
"""

from memorize.bootstrap.app import App, open_app

__all__ = ["App", "open_app"]
