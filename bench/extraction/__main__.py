"""Precision and recall of an extractor on hand-written dialogues: ``python -m bench.extraction [--extractor codex]``.

A model is asked as consolidation asks it, by the program that is logged in on this machine, and costs what it costs:
one call a dialogue.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

from bench.extraction import dialogues, run
from bench.extraction.score import total
from bench.timing import conditions, say, show
from memorize.clock import SystemClock
from memorize.config import parse
from memorize.consolidate.login import Extractors
from memorize.consolidate.port import Model
from memorize.paths import Home


def model_of(name: str, chosen: str) -> Model:
    """Return the extractor of this name as this machine has it; leaves with a sentence when it cannot answer."""
    config = parse("", "config.toml")._replace(extractor=name, model=chosen)
    with tempfile.TemporaryDirectory(prefix="mz") as folder:
        choice = Extractors(Home(Path(folder)), config, os.environ, SystemClock()).choose(fresh=True)
    if choice.model is None:
        raise SystemExit(f"{name} cannot be asked: {choice.why}")
    return choice.model


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.extraction", description=__doc__)
    parser.add_argument("--extractor", choices=["rules", "claude", "codex"], default="rules")
    parser.add_argument("--model", default="", help="the model to ask for; by default what the program chooses")
    parser.add_argument("--part", choices=[dialogues.KNOWN, dialogues.UNSEEN], action="append", default=[])
    parser.add_argument("--list", action="store_true", help="tell what was missed and what was wrong")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    before = conditions()
    chosen = dialogues.dialogues(*options.part)
    if options.extractor == "rules":
        made = run.by_rules(chosen)
    else:
        made = run.by_model(chosen, model_of(options.extractor, options.model), say)
    show("extraction", run.rows(made), before, options.json)
    everything = total([score for _, score in made.scores])
    for line in made.failed:
        say(f"failed: {line}")
    for why, count in sorted(made.judged.items()):
        say(f"{why}: {count}")
    if made.tokens:
        say(f"{made.tokens} tokens, {made.cost_usd_micro / 1e6:.2f} USD as far as the program tells")
    for mark, texts in (("missed", everything.missed), ("wrong", everything.wrong)) if options.list else ():
        for text in texts:
            say(f"{mark}: {text}")


if __name__ == "__main__":
    main()
