"""Run an extractor over the dialogues: the rules, or a model through the same prompt and reader as in earnest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from bench.extraction.dialogues import KNOWN, UNSEEN, Dialogue
from bench.extraction.score import Score, score, total
from bench.timing import Row
from memorize.consolidate import answer, prompt, rules
from memorize.consolidate.port import Model, ModelFailed, Request
from memorize.consolidate.windows import Found

PART_TOKENS = 16_000
DEADLINE_S = 180.0


class Run(NamedTuple):
    """What an extractor made of the dialogues. ``judged`` counts items dropped and mended, ``failed`` calls."""

    scores: list[tuple[Dialogue, Score]]
    judged: Counter[str]
    failed: list[str]
    tokens: int = 0
    cost_usd_micro: int = 0


def by_rules(chosen: Sequence[Dialogue]) -> Run:
    """Extract without a model."""
    return Run([(one, score(one, rules.extract(one.window()))) for one in chosen], Counter(), [])


def by_model(chosen: Sequence[Dialogue], model: Model, told: Callable[[str], None] = lambda _: None) -> Run:
    """Ask a model about every dialogue. A call that fails leaves its dialogue empty and is named."""
    run = Run([], Counter(), [])
    for number, dialogue in enumerate(chosen, 1):
        told(f"{number}/{len(chosen)} {dialogue.name}")
        found: list[Found] = []
        for part in prompt.build(dialogue.window(), (), PART_TOKENS):
            request = Request(part.system, part.text, answer.SCHEMA, "extract", DEADLINE_S)
            try:
                reply = model.ask(request)
                run = run._replace(
                    tokens=run.tokens + reply.tokens_in + reply.tokens_out,
                    cost_usd_micro=run.cost_usd_micro + (reply.cost_usd_micro or 0),
                )
                read = answer.read(reply.text, part)
            except (ModelFailed, answer.NoAnswer) as failure:
                run.failed.append(f"{dialogue.name}: {failure}")
                continue
            found += read.found
            run.judged.update({f"dropped: {why}": count for why, count in read.dropped.items()})
            run.judged.update({f"mended: {why}": count for why, count in read.mended.items()})
        run.scores.append((dialogue, score(dialogue, found)))
    return run


def rows(run: Run) -> list[Row]:
    """Return one row a part of the dialogues, one a language, and one for all."""
    groups = [(part, [made for one, made in run.scores if one.part == part]) for part in (KNOWN, UNSEEN)]
    languages = dict.fromkeys(one.language for one, _ in run.scores)
    groups += [(name, [made for one, made in run.scores if one.language == name]) for name in languages]
    groups.append(("all", [made for _, made in run.scores]))
    return [_row(name, scores) for name, scores in groups if scores]


def _row(name: str, scores: Sequence[Score]) -> Row:
    all_of = total(scores)
    return {
        "dialogues": name,
        "n": len(scores),
        "precision": round(all_of.precision, 3),
        "recall": round(all_of.recall, 3),
        "right": all_of.right,
        "stale": all_of.stale,
        "wrong": all_of.extra,
        "wanted": all_of.wanted,
        "updates": f"{all_of.updated}/{all_of.updates}",
        "clean": f"{all_of.clean}/{all_of.poisoned}",
        "aside": all_of.aside,
    }
