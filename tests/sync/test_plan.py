"""What is to be done in a folder, decided without one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memorize.sync.catalog import TAKEN, Row
from memorize.sync.chains import Link, Run
from memorize.sync.folder import Entry
from memorize.sync.intervals import Intervals
from memorize.sync.packfile import BAD, PENDING, UNKNOWN_KEY
from memorize.sync.plan import (
    PACE,
    back_off,
    deletable,
    exactly_uncarried,
    grouped,
    is_of,
    level_for,
    level_of,
    merges,
    relays,
    soiled,
    to_examine,
    uncarried,
)
from memorize.sync.port import Span

W, V = b"w" * 16, b"v" * 16
spans = st.lists(st.tuples(st.sampled_from([W, V]), st.integers(1, 60), st.integers(0, 20)), max_size=30)


def row(name: str, number: int = 1, size: int = 10, **values: object) -> Row:
    values.setdefault("state", TAKEN)
    return Row(name, size, values.pop("state"), number, **values)


class TestIntervals:
    @given(spans, spans)
    def test_they_are_the_set_of_their_numbers(self, some, others):
        made = Intervals(Span(writer, low, low + more) for writer, low, more in some)
        members = {(writer, n) for writer, low, more in some for n in range(low, low + more + 1)}
        assert {(one.writer, n) for one in made.spans() for n in range(one.low, one.high + 1)} == members
        for one, after in zip(made.spans(), made.spans()[1:], strict=False):
            assert one.writer != after.writer or one.high + 1 < after.low
        for writer, low, more in others:
            asked = {(writer, n) for n in range(low, low + more + 1)}
            assert made.covers(writer, low, low + more) == (asked <= members)
            assert made.meets(writer, low, low + more) == bool(asked & members)
            left = made.without(writer, low, low + more)
            assert {(one.writer, n) for one in left for n in range(one.low, one.high + 1)} == asked - members


class TestNames:
    def test_the_level_is_the_first_word_of_a_name(self):
        assert [level_of(name) for name in ("a/b/2-00.mzp", "0-1", "x-1", "12-1", "٣-1", "", "3")] == [
            2, 0, 0, 0, 0, 0, 3,
        ]  # fmt: skip

    def test_a_directory_is_mine_in_any_case(self):
        assert is_of(f"AA/{W.hex().upper()}/0-1.mzp", W)
        assert not is_of(f"AA/{V.hex()}/0-1.mzp", W)
        assert not is_of(f"{W.hex()}", W)


class TestReading:
    def _names(self, entries, rows, observed=0, **options):
        options = {"by_hand": False, "keys": (), "scopes": (), "held": Intervals(), **options}
        found = to_examine(
            entries,
            {one.path: one for one in rows},
            observed,
            options["held"],
            lambda key: key in options["keys"],
            lambda key: key in options["scopes"],
            by_hand=options["by_hand"],
        )
        return [entry.path for entry in found]

    def test_new_files_and_those_of_another_size_are_read(self):
        assert self._names([Entry("new", 10)], []) == ["new"]
        assert self._names([Entry("old", 10)], [row("old")]) == []
        assert self._names([Entry("old", 11)], [row("old")]) == ["old"]

    def test_what_was_no_use_is_read_again_after_a_while_or_when_asked(self):
        for state in (PENDING, BAD):
            waiting = [row("a", state=state, due=100)]
            assert self._names([Entry("a", 10)], waiting, 99) == []
            assert self._names([Entry("a", 10)], waiting, 100) == ["a"]
            assert self._names([Entry("a", 10)], waiting, 0, by_hand=True) == ["a"]

    def test_a_placeholder_is_looked_at_when_it_is_one_no_more(self):
        waiting = [row("a", state=PENDING, stub=True, due=100)]
        assert self._names([Entry("a", 10, True)], waiting, 1_000) == []
        assert self._names([Entry("a", 10, False)], waiting, 0) == ["a"]
        assert self._names([Entry("a", 10, True)], [row("a")], 1_000) == []

    def test_keys_that_came_open_what_waited_for_them(self):
        waiting = [row("a", state=UNKNOWN_KEY, key=b"k"), row("b", missing=(b"s",))]
        entries = [Entry("a", 10), Entry("b", 10)]
        assert self._names(entries, waiting) == []
        assert self._names(entries, waiting, keys=(b"k",)) == ["a"]
        assert self._names(entries, waiting, scopes=(b"s",)) == ["b"]

    def test_what_was_lost_here_is_read_again(self):
        taken = [row("a", runs=(Run(W, 1, 5, b"i" * 32),))]
        assert self._names([Entry("a", 10)], taken, held=Intervals([Span(W, 1, 5)])) == []
        assert self._names([Entry("a", 10)], taken, held=Intervals([Span(W, 1, 4)])) == ["a"]

    def test_merged_packs_come_first(self):
        names = ["x/y/0-1.mzp", "x/y/3-1.mzp", "x/y/1-1.mzp"]
        assert self._names([Entry(name, 1) for name in names], []) == [names[1], names[2], names[0]]

    def test_patience_grows_up_to_a_bound(self):
        waits = [back_off(tries, PACE) for tries in range(40)]
        assert waits[0] == PACE.again
        assert waits == sorted(waits)
        assert waits[-1] == PACE.again_max


class TestPublishing:
    def test_what_is_held_and_in_no_pack_is_published(self):
        held = {W: (b"r", [Span(W, 1, 10)]), V: (b"r", [Span(V, 1, 3)])}
        assert uncarried(held, Intervals([Span(W, 1, 4), Span(W, 6, 6), Span(V, 1, 9)])) == {
            W: [Span(W, 5, 5), Span(W, 7, 10)]
        }

    def _chain(self, start: bytes, *names: bytes, seq: int) -> dict[bytes, Link]:
        links, prev = {}, start
        for number, name in enumerate(names):
            links[name] = Link(b"r", W, seq + number, prev, seq + number)
            prev = name
        return links

    def test_of_twins_only_what_a_run_leads_back_to_is_carried(self):
        links = self._chain(b"", b"1", b"2", b"3a", b"4a", seq=1) | self._chain(b"2", b"3b", b"4b", b"5b", seq=3)
        runs = [Run(W, 1, 4, b"4a")]
        assert sorted(exactly_uncarried(links, runs)) == [b"3b", b"4b", b"5b"]
        assert exactly_uncarried(links, [*runs, Run(W, 3, 5, b"5b")]) == []
        assert sorted(exactly_uncarried(links, [])) == sorted(links)

    def test_where_a_number_is_missing_the_rest_counts_by_number(self):
        links = self._chain(b"", b"1", b"2", seq=1) | self._chain(b"lost", b"4", seq=4)
        assert exactly_uncarried(links, [Run(W, 1, 4, b"4")]) == []

    def test_large_packs_of_new_events_start_higher(self):
        assert [level_for(size, PACE) for size in (0, 300_000, 3_000_000)] == [0, 1, 2]


class TestRelaying:
    ME, OTHER, THIRD = b"\x01" * 16, b"\x02" * 16, b"\x03" * 16

    def test_one_that_publishes_itself_is_given_a_day(self):
        missing, waiting = [(W, self.OTHER)], {}
        for observed, due in ((0, set()), (PACE.relay + 6 * PACE.step, {W})):
            found, waiting = relays(missing, waiting, {self.OTHER}, {self.OTHER}, self.ME, observed, PACE)
            assert found == due
            assert waiting == {W: 0}

    def test_one_that_was_never_here_waits_only_for_turns(self):
        when = {
            me: next(
                observed
                for observed in range(0, 7 * PACE.step, PACE.step)
                if relays([(W, b"\x09" * 16)], {W: 0}, {self.ME, self.OTHER, self.THIRD}, set(), me, observed, PACE)[0]
            )
            for me in (self.ME, self.OTHER, self.THIRD)
        }
        assert sorted(when.values()) == [0, PACE.step, 2 * PACE.step]

    def test_what_is_carried_again_waits_no_more(self):
        assert relays([], {W: 0}, set(), set(), self.ME, 5, PACE) == (set(), {})


class TestTidying:
    def test_enough_small_packs_make_a_larger_one_cut_at_its_size(self):
        small = [row(f"a/b/0-{n}.mzp", n) for n in range(PACE.fan[0])]
        assert merges(small[:-1], PACE) == []
        assert merges(small, PACE) == [(1, small)]
        large = [row(f"a/b/1-{n}.mzp", n, 3 * 1024 * 1024) for n in range(PACE.fan[1])]
        groups = merges(large, PACE)
        assert {level for level, _ in groups} == {2}
        assert {len(group) for _, group in groups} == {2}

    def test_packs_that_cannot_be_joined_stay_as_they_are(self):
        full = [row(f"a/b/2-{n}.mzp", n, PACE.caps[3]) for n in range(PACE.fan[2])]
        assert merges(full, PACE) == []

    @given(st.lists(st.integers(1, 50), max_size=30), st.integers(1, 100))
    def test_groups_keep_the_order_and_the_bound(self, sizes, cap):
        rows = [row(f"{n}", n, size) for n, size in enumerate(sizes)]
        groups = grouped(reversed(rows), cap)
        assert [one for group in groups for one in group] == rows
        assert all(len(group) == 1 or sum(one.size for one in group) <= cap for group in groups)

    def test_a_superseded_pack_goes_when_its_time_has_come_and_what_holds_it_is_safe(self):
        old = row("0-1", 1, covered="1-1", since=100)
        for final, kept in (
            (row("1-1", 2), False),
            (row("1-1", 2, state=BAD), True),
            (row("1-1", 2, soiled=True), True),
            (row("1-1", 2, covered="lost"), True),
        ):
            own = {"0-1": old, "1-1": final}
            assert (deletable(own, 100 + PACE.superseded, PACE) == []) == kept
            assert deletable(own, 99 + PACE.superseded, PACE) == []
        assert deletable({"0-1": old}, 10**15, PACE) == []

    def test_packs_that_name_each_other_keep_each_other(self):
        own = {"a": row("a", covered="b"), "b": row("b", covered="a"), "c": row("c", covered="c")}
        assert deletable(own, 10**15, PACE) == []

    def test_more_than_enough_superseded_packs_go_oldest_first(self):
        pace = PACE._replace(kept=2)
        own = {f"{n}": row(f"{n}", n, covered="final", since=n) for n in range(5)} | {"final": row("final", 9)}
        assert [one.path for one in deletable(own, 10, pace)] == ["0", "1", "2"]

    def test_packs_with_an_erased_event_are_found_by_its_place(self):
        rows = [row("a", runs=(Run(W, 1, 5, b""),)), row("b", runs=(Run(W, 6, 9, b""), Run(V, 1, 1, b"")))]
        assert soiled(rows, Intervals([Span(V, 1, 1)])) == rows[1:]
        assert soiled(rows, Intervals([Span(W, 5, 6)])) == rows
        assert soiled(rows, Intervals([Span(W, 10, 10)])) == []
