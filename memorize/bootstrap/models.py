"""The models of one state directory: which one is at work, what it may cost, and what failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from memorize.bootstrap.store import Store
from memorize.consolidate.attempts import Attempts
from memorize.consolidate.login import Extractors
from memorize.consolidate.meter import MeterFile
from memorize.consolidate.spend import Caps, Meter


class Models(NamedTuple):
    """What decides over a call before it is made, and keeps what came of it."""

    extractors: Extractors
    meter: Meter
    attempts: Attempts


def models(store: Store, environ: Mapping[str, str]) -> Models:
    """Put them together; nothing is read yet."""
    config, file = store.config, MeterFile(store.home.meter)
    return Models(
        Extractors(store.home, config, environ, store.clock),
        Meter(file, store.clock, Caps(config.calls_per_day, config.tokens_per_day)),
        Attempts(file, store.clock),
    )
