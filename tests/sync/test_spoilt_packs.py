"""A disk or a tool spoils a pack in the folder: who made it notices, makes it again, and takes the spoilt one away."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from memorize.sync.folder_sync import Keys
from memorize.sync.packfile import BAD
from memorize.sync.plan import PACE
from memorize.sync.ring import rotate
from tests.counts import count
from tests.sync.places import DAY, HOUR, Machine
from tests.sync.simulator.holding import MemoryHolding

SMALL = PACE._replace(fan=(4, 3, 3))
FLIPS = count("flipped bits in an own pack", quick=12, full=400)


@pytest.fixture
def pair(ram: Path) -> tuple[Machine, Machine]:
    return Machine(ram, "A", ram / "공유"), Machine(ram, "B", ram / "공유")


def flip(path: Path, part: float) -> None:
    data = bytearray(path.read_bytes())
    data[min(len(data) - 1, int(len(data) * part))] ^= 4
    path.write_bytes(data)


def equal(*machines: Machine) -> bool:
    return len({machine.holding.digest() for machine in machines}) == 1


@pytest.mark.parametrize("at", range(FLIPS))
def test_whatever_bit_was_flipped_the_owner_notices_when_it_looks_and_others_get_all_of_it(pair, at):
    a, b = pair
    a.write("하나", "two")
    a.sync()
    (path,) = a.own()
    flip(path, at / (FLIPS - 1))
    assert b.sync().received.new == 0
    assert a.sync().published.mended == 0  # an ordinary round reads no pack that was looked at lately
    report = a.sync(check=True)
    assert (report.published.mended, report.published.packs, report.refused) == (1, 1, 0)
    assert path not in a.own()
    b.wall += HOUR
    report = b.sync()
    assert (report.received.new, report.refused, report.pending) == (2, 0, 0)
    assert equal(a, b)
    before = a.packs()
    assert a.sync(check=True).published.mended == 0
    assert a.packs() == before


def test_it_is_noticed_by_itself_within_a_week_of_rounds(pair):
    a, b = pair
    a.write("언젠가")
    a.sync()
    (path,) = a.own()
    flip(path, 0.5)
    a.wait(8 * DAY)
    assert path not in a.own()
    assert len(a.own()) == 1
    b.sync()
    assert equal(a, b)


def test_only_so_much_is_read_in_a_round_and_all_of_it_in_the_end(pair):
    a, _ = pair
    for number in range(6):
        a.write(f"pack {number}")
        a.sync()
    for path in a.own():
        flip(path, 0.5)
    a.wall += PACE.pause
    few = PACE._replace(proof=1, proof_bytes=1)
    assert [a.sync(few).published.mended for _ in range(6)] == [1] * 6
    assert len(a.own()) == 6


def test_a_spoilt_pack_that_others_together_hold_is_not_made_again(pair):
    a, b = pair
    for number in range(4):
        a.write(f"{number} 번")
        a.sync(SMALL)
    merged = max(a.own(), key=lambda path: path.name)
    assert merged.name.startswith("1-")
    flip(merged, 0.5)
    report = a.sync(check=True)
    assert (report.published.mended, report.published.events) == (1, 0)
    assert merged not in a.own()
    b.sync()
    assert equal(a, b)


def test_a_spoilt_pack_with_what_its_owner_holds_no_more_stays_and_is_told(pair):
    a, _ = pair
    a.write("lost here", "잃음")
    a.sync()
    (path,) = a.own()
    flip(path, 0.5)
    data = path.read_bytes()
    a.holding = MemoryHolding()
    for _ in range(3):
        report = a.sync(check=True, by_hand=True)
        assert (report.published.mended, report.states[BAD]) == (0, 1)
    assert path.read_bytes() == data


def test_a_pack_that_cannot_be_read_just_now_is_no_spoilt_one(pair):
    a, _ = pair
    a.write("one")
    a.sync()
    before = a.own()
    read = a.folder.read

    def fails(path: str) -> bytes:
        raise OSError(errno.EIO, "input/output error")

    a.folder.read = fails
    assert a.sync(check=True).published.packs == 0
    a.folder.read = read
    assert a.sync(check=True).published.mended == 0
    assert a.own() == before


def test_a_cut_own_pack_is_replaced_too(pair):
    a, b = pair
    a.write("one", "둘")
    a.sync()
    (path,) = a.own()
    path.write_bytes(path.read_bytes()[:-9])
    report = a.sync()
    assert (report.published.mended, report.pending) == (1, 0)
    b.sync()
    assert equal(a, b)


def test_a_spoilt_pack_with_keys_is_made_again(pair):
    a, b = pair
    a.write("before")
    a.sync()
    b.sync()
    a.keys = Keys(rotate(a.keys.ring, b"\x0d" * 32, b"\x0e" * 24))
    a.write("나중")
    a.sync()
    (path,) = [path for path in a.own() if path.name.startswith("9-")]
    flip(path, 0.6)
    assert b.sync().received.new == 0
    a.sync(check=True)
    assert path not in a.own()
    b.wall += HOUR
    b.sync()
    assert equal(a, b)
