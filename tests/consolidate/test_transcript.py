"""How far a transcript was read: it grows, is cut, replaced, copied, and may be larger than the memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorize.consolidate import transcript
from memorize.consolidate.transcript import Slice, advance, mark, source_of, tail_hash
from memorize.consolidate.windows import Piece, Source, answer, windows
from memorize.model import WINDOW_CONSOLIDATED
from tests.consolidate.kit import START, said
from tests.counts import count

AGENT, SESSION = "claude", "5f2c"
NONCE = b"n" * 16


class Line(NamedTuple):
    role: str
    text: str
    trust: str
    id: str
    at_ms: int
    end: int


def parse(chunk: bytes, start: int) -> list[Line]:
    """Read lines of the form ``id text``; a line that begins with ``#`` says nothing."""
    found, place = [], 0
    while (end := chunk.find(b"\n", place)) >= 0:
        name, _, text = chunk[place:end].decode().partition(" ")
        if not name.startswith("#"):
            found.append(Line("user", text, "user", name, START, start + end + 1))
        place = end + 1
    return found


class File:
    """A file whose content the test changes; counts the largest block that was asked for."""

    def __init__(self, raw: bytes = b"") -> None:
        self.raw, self.asked = raw, 0

    def read(self, offset: int, length: int) -> bytes:
        assert offset >= 0 <= length
        self.asked = max(self.asked, length)
        return self.raw[offset : offset + length]


class Reader:
    """What a worker does with one transcript: advance, read, and claim what it read."""

    def __init__(self, file: File, claimed: set[bytes] | None = None, session: str = SESSION) -> None:
        self.file, self.session = file, session
        self.claims: list[Source] = []
        self.marks: set[bytes] = set() if claimed is None else claimed

    def known(self, marks: Sequence[bytes]) -> Collection[bytes]:
        return self.marks.intersection(marks)

    def open(self) -> list[Piece]:
        found = advance(self.claims, len(self.file.raw), self.file.read)
        if found is None:
            return []
        return list(transcript.pieces(AGENT, self.session, "", found, self.file.read, parse, self.known))

    def reads(self) -> list[str]:
        """Read everything that is open, claim it, and return its texts."""
        texts = []
        for piece in self.open():
            self.claims.append(piece.source)
            self.marks.update(piece.marks)
            texts += [line.text for line in piece.lines]
        return texts


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make blocks and pieces so small that every boundary is met."""
    monkeypatch.setattr(transcript, "BLOCK_BYTES", 7)
    monkeypatch.setattr(transcript, "PIECE_LINES_MAX", 2)


def test_a_growing_transcript_is_read_on_where_the_last_claim_ended() -> None:
    reader = Reader(File("a 하나\nb 둘\n".encode()))
    assert reader.reads() == ["하나", "둘"]
    assert reader.reads() == []
    reader.file.raw += "c 셋\n".encode()
    assert reader.reads() == ["셋"]
    assert [(one.generation, one.start, one.end) for one in reader.claims] == [(0, 0, 15), (0, 15, 21)]


def test_half_a_last_line_waits() -> None:
    whole = "a 하나\nb 환불은 한 번\n".encode()
    for cut in range(10, len(whole)):
        reader = Reader(File(whole[:cut]))
        assert reader.reads() == ["하나"]
        reader.file.raw = whole
        assert reader.reads() == ["환불은 한 번"]


def test_a_file_without_a_whole_line_has_nothing_to_read() -> None:
    assert Reader(File(b"")).open() == []
    assert Reader(File(b"a unfinished")).open() == []


def test_a_truncated_transcript_begins_a_new_generation_and_nothing_is_read_twice() -> None:
    reader = Reader(File(b"a one\nb two\nc three\n"))
    reader.reads()
    reader.file.raw = b"a one\nb two\n"
    found = advance(reader.claims, len(reader.file.raw), reader.file.read)
    assert found is not None
    assert (found.generation, found.start, found.fresh) == (1, 0, True)
    assert reader.reads() == []
    reader.file.raw += b"d four\n"
    assert reader.reads() == ["four"]
    assert reader.claims[-1].generation == 1
    reader.file.raw += b"e five\n"
    assert reader.reads() == ["five"]
    assert (reader.claims[-1].generation, reader.claims[-1].start) == (1, 19)


def test_a_rotated_transcript_is_read_from_its_start() -> None:
    reader = Reader(File(b"a one\n"))
    reader.reads()
    reader.file.raw = b"x new\ny more and longer than before\n"
    assert reader.reads() == ["new", "more and longer than before"]
    assert reader.claims[-1].generation == 1


def test_a_rewritten_line_before_the_end_is_noticed() -> None:
    reader = Reader(File(b"a one\nb two\n"))
    reader.reads()
    reader.file.raw = b"a ONE\nb two\nc three\n"
    assert reader.reads() == ["three"]
    assert reader.claims[-1].generation == 1


def test_a_fork_gives_only_what_its_parent_had_not() -> None:
    parent = Reader(File(b"a one\nb two\n"))
    parent.reads()
    fork = Reader(File(b"a one\nb two\nc other\n"), parent.marks, "fork")
    assert fork.reads() == ["other"]
    assert fork.reads() == []
    parent.file.raw += b"c other\nd own\n"
    assert parent.reads() == ["own"]


def test_a_message_that_stands_twice_in_a_file_is_read_once() -> None:
    assert Reader(File(b"a one\nb two\na one\n")).reads() == ["one", "two"]


def test_the_same_id_of_another_agent_is_another_message() -> None:
    assert mark("claude", "m1") != mark("codex", "m1")
    assert mark("a", "bc") != mark("ab", "c")
    assert len(mark("claude", "환불")) == 32


def test_pieces_end_between_lines_and_cover_the_slice_without_a_gap(small: None) -> None:
    raw = b"".join(f"l{n} text {n}\n".encode() for n in range(7)) + b"# nothing\n"
    pieces = Reader(File(raw)).open()
    assert [[line.text for line in piece.lines] for piece in pieces] == [
        ["text 0", "text 1"], ["text 2", "text 3"], ["text 4", "text 5"], ["text 6"],
    ]  # fmt: skip
    spans = [(piece.source.start, piece.source.end) for piece in pieces]
    assert (spans[0][0], spans[-1][1]) == (0, len(raw))
    assert all(one[1] == other[0] for one, other in pairwise(spans))
    for piece in pieces:
        assert piece.source.tail_hash == tail_hash(raw[max(0, piece.source.end - 256) : piece.source.end])


def test_a_piece_whose_window_failed_is_read_again_and_the_rest_is_not(small: None) -> None:
    reader = Reader(File(b"".join(f"l{n} text {n}\n".encode() for n in range(6))))
    first, second, third = reader.open()
    reader.claims += [second.source, third.source]
    reader.marks.update((*second.marks, *third.marks))
    assert reader.reads() == ["text 0", "text 1"]
    assert first.source.start == 0


@pytest.mark.usefixtures("small")
@given(
    texts=st.lists(st.text(st.characters(exclude_characters="\n", codec="utf-8"), max_size=20), max_size=30),
    cuts=st.lists(st.integers(0, 800), max_size=8),
)
def test_however_the_file_grows_every_line_is_read_once_and_in_order(texts: list[str], cuts: list[int]) -> None:
    raw = b"".join(f"{number} {text}\n".encode() for number, text in enumerate(texts))
    reader, read = Reader(File()), []
    for cut in [*sorted(cuts), len(raw)]:
        reader.file.raw = raw[:cut]
        read += reader.reads()
    assert read == texts
    assert reader.open() == []


@given(st.lists(st.binary(max_size=60), max_size=8))
def test_whatever_becomes_of_the_file_no_message_is_read_twice(contents: list[bytes]) -> None:
    reader, read = Reader(File()), []
    for number, content in enumerate(contents):
        kept = "".join(chr(97 + byte % 26) for byte in content)
        reader.file.raw = "".join(f"{name} {name}\n" for name in kept).encode() + b"half" * (number % 2)
        read += reader.reads()
    assert len(read) == len(set(read))
    assert set(read) == {chr(97 + byte % 26) for content in contents for byte in content}


def test_two_hundred_megabytes_are_read_in_bounded_memory() -> None:
    line = b"%08d " + b"x" * 990 + b"\n"
    rows = 1_000 * count("megabytes of one transcript", quick=20, full=200)
    size = len(line % 0) * rows
    asked = 0

    def read(offset: int, length: int) -> bytes:
        nonlocal asked
        asked = max(asked, length)
        first, last = offset // 1000, (offset + length) // 1000
        whole = b"".join(line % number for number in range(first, min(last + 1, rows)))
        return whole[offset - first * 1000 : offset - first * 1000 + length]

    assert len(line % 0) == 1000
    found = advance([], size, read)
    assert found == Slice(0, 0, size, found.tail_hash if found else "", True)
    tracemalloc.start()
    lines = pieces = 0
    for piece in transcript.pieces(AGENT, SESSION, "", found, read, parse, lambda _: ()):
        lines, pieces = lines + len(piece.lines), pieces + 1
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert lines == rows
    assert pieces > rows // 250
    assert asked <= transcript.BLOCK_BYTES
    # The marks of what was read, and a few blocks.
    assert peak < 10 * 1024 * 1024 + 200 * rows


def test_a_line_without_an_end_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcript, "BLOCK_BYTES", 1024)
    monkeypatch.setattr(transcript, "LINE_BYTES_MAX", 4096)
    raw = b"a one\nb " + b"x" * 100_000 + b"\nc three\n"
    assert Reader(File(raw)).reads() == ["one", "three"]


def test_a_file_that_shrinks_while_it_is_read_gives_what_was_there() -> None:
    file = File(b"a one\nb two\n")
    reader = Reader(file)
    found = advance([], len(file.raw), file.read)
    assert found is not None
    file.raw = b"a one\n"
    pieces = list(transcript.pieces(AGENT, SESSION, "", found, file.read, parse, reader.known))
    assert [[line.text for line in piece.lines] for piece in pieces] == [["one"]]


@pytest.mark.parametrize(
    "said_",
    [None, 3, "x", [], {}, {"generation": 0, "from": 2, "to": 1, "tail": ""}, {"generation": "0", "from": 0, "to": 1}],
)
def test_a_claim_that_says_nothing_of_a_transcript_has_no_source(said_: object) -> None:
    assert source_of(AGENT, SESSION, said_) is None


def test_a_source_comes_back_from_its_payload() -> None:
    for part in ("", "agent-1"):
        source = Source(AGENT, SESSION, 2, 10, 20, "ab" * 16, part)
        assert source_of(AGENT, SESSION, source.payload()) == source


# -- windows ------------------------------------------------------------------------------------------------------


def piece_of(*texts: str, at_ms: int = START, part: str = "", start: int = 0) -> Piece:
    lines = tuple(Line("user", text, "user", text, at_ms, 0) for text in texts)
    source = Source(AGENT, SESSION, 0, start, start + 100, "", part)
    return Piece(source, lines, tuple(mark(AGENT, text) for text in texts))


def test_a_window_may_consist_of_lines_alone() -> None:
    piece = piece_of("하나", "둘")
    (window,) = windows(AGENT, SESSION, [], [piece], "p")
    assert (window.events, window.project, window.lines) == ((), "p", piece.lines)
    *_, claim = answer(window, [], "rules", NONCE)
    assert claim.kind == WINDOW_CONSOLIDATED
    assert claim.payload["sources"] == list(piece.marks)
    assert claim.payload["transcript"] == {"generation": 0, "from": 0, "to": 100, "tail": ""}


def test_each_observation_is_read_with_the_lines_of_its_time() -> None:
    events = [said(number, f"prompt {number}") for number in (1, 2, 3, 4)]
    pieces = [piece_of("a", at_ms=START + 2_000), piece_of("b", at_ms=START + 3_000, start=100)]
    first, second = windows(AGENT, SESSION, events, pieces)
    assert [event.id for event in first.events] == [event.id for event in events[:2]]
    assert [event.id for event in second.events] == [event.id for event in events[2:]]
    assert {*first.sources, *second.sources} == {event.id for event in events} | {mark(AGENT, "a"), mark(AGENT, "b")}


def test_a_subagents_lines_make_a_window_of_their_own() -> None:
    own, part = piece_of("a"), piece_of("b", part="agent-1")
    found = windows(AGENT, SESSION, [said(1, "x")], [own, part])
    assert [(len(window.events), window.transcript) for window in found] == [(1, own.source), (0, part.source)]


def test_observations_of_another_project_keep_out_of_the_transcript() -> None:
    here, there = said(1, "x"), said(2, "y")
    payload = dict(there.payload or {}) | {"project": "q"}
    found = windows(AGENT, SESSION, [here, said(3, "z"), there._replace(payload=payload)], [piece_of("a")])
    assert [(window.project, len(window.events), len(window.lines)) for window in found] == [("q", 1, 0), ("p", 2, 1)]


def test_windows_of_different_lines_have_different_keys() -> None:
    one, other = (windows(AGENT, SESSION, [], [piece_of(text)], "p")[0] for text in ("a", "b"))
    assert one.key != other.key
