"""Rounds through a folder: everything arrives, nothing is inferred from what is absent, nothing is deleted for it."""

from __future__ import annotations

import errno
import itertools
import os
import random
import shutil
from pathlib import Path

import pytest

from memorize.model import ERASE_REQUESTED
from memorize.sync import folder_sync as rounds
from memorize.sync.catalog import TAKEN, Catalog
from memorize.sync.folder import Listing
from memorize.sync.folder_sync import Keys
from memorize.sync.pack import decode, encode
from memorize.sync.packfile import BAD, OTHER, PENDING, UNKNOWN_KEY
from memorize.sync.plan import PACE, is_of
from memorize.sync.ring import key_id, rotate
from tests.counts import count
from tests.sync.places import DAY, HOUR, OTHER_SECRET, SECRET, STORE, Machine, ring

SMALL = PACE._replace(fan=(4, 3, 3))
HISTORIES = count("random histories through one folder", quick=15, full=150)


@pytest.fixture
def pair(ram: Path) -> tuple[Machine, Machine]:
    """Two devices that share one directory."""
    return Machine(ram, "A", ram / "공유"), Machine(ram, "B", ram / "공유")


def equal(*machines: Machine) -> bool:
    return len({machine.holding.digest() for machine in machines}) == 1


def settle(*machines: Machine) -> None:
    for _ in range(2):
        for machine in machines:
            machine.sync()


class TestTwoDevices:
    def test_what_each_captures_is_on_both(self, pair):
        a, b = pair
        a.write("from A", "한국어")
        b.write("from B")
        settle(a, b)
        assert equal(a, b)
        assert a.holding.digest().events == 3

    def test_both_may_have_a_past_before_they_meet(self, pair):
        a, b = pair
        a.write(*(f"old A {n}" for n in range(50)))
        b.write(*(f"old B {n}" for n in range(70)))
        settle(a, b)
        assert equal(a, b)

    def test_a_round_with_nothing_new_writes_nothing(self, pair):
        a, b = pair
        a.write("one")
        settle(a, b)
        before = [(path, path.stat().st_mtime_ns) for path in a.packs()]
        for machine in (a, b, a):
            report = machine.sync()
            assert (report.published.packs, report.imported, report.paused) == (0, 0, "")
        assert [(path, path.stat().st_mtime_ns) for path in a.packs()] == before

    def test_a_file_never_changes_and_only_its_owner_makes_it(self, pair):
        a, b = pair
        sizes: dict[Path, int] = {}
        for number in range(20):
            a.write(f"a{number}")
            b.write(f"b{number}")
            for machine in (a, b):
                before = set(machine.packs())
                machine.sync(SMALL)
                assert set(machine.packs()) - before <= set(machine.own())
                for path in machine.packs():
                    assert sizes.setdefault(path, path.stat().st_size) == path.stat().st_size
        a.sync(SMALL)
        assert equal(a, b)

    def test_the_report_tells_what_went_in_and_out(self, pair):
        a, b = pair
        a.write("one", "two")
        report = a.sync()
        assert (report.published.packs, report.published.events, report.files) == (1, 2, 1)
        report = b.sync()
        assert (report.imported, report.received.new, report.published.packs) == (1, 2, 0)

    def test_progress_is_told_up_to_the_end(self, pair):
        a, b = pair
        a.write(*(f"{n}" for n in range(10)))
        seen = []
        a.sync(progress=lambda done, total: seen.append((done, total)))
        assert seen[-1] == (10, 10)
        seen.clear()
        b.sync(progress=lambda done, total: seen.append((done, total)))
        assert seen[-1][0] == seen[-1][1] > 0


class TestNames:
    def test_whatever_parses_is_taken_in_wherever_it_lies_and_whatever_it_is_called(self, ram):
        a = Machine(ram, "A")
        a.write("여기")
        a.sync()
        data = a.packs()[0].read_bytes()
        names = ("x/y/0-1 (기기's conflicted copy 2026-12-01).mzp", "0-1.mzp", "A/B/C.MZP", "a/b/c/d/e/deep.bin")
        for number, name in enumerate(names):
            b = Machine(ram, f"B{number}")
            path = b.path / "memorize" / name
            path.parent.mkdir(parents=True)
            path.write_bytes(data)
            b.sync()
            assert equal(a, b)

    def test_a_name_that_is_no_text_is_a_name(self, ram):
        a, b = Machine(ram, "A"), Machine(ram, "B")
        b.catalog = Catalog.open(b.home / "sync.sqlite", "f")
        a.write("one")
        a.sync()
        top = b.path / "memorize"
        top.mkdir()
        for name, data in ((b"\xff\xfe.mzp", a.packs()[0].read_bytes()), (b"\xff junk.mzp", b"junk")):
            (top / os.fsdecode(name)).write_bytes(data)
        assert b.sync().reasons == (("\\xff junk.mzp", OTHER, "it is not a pack"),)
        assert equal(a, b)
        b.catalog.close()
        b.catalog = Catalog.open(b.home / "sync.sqlite", "f")
        assert b.sync().imported == 0
        b.catalog.close()

    def test_every_name_is_lower_case_ascii(self, pair):
        a, _ = pair
        for number in range(9):
            a.write(f"{number}")
            a.sync(SMALL)
        names = [str(path.relative_to(a.path)) for path in a.path.rglob("*")]
        assert names
        assert all(set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-./") and len(name) < 180 for name in names)

    def test_a_folder_in_other_case_is_still_mine(self, ram):
        a = Machine(ram, "A")
        a.write("one")
        a.sync()
        top = a.path / "memorize"
        for path in sorted(top.rglob("*"), reverse=True):
            path.rename(path.with_name(path.name.upper()))
        report = a.sync()
        assert (report.published.packs, report.ahead) == (0, False)


class TestTimes:
    @pytest.mark.parametrize("when", [0, 1, 4_102_444_800])
    def test_times_of_files_mean_nothing(self, pair, when):
        a, b = pair
        b.sync()
        a.write("old file")
        a.sync()
        for path in a.packs():
            os.utime(path, (when, when))
        b.sync()
        assert equal(a, b)

    @pytest.mark.parametrize("days", [-30, 30])
    def test_a_clock_that_is_wrong_or_jumps_deletes_nothing_early(self, pair, days):
        a, b = pair
        for number in range(4):
            a.write(f"{number}")
            a.sync(SMALL)
        assert len(a.own()) == 5
        a.wall += days * DAY
        a.sync(SMALL)
        b.wall -= days * DAY
        b.sync(SMALL)
        assert len(a.own()) == 5
        assert equal(a, b)


class TestAbsence:
    def test_a_wiped_folder_is_published_again(self, pair):
        a, b = pair
        a.write("mine")
        b.write("yours")
        settle(a, b)
        shutil.rmtree(a.path / "memorize")
        report = a.sync()
        assert report.emptied
        assert (report.paused, report.published.packs) == ("", 1)
        b.sync()
        c = Machine(a.home.parent, "C", a.path)
        c.sync()
        assert equal(a, b, c)

    def test_others_are_given_time_to_publish_again(self, pair):
        a, b = pair
        a.write("mine")
        b.write("yours")
        settle(a, b)
        shutil.rmtree(a.path / "memorize")
        report = a.wait(23 * HOUR)
        assert report.waiting == 1
        report = a.wait(3 * HOUR)
        assert report.waiting == 0
        c = Machine(a.home.parent, "C", a.path)
        c.sync()
        assert equal(a, b, c)

    def test_a_folder_that_is_gone_makes_a_pause(self, pair):
        a, _ = pair
        a.write("one")
        a.sync()
        a.path.rename(a.path.with_name("unplugged"))
        a.write("two")
        report = a.sync()
        assert report.paused.startswith(rounds.MISSING)
        assert not a.path.exists()
        a.path.with_name("unplugged").rename(a.path)
        assert a.sync().published.packs == 1

    def test_an_empty_folder_on_another_file_system_makes_a_pause_until_a_person_says_that_it_is_right(
        self, pair, monkeypatch
    ):
        a, _ = pair
        a.write("one")
        a.sync()
        packs = a.packs()
        hidden = a.path.with_name("mounted elsewhere")
        a.path.rename(hidden)
        a.path.mkdir()
        monkeypatch.setattr(a.folder, "place", lambda: -1)
        report = a.sync()
        assert report.paused == rounds.UNMOUNTED
        assert a.sync(by_hand=True).paused == rounds.UNMOUNTED
        assert a.packs() == []
        a.catalog.facts = a.catalog.facts._replace(place=0)
        assert a.sync().published.packs == 1
        assert len(packs) == 1

    @pytest.mark.parametrize("number", [errno.EIO, errno.EACCES, errno.ESTALE])
    def test_a_folder_that_cannot_be_read_is_not_an_empty_one(self, pair, monkeypatch, number):
        a, _ = pair
        a.write("one")
        a.sync()

        def fail() -> Listing:
            raise OSError(number, "no listing")

        monkeypatch.setattr(a.folder, "listing", fail)
        a.write("two")
        report = a.sync()
        assert report.paused.startswith(rounds.UNREADABLE)
        assert len(a.packs()) == 1
        monkeypatch.undo()
        assert a.sync().published.events == 1

    def test_my_files_that_went_missing_are_published_again_and_nobody_elses(self, pair):
        a, b = pair
        a.write("mine")
        b.write("yours")
        settle(a, b)
        for path in a.packs():
            path.unlink()
        a.sync()
        assert [path.parent.name for path in a.packs()] == [a.replica.hex()]

    def test_a_directory_that_cannot_be_listed_just_now_is_not_published_again(self, pair, monkeypatch):
        a, _ = pair
        a.write("one")
        a.sync()
        full = a.folder.listing()
        monkeypatch.setattr(a.folder, "listing", lambda: Listing([], (f"{STORE.hex()}/",)))
        assert a.sync().published.packs == 0
        monkeypatch.setattr(a.folder, "listing", lambda: full)
        assert a.sync().published.packs == 0

    def test_a_full_replica_and_an_empty_one_lose_nothing(self, pair):
        a, b = pair
        a.write(*(f"{n}" for n in range(20)))
        settle(a, b, a)
        assert equal(a, b)
        assert a.holding.digest().events == 20

    def test_files_appear_and_disappear_between_listing_and_reading(self, pair, monkeypatch):
        a, b = pair
        a.write("one")
        a.sync()
        a.write("two")
        a.sync()
        gone = a.own()[0]
        content = gone.read_bytes()
        real = b.folder.listing

        def listing() -> Listing:
            found = real()
            gone.unlink(missing_ok=True)
            return found

        monkeypatch.setattr(b.folder, "listing", listing)
        report = b.sync()
        assert (report.imported, report.paused, report.pending) == (1, "", 0)
        monkeypatch.undo()
        gone.write_bytes(content)
        b.sync()
        assert equal(a, b)


class TestWhatIsNotWhole:
    def test_a_pack_that_comes_in_ten_parts_is_pending_until_it_is_whole(self, ram):
        a, b = Machine(ram, "A"), Machine(ram, "B")
        a.write(*(f"text {n} 텍스트" for n in range(50)))
        a.sync()
        source = a.packs()[0]
        target = b.path / source.relative_to(a.path)
        target.parent.mkdir(parents=True)
        data = source.read_bytes()
        for part in range(1, 11):
            target.write_bytes(data[: len(data) * part // 10])
            report = b.sync()
            assert report.pending == (part < 10)
            assert b.holding.digest().events == (50 if part == 10 else 0)
        assert equal(a, b)

    def test_a_file_whose_content_comes_later_at_the_same_size_is_read_again_after_a_while(self, ram):
        a, b = Machine(ram, "A"), Machine(ram, "B")
        a.write("late")
        a.sync()
        source = a.packs()[0]
        target = b.path / source.relative_to(a.path)
        target.parent.mkdir(parents=True)
        target.write_bytes(bytes(source.stat().st_size))
        assert b.sync().pending == 1
        target.write_bytes(source.read_bytes())
        assert b.sync().pending == 1
        b.wall += 2 * 60 * 1000
        assert b.sync().pending == 0
        assert equal(a, b)

    def test_a_person_who_asks_has_everything_read_again(self, ram):
        a, b = Machine(ram, "A"), Machine(ram, "B")
        a.write("late")
        a.sync()
        source = a.packs()[0]
        target = b.path / source.relative_to(a.path)
        target.parent.mkdir(parents=True)
        target.write_bytes(bytes(source.stat().st_size))
        b.sync()
        target.write_bytes(source.read_bytes())
        b.sync(by_hand=True)
        assert equal(a, b)

    @pytest.mark.parametrize("number", [errno.EDEADLK, errno.ETIMEDOUT, errno.EIO, errno.EACCES])
    def test_a_file_that_cannot_be_read_now_is_pending_and_read_later(self, pair, monkeypatch, number):
        a, b = pair
        a.write("evicted")
        a.sync()

        def fail(path: str) -> bytes:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(b.folder, "read", fail)
        report = b.sync()
        assert (report.pending, report.refused) == (1, 0)
        assert report.reasons[0][2] == os.strerror(number)
        monkeypatch.undo()
        b.wall += 2 * 60 * 1000
        b.sync()
        assert equal(a, b)
        assert len(a.packs()) == 1

    def test_a_placeholder_is_not_fetched_unless_a_person_asks(self, pair, monkeypatch):
        a, b = pair
        a.write("evicted")
        a.sync()
        real = b.folder.listing
        monkeypatch.setattr(
            b.folder,
            "listing",
            lambda: Listing([entry._replace(stub=True) for entry in real().entries]),
        )
        before = a.packs()[0].read_bytes()
        for _ in range(3):
            b.wall += DAY
            assert b.sync().pending == 1
        assert b.holding.digest().events == 0
        b.sync(by_hand=True)
        assert equal(a, b)
        assert a.packs()[0].read_bytes() == before
        b.wall += DAY
        assert b.sync().pending == 0, "what was taken in once may be evicted"

    def test_damage_is_counted_and_left_alone(self, pair):
        a, b = pair
        a.write("one", "two")
        a.sync()
        path = a.own()[0]
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
        for _ in range(3):
            b.wall += HOUR
            report = b.sync()
            assert (report.states[BAD], report.refused, report.received.new) == (1, 1, 0)
        assert path.read_bytes() == data

    def test_junk_is_no_pack_and_costs_nobody_anything(self, pair):
        a, b = pair
        top = b.path / "memorize"
        top.mkdir()
        (top / "notes.mzp").write_bytes("그냥 메모".encode())
        (top / "random.mzp").write_bytes(random.Random(1).randbytes(5_000))
        (top / "empty.mzp").write_bytes(b"")
        a.write("one")
        settle(a, b)
        assert equal(a, b)
        report = b.sync()
        assert (report.states[OTHER], report.pending) == (2, 1)
        assert {path.name for path in top.iterdir() if path.is_file()} == {"notes.mzp", "random.mzp", "empty.mzp"}


class TestKeys:
    def test_a_pack_under_another_key_is_refused_counted_and_not_relayed(self, pair):
        a, b = pair
        a.write("one")
        settle(a, b)
        stranger = Machine(a.home.parent, "S", a.path, ring(OTHER_SECRET, b"\x09" * 16))
        stranger.write("foreign")
        stranger.sync()
        report = b.sync()
        assert (report.states[UNKNOWN_KEY], report.refused) == (1, 1)
        assert b.holding.digest().events == 1
        assert len(b.own()) == 0

    def test_a_wrong_key_is_found_before_anything_is_written(self, pair):
        a, _ = pair
        a.write("one")
        a.sync()
        wrong = Machine(a.home.parent, "W", a.path, ring(OTHER_SECRET))
        wrong.write("with the wrong key")
        for _ in range(2):
            report = wrong.sync()
            assert report.paused == rounds.OTHER_KEY
            assert wrong.own() == []
        wrong.keys = Keys(ring())
        wrong.sync()
        a.sync()
        assert equal(a, wrong)

    def test_a_pack_under_the_name_of_the_own_key_and_another_secret_is_damage_and_stops_nobody(self, pair):
        a, _ = pair
        a.write("one")
        a.sync()
        keys = ring()
        forged = keys._replace(keys=(keys.keys[0]._replace(secret=OTHER_SECRET),))
        wrong = Machine(a.home.parent, "W", a.path, forged)
        wrong.write("x")
        report = wrong.sync()
        assert (report.paused, report.refused, report.published.events) == ("", 1, 1)

    def test_devices_follow_a_new_key_by_what_the_folder_brings(self, pair):
        a, b = pair
        a.write("before")
        settle(a, b)
        a.keys = Keys(rotate(a.keys.ring, b"\x0d" * 32, b"\x0e" * 24))
        a.write("after")
        a.sync()
        report = b.sync()
        assert report.keys
        assert b.keys.ring.current.secret == b"\x0d" * 32
        assert equal(a, b)
        b.write("under the new key")
        b.sync()
        assert b.catalog.rows[f"{STORE.hex()}/{b.replica.hex()}/{b.own()[0].name}"].key == key_id(b"\x0d" * 32)
        settle(a, b)
        assert equal(a, b)
        count_before = len(a.packs())
        settle(a, b)
        assert len(a.packs()) == count_before

    def test_what_was_sealed_under_a_key_is_read_when_the_key_comes(self, pair):
        a, b = pair
        a.keys = Keys(rotate(a.keys.ring, b"\x0d" * 32, b"\x0e" * 24, by_hand=True))
        a.write("by hand")
        a.sync()
        assert b.sync().states[UNKNOWN_KEY] == 1
        b.keys = Keys(a.keys.ring)
        assert b.sync().states[UNKNOWN_KEY] == 0
        assert equal(a, b)

    def test_a_body_whose_scope_key_is_missing_waits_for_it(self, pair):
        from memorize.sync.ring import renew_scope

        a, b = pair
        project = "0" * 32
        a.keys.ring = renew_scope(a.keys.ring, project, b"\x0f" * 32, b"\x01" * 24)
        scope = a.keys.ring.scope_for(project)
        a.keys.scope_of = lambda envelope: (scope.id, scope.secret)
        a.write("secret of a project 비밀")
        a.sync()
        report = b.sync()
        assert report.received.new == 1
        assert b.holding.digest().events == 0
        b.sync()
        b.keys = Keys(a.keys.ring)
        report = b.sync()
        assert report.received.bodies == 1
        assert equal(a, b)

    def test_what_was_sealed_under_a_destroyed_scope_key_is_published_again_under_the_new_one(self, pair):
        from memorize.sync.ring import renew_scope, spend

        a, b = pair
        project = "0" * 32
        a.keys.ring = renew_scope(a.keys.ring, project, b"\x0f" * 32, b"\x01" * 24)

        def scope_of(envelope):
            scope = a.keys.ring.scope_for(project)
            return scope.id, scope.secret

        a.keys.scope_of = scope_of
        a.write("stays readable 남는다")
        a.sync()
        old = a.packs()
        first = a.keys.ring.scope_for(project).id
        a.keys.ring = renew_scope(a.keys.ring, project, b"\x10" * 32, b"\x02" * 24, b"e" * 32)
        a.keys.ring = spend(a.keys.ring, [project], b"e" * 32)
        assert a.keys.ring.scope_secret(first) is None
        a.sync()
        assert not any(path.exists() for path in old)
        b.keys = Keys(a.keys.ring)
        b.sync()
        assert equal(a, b)


class TestLevels:
    def test_many_small_packs_become_one_and_go_after_a_week(self, pair):
        a, b = pair
        for number in range(9):
            a.write(f"{number} 번")
            a.sync(SMALL)
        levels = sorted(path.name[0] for path in a.own())
        assert levels == ["0"] * 9 + ["1"] * 2
        a.wait(6 * DAY, SMALL)
        assert len(a.own()) == 11
        a.wait(2 * DAY, SMALL)
        assert sorted(path.name[0] for path in a.own()) == ["0", "1", "1"]
        b.sync()
        assert equal(a, b)

    def test_a_superseded_pack_stays_while_what_replaces_it_is_not_there(self, pair):
        a, b = pair
        for number in range(4):
            a.write(f"{number}")
            a.sync(SMALL)
        merged = next(path for path in a.own() if path.name[0] == "1")
        merged.unlink()
        a.wait(8 * DAY, PACE)
        assert len(a.own()) == 4
        b.sync()
        assert equal(a, b)

    def test_too_many_superseded_packs_do_not_wait(self, pair):
        a, _ = pair
        pace = SMALL._replace(kept=3)
        for number in range(24):
            a.write(f"{number}")
            a.sync(pace)
        superseded = [row for row in a.catalog.rows.values() if row.covered]
        assert len(superseded) <= 3

    def test_the_number_of_files_has_a_bound(self, ram):
        a = Machine(ram, "A")
        pace = PACE._replace(fan=(8, 4, 3), superseded=20_000, kept=12)
        most = 0
        for number in range(150):
            a.write(f"{number}")
            a.wall += 1_000
            a.sync(pace)
            most = max(most, len(a.own()))
        live = [row for row in a.catalog.rows.values() if not row.covered]
        assert len(live) < sum(pace.fan) + 2
        assert most <= sum(pace.fan) + pace.kept + 2

    def test_a_device_that_was_away_for_a_month_gets_everything_from_the_merged_packs(self, pair):
        a, b = pair
        b.write("before the journey")
        settle(a, b)
        for number in range(30):
            a.write(f"{number}")
            a.wait(DAY, SMALL)
        b.write("after it")
        settle(a, b)
        assert equal(a, b)
        assert b.holding.digest().events == 32

    def test_what_is_known_from_small_packs_is_not_received_again_from_merged_ones(self, pair):
        a, b = pair
        for number in range(4):
            a.write(f"{number}")
            a.sync(SMALL)
            report = b.sync(SMALL)
        assert report.received == report.received._replace(new=1, known=4)

    def test_a_large_past_is_published_in_few_packs(self, ram):
        a, b = Machine(ram, "A", ram / "f"), Machine(ram, "B", ram / "f")
        noise = random.Random(1)
        a.write(*(noise.randbytes(40_000).hex() for _ in range(300)))
        a.sync()
        assert sorted(path.name[0] for path in a.own()) == ["2", "2"]
        b.sync()
        assert equal(a, b)


class TestRelay:
    def test_events_of_a_device_that_has_no_folder_are_published_for_it(self, pair):
        a, b = pair
        a.write("one")
        settle(a, b)
        alone = Machine(a.home.parent, "P")
        a.holding.receive(alone.write("by a direct connection"))
        a.wait(HOUR)
        b.sync()
        assert equal(a, b)
        assert b.holding.digest().events == 2

    def test_whoever_asks_for_a_round_hands_out_at_once_for_those_that_are_not_here(self, pair):
        a, b = pair
        a.write("one")
        b.write("two")
        settle(a, b)
        alone = Machine(a.home.parent, "P")
        told = alone.write("이쪽에도 저쪽에도 없는 것")
        for machine in pair:
            machine.holding.receive(told)
        a.sync(by_hand=True)
        b.sync(by_hand=True)
        assert [row.events for row in a.catalog.rows.values() if is_of(row.path, a.replica)] == [1, 1]
        assert [row.events for row in b.catalog.rows.values() if is_of(row.path, b.replica)] == [1]

    def test_whoever_asks_for_a_round_does_not_hand_out_what_those_that_are_here_will(self, pair):
        a, b = pair
        a.write("one")
        b.write("two")
        settle(a, b)
        a.holding.receive(b.write("곧 스스로 내놓을 것"))
        assert a.sync(by_hand=True).waiting == 1
        assert b.sync().published.events == 1
        assert a.sync(by_hand=True).waiting == 0

    def test_of_several_that_could_relay_only_one_does(self, pair):
        a, b = pair
        a.write("one")
        b.write("two")
        settle(a, b)
        alone = Machine(a.home.parent, "P")
        for envelope in alone.write(*(f"{n}" for n in range(5))):
            for machine in (a, b):
                machine.holding.receive([envelope])
                machine.wall += 30_000
                machine.sync()
        for _ in range(30):
            for machine in (a, b):
                machine.wall += 60_000
                machine.sync()
        carried = [
            run
            for row in a.catalog.rows.values()
            for run in row.runs
            if run.writer == alone.writer and row.state == TAKEN
        ]
        assert sum(run.high - run.low + 1 for run in carried) == 5

    def test_a_retired_device_is_relayed_and_its_files_go(self, pair):
        a, b = pair
        b.write("from a device that is sold", "두 번째")
        settle(a, b)
        assert a.sync(retired={b.replica}).published.events == 2
        a.sync(retired={b.replica})
        assert b.own() == []
        c = Machine(a.home.parent, "C", a.path)
        c.sync()
        assert equal(a, b, c)


class TestErasure:
    def _erase(self, machine: Machine, target: bytes) -> None:
        from memorize.ids import random_id
        from memorize.log import codec
        from memorize.model import Header
        from memorize.sync.port import Envelope

        machine.seq += 1
        lamport = machine.holding.top + 1
        fields = (1, STORE, machine.replica, machine.writer, machine.seq, machine.prev, lamport, (), ERASE_REQUESTED)
        made = codec.encode(
            Header(*fields, 0, b"", b"", 0, b"", 1, machine.wall),
            codec.tidy({"ids": [target], "reason": "test"}),
            random_id(),
        )
        machine.prev = made.event.id
        machine.holding.receive([Envelope(made.event.id, lamport, made.header, made.body)])
        assert target in machine.holding.erased

    def _bodies(self, machine: Machine) -> set[bytes]:
        return {
            one.id
            for path in machine.packs()
            for one in decode(path.read_bytes(), lambda _: SECRET).envelopes
            if one.body is not None
        }

    def test_packs_that_hold_an_erased_body_are_replaced_at_once(self, pair):
        a, b = pair
        target = a.write("keep", "비밀번호 erase me")[1].id
        a.write("more")
        settle(a, b)
        assert target in self._bodies(a)
        self._erase(b, target)
        settle(b, a)
        assert target in a.holding.erased
        assert target not in self._bodies(a)
        assert equal(a, b)
        c = Machine(a.home.parent, "C", a.path)
        c.sync()
        assert equal(a, b, c)

    def test_superseded_packs_with_the_body_do_not_wait_for_their_week(self, pair):
        a, b = pair
        target = b""
        for number in range(4):
            target = a.write(f"{number}")[0].id
            a.sync(SMALL)
        assert len(a.own()) == 5
        self._erase(a, target)
        a.sync(SMALL)
        assert target not in self._bodies(a)
        b.sync()
        assert equal(a, b)
        kept = len(a.own())
        a.sync(SMALL)
        assert len(a.own()) == kept

    def test_a_relayed_body_goes_too(self, pair):
        a, b = pair
        alone = Machine(a.home.parent, "P")
        target = alone.write("relayed 비밀")[0].id
        a.write("one")
        a.sync()
        a.holding.receive(alone.holding.envelopes.values())
        a.wait(HOUR)
        assert target in self._bodies(a)
        b.sync()
        self._erase(b, target)
        settle(b, a)
        assert target not in self._bodies(a)

    def test_packs_of_an_earlier_incarnation_are_cleansed_too(self, pair):
        """A state directory that was moved is another replica; nobody else will look after what the old one made."""
        a, b = pair
        target = a.write("before the move 비밀")[0].id
        a.sync()
        a.replica = bytes(15) + b"\x09"
        a.begin_writer()
        a.write("after it")
        settle(a, b)
        self._erase(b, target)
        settle(b, a)
        assert target not in self._bodies(a)
        c = Machine(a.home.parent, "C", a.path)
        c.sync()
        assert equal(a, b, c)

    def test_the_replacement_is_there_before_the_old_pack_goes(self, pair, monkeypatch):
        a, b = pair
        target = a.write("x", "y")[0].id
        a.sync()
        self._erase(a, target)
        real = a.folder.create

        def full(path: str, data: bytes) -> None:
            raise OSError(errno.ENOSPC, "full")

        monkeypatch.setattr(a.folder, "create", full)
        report = a.sync()
        assert report.paused.startswith(rounds.UNWRITABLE)
        assert len(a.own()) == 1
        monkeypatch.setattr(a.folder, "create", real)
        a.sync()
        assert target not in self._bodies(a)
        b.sync()
        assert equal(a, b)

    def test_a_month_old_copy_of_the_folder_cannot_bring_a_body_back(self, pair):
        a, b = pair
        target = a.write("erase me")[0].id
        settle(a, b)
        old = {path: path.read_bytes() for path in a.packs()}
        self._erase(a, target)
        settle(a, b, a)
        for path, data in old.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        a.wait(DAY)
        b.wait(DAY)
        assert equal(a, b)
        assert target in b.holding.erased
        assert target not in self._bodies(a), "an old own pack that a tool brought back is replaced again"


class TestWhoAmI:
    def test_a_restored_device_learns_what_it_had_written(self, pair):
        a, b = pair
        a.write("before the backup")
        settle(a, b)
        backup, writer = a.holding.copy(), (a.writer, a.seq, a.prev)
        a.write("after the backup")
        a.sync()
        a.holding, (a.writer, a.seq, a.prev) = backup, writer
        report = a.sync()
        assert report.ahead
        assert a.holding.digest().events == 2

    def test_twins_are_both_published(self, pair):
        """A virtual machine was copied while it ran: two write as one writer of one replica, into one directory."""
        a, _ = pair
        a.write("common")
        a.sync()
        twin = Machine(a.home.parent, "T", a.path)
        twin.holding, twin.replica = a.holding.copy(), a.replica
        twin.writer, twin.seq, twin.prev = a.writer, a.seq, a.prev
        twin.holding.mine = set(a.holding.mine)
        a.write("on the one")
        twin.write("on the other", "and more")
        settle(a, twin)
        a.write("a third")
        settle(a, twin, a)
        assert equal(a, twin)
        c = Machine(a.home.parent, "C", a.path)
        c.sync()
        assert equal(a, c)
        assert c.holding.digest().events == 5
        count_before = len(a.packs())
        settle(a, twin)
        assert len(a.packs()) == count_before

    def test_a_catalog_that_is_lost_is_made_anew_from_the_folder(self, pair):
        a, b = pair
        for number in range(9):
            a.write(f"{number}")
            a.sync(SMALL)
        settle(a, b)
        before = len(a.packs())
        a.catalog = Catalog()
        report = a.sync(SMALL)
        assert (report.published.packs, report.ahead, report.received.new) == (0, False, 0)
        assert len(a.packs()) <= before + 1
        assert equal(a, b)


class TestTrouble:
    def test_a_full_disk_pauses_publishing_and_the_next_round_goes_on(self, pair, monkeypatch):
        a, b = pair
        a.write("one")

        def full(path: str, data: bytes) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(a.folder, "create", full)
        report = a.sync()
        assert report.paused == f"{rounds.UNWRITABLE}: No space left on device"
        monkeypatch.undo()
        a.sync()
        b.sync()
        assert equal(a, b)

    def test_a_read_only_folder_is_still_read(self, pair, monkeypatch):
        a, b = pair
        a.write("one")
        a.sync()
        b.write("mine")

        def refuse(path: str, data: bytes) -> None:
            raise PermissionError(errno.EACCES, "Permission denied")

        monkeypatch.setattr(b.folder, "create", refuse)
        report = b.sync()
        assert report.received.new == 1
        assert report.paused.startswith(rounds.UNWRITABLE)

    def test_a_lie_about_what_is_inside_costs_its_teller_alone(self, pair):
        """Bytes that no event has, sealed under our key: counted, dropped, and everything else goes on."""
        a, b = pair
        good = a.write("good")[0]
        forged = good._replace(body=b"\0" * len(good.body))
        key = (key_id(SECRET), SECRET)
        made = encode([forged], 0, STORE, key, bytes(32), b"\x07" * 16, nonce=os.urandom)
        place = a.path / "memorize" / STORE.hex() / ("07" * 16)
        place.mkdir(parents=True)
        (place / made.name).write_bytes(made.data)
        report = b.sync()
        assert (report.received.bad, report.received.new) == (1, 0)
        a.sync()
        b.sync()
        assert equal(a, b)


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))), ids=lambda order: "".join(map(str, order)))
def test_packs_may_arrive_in_any_order(ram, order):
    a, b = Machine(ram, "A"), Machine(ram, "B")
    for number in range(4):
        a.write(f"{number} 순서")
        a.sync()
    packs = a.packs()
    for number in order:
        target = b.path / packs[number].relative_to(a.path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(packs[number].read_bytes())
        b.sync()
    assert equal(a, b)
    assert b.holding.heads()[0].seq == 4


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_a_random_history_ends_with_equal_sets(ram, seed):
    """Three devices, a folder that loses and keeps and brings back files: in the end all hold what was captured."""
    chance = random.Random(seed)
    machines = [Machine(ram, name, ram / "f") for name in "ABC"]
    written = 0
    attic: dict[Path, bytes] = {}
    for _ in range(60):
        machine = chance.choice(machines)
        deed = chance.random()
        if deed < 0.4:
            machine.write(*(f"{written + n} 기억" for n in range(chance.randrange(1, 4))))
            written = sum(one.seq for one in machines)
        elif deed < 0.8:
            machine.wall += chance.randrange(-DAY, 2 * DAY)
            machine.sync(SMALL)
        elif deed < 0.9 and machine.packs():
            path = chance.choice(machine.packs())
            attic[path] = path.read_bytes()
            path.unlink()
        elif attic:
            path = chance.choice(sorted(attic))
            path.write_bytes(attic.pop(path)[: chance.choice((None, 100))])
    for _ in range(3):
        for machine in machines:
            machine.wait(30 * HOUR, SMALL)
    assert equal(*machines)
    assert machines[0].holding.digest().events == written
    assert all(row.state in (TAKEN, PENDING) for row in machines[0].catalog.rows.values())
