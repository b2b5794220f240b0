"""The events of real state directories: what goes out is what came in, whoever carries it in between."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack
import pytest

from memorize import model
from memorize.bootstrap import App
from memorize.clock import SystemClock
from memorize.config import Config
from memorize.ids import event_id
from memorize.log.segments import HEADER_BYTES
from memorize.model import Draft, Envelope, Received, text_key
from memorize.paths import Home
from memorize.sync import holding as holding_module
from memorize.sync.port import HIGHEST, LOWEST, Head, Span
from tests.counts import count
from tests.log.others import Other, bare

ORDERS = count("sync: orders in which a history comes", quick=3, full=25)


@pytest.fixture
def homes(tmp_path: Path) -> Iterator[list[App]]:
    """Three state directories that know nothing of each other."""
    made = [App(Home(tmp_path / f"기기 {name}"), Config(), SystemClock()) for name in "ABC"]
    for one in made:
        one.ingest()
    yield made
    for one in made:
        one.close()


def everything(app: App) -> list[Envelope]:
    keys = app.holding.keys(LOWEST, HIGHEST, 10**6)
    return list(app.holding.get([identity for _, identity in keys]))


def exchange(one: App, other: App) -> None:
    other.receive(everything(one))
    one.receive(everything(other))


def converge(*apps: App) -> None:
    """Exchange until all hold the same: each answers an erasure with an event of its own."""
    for _ in range(6):
        for app in apps:
            app.ingest()
        if len({app.reader().digest() for app in apps}) == 1:
            return
        for one in apps:
            for other in apps:
                if one is not other:
                    exchange(one, other)
    assert len({app.reader().digest() for app in apps}) == 1


def memory(text: str, ordinal: int = 0, **fields: Any) -> Draft:
    payload = {
        "kind": "fact",
        "text": text,
        "text_key": text_key(text),
        "importance": 6,
        "confidence": 50,
        "scope": "personal",
        "project": "",
        "branch": "",
        "paths": [],
        "tags": [],
        "triggers": [],
        "trust": "user",
        "sources": [],
        **fields,
    }
    return Draft(model.MEMORY_FORMED, payload, ordinal)


def history(app: App, seeds: random.Random, steps: int = 30) -> None:
    """Let a person and an agent work: form, replace, forget, restore, pin, link and erase."""
    formed: list[bytes] = []
    done: list[bytes] = []
    for step in range(steps):
        way = seeds.choice(["form", "form", "form", "observe", "supersede", "retract", "restore", "pin", "erase"])
        some = seeds.sample(formed, min(len(formed), seeds.randint(1, 2)))
        if way == "observe" or (way != "form" and not some):
            app.append([Draft(model.OBSERVED_PROMPT, {"agent": "claude", "session": "세션", "text": f"질문 {step}"})])
        elif way == "form":
            formed += app.append([memory(f"기억 {seeds.randrange(12)} of step {step // 3}"), memory(f"둘째 {step}", 1)])
        elif way == "supersede":
            new = app.append([memory(f"나은 기억 {step}")])
            done += app.append([Draft(model.MEMORY_SUPERSEDED, {"reason": "낡음"}, 0, (*new, *some))])
            formed += new
        elif way == "retract":
            done += app.append([Draft(model.MEMORY_RETRACTED, {"reason": "틀림"}, 0, tuple(some))])
        elif way == "restore" and done:
            app.append([Draft(model.MEMORY_RESTORED, {}, 0, (seeds.choice(done),))])
        elif way == "pin":
            app.append([Draft(model.MEMORY_PINNED, {}, 0, tuple(some))])
        elif way == "erase":
            app.append([Draft(model.ERASE_REQUESTED, {"ids": some, "reason": "", "kept": []})])


def test_a_history_gives_the_same_digests_in_whatever_order_and_grouping_it_comes(homes: list[App]) -> None:
    source, *_ = homes
    for turn in range(ORDERS):
        seeds = random.Random(turn)
        history(source, seeds)
        sent = everything(source)
        target = App(Home(source.home.root.parent / f"target {turn}"), Config(), SystemClock())
        target.ingest()
        coming = [*sent, *seeds.sample(sent, len(sent) // 3), *bare(seeds.sample(sent, len(sent) // 3))]
        seeds.shuffle(coming)
        while coming:
            size = seeds.randint(1, 25)
            batch, coming = coming[:size], coming[size:]
            assert target.receive(batch).bad == 0
        converge(source, target)
        assert target.holding.digest() == source.holding.digest()
        before = target.reader().digest()
        target.rebuild()
        assert target.reader().digest() == before
        target.close()


def strange() -> list[Envelope]:
    """Return what this version does not understand, and things of every other sort."""
    other = Other(7)
    given = [
        *other.say("한국어 기억", "日本語の記憶", "mémoire à côté \U0001f9e0"),
        other.write({"미래": [1, {"깊이": "x"}]}, kind="future.kind"),
        other.write({"text": "of a later format"}, format=12),
        other.write({"text": "must be understood"}, must=(40, 41)),
        other.write({"text": "under a key"}, scope_key=b"k" * 16),
        other.write({"text": "of a person"}, person=b"p" * 32)._replace(signature=b"s" * 64),
        other.write({"text": "nobody's"}, writer=b"", seq=0),
    ]
    fields = msgpack.unpackb(given[0].header, strict_map_key=False)
    raw = msgpack.packb({**fields, 4: 77, 90: "미래의 열쇠", 91: [b"\x00", {1: 2}]})
    given.append(given[0]._replace(id=event_id(raw), header=raw))
    twin = Other(7)
    twin.say("한국어 기억")
    given += twin.say("twin of the second")
    return given


def plain(envelopes: list[Envelope]) -> list[tuple[bytes, bytes, bytes | None, bytes]]:
    return sorted((one.id, one.header, one.body, one.signature) for one in envelopes)


def test_what_is_relayed_comes_out_as_it_went_in(homes: list[App]) -> None:
    first, second, third = homes
    given = strange()
    assert first.receive(given) == Received(new=len(given))
    assert first.holding.digest().events == len(given)
    second.receive(everything(first))
    third.receive(everything(second))
    assert plain(everything(third)) == plain(given)
    assert len({app.holding.digest() for app in homes}) == 1
    third.rebuild()
    assert plain(everything(third)) == plain(given)
    assert len({app.reader().digest() for app in homes}) == 1


def test_what_is_known_by_its_header_only_is_wanted_and_not_passed_on(homes: list[App]) -> None:
    app, other, _ = homes
    given = strange()
    assert app.receive(bare(given)) == Received(new=len(given))
    assert app.holding.digest().events == 0
    assert everything(app) == []
    assert app.holding.heads() == []
    assert not app.holding.spans()
    assert len(app.holding.wanted()) == len(given)
    app.rebuild()
    assert app.holding.digest().events == 0
    assert app.receive(given) == Received(bodies=len(given))
    assert app.holding.wanted() == []
    assert plain(everything(app)) == plain(given)
    other.receive(given)
    assert app.reader().digest() == other.reader().digest()
    app.rebuild()
    assert app.reader().digest() == other.reader().digest()


def test_an_erased_body_is_neither_given_nor_taken_again(homes: list[App]) -> None:
    app, other, _ = homes
    secret, note = app.append([memory("비밀 번호는 없다"), Draft(model.OBSERVED_NOTE, {"text": "note"}, 1)])
    before = everything(app)
    app.append([Draft(model.ERASE_REQUESTED, {"ids": [secret], "reason": "", "kept": []})])
    app.reader()
    (given,) = app.holding.get([secret])
    assert given.body is None
    assert app.holding.digest().events == len(everything(app))
    assert next(iter(app.holding.get([note]))).body is not None
    other.receive(everything(app))
    assert other.receive(before) == Received(known=len(before))
    sent = everything(app)
    late = App(Home(app.home.root.parent / "late"), Config(), SystemClock())
    late.ingest()
    late.receive([envelope for envelope in sent if envelope.id != secret])
    assert late.receive([one for one in before if one.id == secret]) == Received(new=1, stripped=1)
    assert all("비밀".encode() not in path.read_bytes() for path in late.home.root.rglob("*") if path.is_file())
    converge(app, other, late)
    late.close()


def test_a_damaged_event_is_left_out_and_the_rest_is_given(homes: list[App]) -> None:
    app, *_ = homes
    given = Other(3).say("하나", "둘", "셋")
    app.receive(given)
    (path,) = app.home.received.glob("*.mzs")
    data = bytearray(path.read_bytes())
    data[HEADER_BYTES + 60] ^= 4
    path.write_bytes(data)
    assert plain(everything(app)) == plain(given[1:])
    path.unlink()
    assert list(app.holding.get([given[1].id])) == []


def test_events_behind_a_head_come_in_portions(homes: list[App]) -> None:
    app, *_ = homes
    other = Other(4)
    given = other.say(*(f"기억 {number}" for number in range(50)))
    app.receive(given)
    (head,) = app.holding.heads()
    assert head == Head(other.writer, 50, given[-1].id)
    assert app.holding.after(head, 1 << 20) == []
    at, got = Head(other.writer, 0, b""), []
    while portion := app.holding.after(at, 2_000):
        got += portion
        at = Head(other.writer, len(got), portion[-1].id)
    assert [one.id for one in got] == [one.id for one in given]
    assert len(app.holding.after(Head(other.writer, 0, b""), 1)) == 1
    assert app.holding.after(Head(other.writer, 3, given[7].id), 1 << 20) == []
    assert app.holding.after(Head(b"n" * 16, 0, b""), 1 << 20) == []
    assert app.holding.own([other.writer, b"n" * 16]) == frozenset()


def test_runs_are_given_whole_over_many_pages_twins_included(homes: list[App], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holding_module, "_PAGE", 8)
    app, *_ = homes
    other = Other(5)
    first = other.say(*(f"앞 {number}" for number in range(20)))
    twins = []
    for number in range(30):
        other.seq = 20
        twins += other.say(f"쌍둥이 {number}")
    rest = other.say(*(f"뒤 {number}" for number in range(9)))
    app.receive([*rest, *first, *twins])
    spans = app.holding.spans()[other.writer][1]
    assert spans == [Span(other.writer, 1, 30)]
    assert [one.id for one in app.holding.of_spans(spans)] == [one.id for one in [*first, *twins, *rest]]
    assert [key[1] for key in app.holding.twins()] == [one.id for one in twins]
    assert app.holding.heads() == []
