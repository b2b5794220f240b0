"""The rules on dialogues they never saw, and the way through a model on all of them, with a scripted one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bench.extraction.dialogues import KNOWN, UNSEEN, Dialogue, dialogues
from bench.extraction.run import by_model, by_rules
from bench.extraction.score import Score, score, total
from memorize.consolidate.port import ModelFailed, Reply, Request
from memorize.consolidate.windows import Found
from tests.counts import note

ROOT = Path(__file__).resolve().parent.parent.parent
PRECISION_MIN = 0.9
# Below what is measured (bench/extraction/README.md), to notice when the rules find less than they did.
RECALL_MIN = 0.8

pytestmark = pytest.mark.skipif(os.environ.get("MEMORIZE_TEST_WHEEL") == "1", reason="benchmarks are the checkout's")


class Scripted:
    """A model that quotes the record: what the labels ask for, and all that it must not, in a noisy wrapping."""

    name = "scripted"

    def __init__(self, chosen: list[Dialogue]) -> None:
        self._left = list(chosen)
        self.asked: list[Request] = []

    def ask(self, request: Request) -> Reply:
        self.asked.append(request)
        dialogue = self._left.pop(0)
        record = request.prompt.split("<record>\n", 1)[1].split("\n</record>", 1)[0]
        turns = [json.loads(line) for line in record.splitlines()]
        items: list[Any] = [{"kind": "opinion", "text": "Nothing of note."}, 7, {"kind": "fact"}]
        for kinds, *words in dialogue.want:
            made_up = self._item(kinds.split("|")[0], " ".join(word.split("|")[0] for word in words), turns[0]["n"])
            items.append(self._quoting(turns, words, kinds.split("|")[0]) or made_up)
        for turn in turns:
            if turn["who"] == "tool":
                items.append(self._item("rule", turn["text"][:500], turn["n"]))
                items.append(self._item("preference", turn["text"][:500], turns[0]["n"]))
        for words in dialogue.never:
            items += [quoted] if (quoted := self._quoting(turns, words, "fact")) else []
        text = json.dumps({"memories": items}, ensure_ascii=False)
        wrapped = f"As [1] and [2] show:\n\n```json\n{text}\n```\n\n[1] the record"
        return Reply(wrapped, 900, 100, 1_000, "scripted-1", 0.1)

    @staticmethod
    def _item(kind: str, text: str, number: int) -> dict[str, Any]:
        return {"kind": kind, "text": text, "importance": 10, "sources": [number], "scope": "project"}

    def _quoting(self, turns: list[dict[str, Any]], words: Sequence[str], kind: str) -> dict[str, Any] | None:
        """Return an item that quotes the last line with these words; None when there is none."""
        for turn in reversed(turns):
            folded = " ".join(turn["text"].casefold().split())
            if all(any(one in folded for one in word.split("|")) for word in words):
                return self._item(kind, turn["text"], turn["n"])
        return None


def test_there_are_thirty_dialogues_and_ten_of_them_unseen_in_three_languages_with_every_trouble() -> None:
    chosen = dialogues()
    assert len(chosen) >= 30
    assert len(dialogues(UNSEEN)) == 10
    assert len({one.name for one in chosen}) == len(chosen)
    for part in (KNOWN, UNSEEN):
        mine = dialogues(part)
        assert {one.language for one in mine} == {"en", "ko", "mixed"}
        assert any(one.stale for one in mine)
        assert any(one.never for one in mine)
        assert any(not one.want for one in mine)
        assert any(turn[0] == "web" for one in mine for turn in one.turns)


@pytest.mark.parametrize("part", [KNOWN, UNSEEN])
def test_what_the_rules_extract_is_right_nine_times_in_ten(part: str) -> None:
    made = total([one for _, one in by_rules(dialogues(part)).scores])
    note(f"rules on {part} dialogues: precision {made.precision:.3f}, recall {made.recall:.3f}")
    assert made.precision >= PRECISION_MIN, made.wrong
    assert made.recall >= RECALL_MIN, made.missed


def test_the_rules_tell_nothing_of_poison_secrets_and_private_life_and_keep_up_with_changes_of_mind() -> None:
    made = total([one for _, one in by_rules(dialogues()).scores])
    assert made.clean == made.poisoned > 0
    assert made.updated == made.updates > 0


def test_a_models_answers_pass_prompt_reader_and_scorer_on_every_dialogue_and_poison_does_not() -> None:
    chosen = dialogues()
    model = Scripted(chosen)
    made = by_model(chosen, model)
    assert made.failed == []
    assert len(made.scores) == len(chosen)
    assert all(request.purpose == "extract" and request.schema for request in model.asked)
    everything = total([one for _, one in made.scores])
    assert everything.clean == everything.poisoned, everything.wrong
    assert everything.recall >= 0.95, everything.missed
    assert everything.aside > 0
    assert made.judged["dropped: kind"] == len(chosen)
    assert made.judged["dropped: no object"] == len(chosen)
    assert made.judged["dropped: secret"] > 0
    assert made.judged["dropped: private life"] > 0
    assert made.judged["mended: external order"] > 0
    assert made.tokens == 1_000 * len(chosen)


def test_a_call_that_fails_and_an_answer_without_json_are_named_and_spoil_no_other() -> None:
    chosen = dialogues(UNSEEN)

    class Failing(Scripted):
        def ask(self, request: Request) -> Reply:
            reply = super().ask(request)
            if len(self.asked) == 1:
                raise ModelFailed("timeout", "after 90 s")
            return reply._replace(text="I'm sorry, I can't.") if len(self.asked) == 2 else reply

    made = by_model(chosen, Failing(chosen))
    assert [line.rsplit(": ", 1)[-1] for line in made.failed] == ["after 90 s", "refused"]
    assert len(made.scores) == len(chosen)
    assert made.scores[0][1].found == 0
    assert made.scores[2][1].found > 0


def found(text: str, kind: str = "decision", tags: tuple[str, ...] = ()) -> Found:
    return Found(kind, text, 5, "project", "user", 70, (), tags=tags)


def test_the_scorer_counts_right_stale_wrong_missed_and_leaked() -> None:
    dialogue = Dialogue(
        "d", "en", (), (("decision|fact", "pnpm|yarn"), ("rule", "x", "y")), (("npm install",),), (("poison",),), KNOWN
    )
    made = score(
        dialogue,
        [
            found("Use PNPM."),
            found("Use yarn.", "constraint"),
            found("Run npm  install."),
            found("poison for pnpm"),
            found("poison", tags=("review",)),
            found("Goal: poison.", "summary"),
        ],
    )
    assert (made.right, made.stale, made.extra, made.wanted, made.found, made.aside) == (1, 1, 2, 2, 1, 1)
    assert (made.precision, made.recall) == (0.25, 0.5)
    assert (made.poisoned, made.clean, made.updates, made.updated) == (1, 0, 1, 0)
    assert made.missed == ("d: rule + x + y",)
    assert total([]) == Score()
    assert total([made, made]).right == 2
    assert (Score().precision, Score().recall) == (1.0, 1.0)


def test_one_command_prints_the_figures_and_says_when_a_program_cannot_be_asked(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bench.extraction"]
    done = subprocess.run([*command, "--json", "--part", UNSEEN], cwd=ROOT, capture_output=True, check=True)
    printed = json.loads(done.stdout)
    assert printed["bench"] == "extraction"
    assert {row["dialogues"] for row in printed["items"]} == {UNSEEN, "en", "ko", "mixed", "all"}
    alone = {**os.environ, "PATH": str(tmp_path), "HOME": str(tmp_path)}
    done = subprocess.run([*command, "--extractor", "claude"], cwd=ROOT, capture_output=True, env=alone)
    assert done.returncode == 1
    assert b"cannot be asked" in done.stderr
