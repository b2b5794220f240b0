"""Makes chance repeatable: what the program draws from the operating system comes from the seed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random


@contextmanager
def seeded(random: Random) -> Iterator[None]:
    """Have ``os.urandom`` draw from a seeded source of its own while this lasts."""
    source = Random(random.getrandbits(64))
    before = os.urandom
    os.urandom = source.randbytes
    try:
        yield
    finally:
        os.urandom = before
