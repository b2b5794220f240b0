"""Keys as values: rotation, wrapping, joining, scopes. And the line that carries them."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memorize.errors import BadKeyLine
from memorize.sync import ring as rings
from memorize.sync.gifts import for_peer
from memorize.sync.keyline import LINE_BYTES_MAX, PREFIX, export_line, import_line
from memorize.sync.ring import (
    JOINED,
    LEFT,
    SAME,
    SETTLED,
    Keyring,
    StoreKey,
    adopt,
    key_id,
    merged,
    offer,
    renew_scope,
    rotate,
    spend,
    unwrap,
    wrap,
    wrapped_from,
    wrapped_row,
)
from tests.counts import count

PROJECT = "0123456789abcdef" * 2
OTHER = "fedcba9876543210" * 2
CAUSE = b"\x07" * 32


def _secret(number: int) -> bytes:
    return number.to_bytes(32, "big")


def _salt(number: int) -> bytes:
    return number.to_bytes(24, "big")


def _ring(number: int) -> Keyring:
    store = bytes([number]) * 16
    return Keyring(store, (StoreKey(key_id(_secret(number)), _secret(number), store),))


A, B, C = _ring(1), _ring(2), _ring(3)


# -- wrapping -----------------------------------------------------------------------------------------------------


def test_a_wrapped_key_comes_out_with_the_old_one_only() -> None:
    new, old = StoreKey(key_id(_secret(9)), _secret(9), A.store, 1), A.current
    wrapped = wrap(new, old, _salt(1))
    assert unwrap(wrapped, old.secret) == new.secret
    assert unwrap(wrapped, B.current.secret) is None
    assert new.secret not in wrapped.sealed


@given(st.integers(0, len(rings.Wrapped._fields) - 1), st.integers(0, 255))
def test_a_wrapped_key_of_which_anything_was_changed_does_not_come_out(field: int, bit: int) -> None:
    wrapped = wrap(StoreKey(key_id(_secret(9)), _secret(9), A.store, 1), A.current, _salt(1))
    row = wrapped_row(wrapped)
    value = row[field]
    if isinstance(value, bytes) and value:
        at = bit % (8 * len(value))
        row[field] = value[: at // 8] + bytes([value[at // 8] ^ 1 << at % 8]) + value[at // 8 + 1 :]
    elif isinstance(value, int):
        row[field] = value + 1
    else:
        row[field] = "scope"
    changed = wrapped_from(row)
    assert changed is None or unwrap(changed, A.current.secret) is None


def test_the_same_key_wrapped_twice_looks_different() -> None:
    new = StoreKey(key_id(_secret(9)), _secret(9), A.store, 1)
    assert wrap(new, A.current, _salt(1)).sealed != wrap(new, A.current, _salt(2)).sealed


@settings(max_examples=count("rows that are no keys", quick=50, full=300))
@given(st.none() | st.text() | st.lists(st.binary(max_size=40) | st.text(max_size=40) | st.integers(), max_size=10))
def test_anything_else_than_a_row_is_no_wrapped_key(row: object) -> None:
    assert wrapped_from(row) is None


# -- rotation -----------------------------------------------------------------------------------------------------


def test_after_a_rotation_the_new_key_is_current_and_the_old_one_readable() -> None:
    after = rotate(A, _secret(9), _salt(1))
    assert after.current.secret == _secret(9)
    assert after.find(A.current.id) == A.current.secret
    assert after.older == A.keys


def test_a_device_that_missed_several_rotations_follows_whatever_the_order() -> None:
    ahead = A
    for number in range(20, 23):
        ahead = rotate(ahead, _secret(number), _salt(number))
    for order in permutations(ahead.wrapped):
        assert adopt(A, order).current == ahead.current


def test_two_devices_that_rotate_at_once_come_to_the_same_key() -> None:
    one, other = rotate(A, _secret(20), _salt(20)), rotate(A, _secret(21), _salt(21))
    assert adopt(one, other.wrapped).current == adopt(other, one.wrapped).current


def test_a_rotation_by_hand_leads_nobody_to_the_new_key() -> None:
    ahead = rotate(A, _secret(20), _salt(20), by_hand=True)
    assert adopt(A, ahead.wrapped) == A
    after, outcome = merged(A, offer(ahead), _salt(1))
    assert outcome == SAME
    assert after.current == ahead.current


def test_a_key_that_is_wrapped_under_an_unknown_one_changes_nothing() -> None:
    assert adopt(B, rotate(A, _secret(20), _salt(20)).wrapped) == B


def test_adopting_twice_is_adopting_once() -> None:
    wrapped = rotate(A, _secret(20), _salt(20)).wrapped
    once = adopt(A, wrapped)
    assert adopt(once, wrapped) == once


# -- joining ------------------------------------------------------------------------------------------------------


def test_joining_takes_over_the_other_store_and_keeps_the_own_key() -> None:
    after, outcome = merged(A, offer(B), _salt(1))
    assert outcome == JOINED
    assert after.store == B.store
    assert after.current == B.current
    assert after.find(A.current.id) == A.current.secret
    assert after.left == {A.store}


def test_joining_again_changes_nothing() -> None:
    once, _ = merged(A, offer(B), _salt(1))
    again, outcome = merged(once, offer(B), _salt(2))
    assert (again, outcome) == (once, SAME)


def test_a_store_that_was_left_is_not_entered_again_by_an_old_line() -> None:
    joined, _ = merged(A, offer(B), _salt(1))
    again, outcome = merged(joined, offer(A), _salt(2))
    assert (again, outcome) == (joined, LEFT)


def test_another_device_of_the_store_that_was_left_follows_by_what_packs_carry() -> None:
    joined, _ = merged(A, offer(B), _salt(1))
    follower = adopt(A, joined.wrapped)
    assert follower.store == B.store
    assert follower.current == B.current


@pytest.mark.parametrize("first", [0, 1])
def test_two_devices_that_each_joined_the_other_come_to_one_store(first: int) -> None:
    pair = [merged(A, offer(B), _salt(1))[0], merged(B, offer(A), _salt(2))[0]]
    assert pair[0].store == B.store
    assert pair[1].store == A.store
    pair[first], outcome = merged(pair[first], offer(pair[1 - first]), _salt(3))
    pair[1 - first], second = merged(pair[1 - first], offer(pair[first]), _salt(4))
    assert pair[0].store == pair[1].store == min(A.store, B.store)
    assert pair[0].current == pair[1].current
    assert {outcome, second} == {SETTLED, SAME} or outcome == second == SETTLED


def test_two_devices_that_each_joined_the_other_come_to_one_store_by_packs_alone() -> None:
    one, other = merged(A, offer(B), _salt(1))[0], merged(B, offer(A), _salt(2))[0]
    assert adopt(one, other.wrapped).store == adopt(other, one.wrapped).store == min(A.store, B.store)


@settings(max_examples=count("circles of joining devices", quick=50, full=500))
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=12), st.randoms(use_true_random=False))
def test_devices_that_join_each_other_in_any_order_come_to_one_store(pairs: list[tuple[int, int]], chance) -> None:  # type: ignore[no-untyped-def]
    start = [_ring(number) for number in range(1, 5)]
    devices = list(start)
    for to, of in pairs:  # lines that are given at any time, old ones too
        given_one = chance.choice([start[of], devices[of]])
        devices[to], _ = merged(devices[to], offer(given_one), _salt(chance.getrandbits(64)))
    for _ in range(6):  # then everybody meets everybody, as peers do
        for to in range(4):
            for of in range(4):
                devices[to], _ = merged(devices[to], offer(devices[of]), _salt(chance.getrandbits(64)))
    assert len({device.store for device in devices}) == 1
    assert len({device.current for device in devices}) == 1
    assert {key.id for key in devices[0].keys} == {one.current.id for one in start}


# -- scopes -------------------------------------------------------------------------------------------------------


def test_a_project_without_a_scope_has_no_key() -> None:
    assert A.scope_for(PROJECT) is None
    on = renew_scope(A, PROJECT, _secret(30), _salt(30))
    found = on.scope_for(PROJECT)
    assert found is not None
    assert on.scope_secret(found.id) == _secret(30)
    assert on.scope_for(OTHER) is None


def test_the_first_scope_key_of_a_project_is_carried_by_no_pack() -> None:
    assert renew_scope(A, PROJECT, _secret(30), _salt(30)).wrapped == ()


def test_after_an_erasure_devices_follow_to_the_new_scope_key_and_the_old_one_is_destroyed() -> None:
    asking = renew_scope(A, PROJECT, _secret(30), _salt(30))
    behind = asking
    asking = renew_scope(asking, PROJECT, _secret(31), _salt(31), CAUSE)
    carried = asking.wrapped
    asking = spend(asking, [PROJECT], CAUSE)
    old, new = key_id(_secret(30)), key_id(_secret(31))
    assert asking.scope_secret(old) is None
    assert old in asking.gone
    behind = adopt(behind, carried)
    behind = spend(behind, [PROJECT], CAUSE)
    assert behind.scope_secret(old) is None
    assert behind.scope_secret(new) == _secret(31)


def test_a_device_that_acknowledges_before_the_new_key_came_keeps_the_old_one_until_then() -> None:
    behind = renew_scope(A, PROJECT, _secret(30), _salt(30))
    asking = renew_scope(behind, PROJECT, _secret(31), _salt(31), CAUSE)
    behind = spend(behind, [PROJECT], CAUSE)
    old = key_id(_secret(30))
    assert behind.scope_secret(old) is not None
    behind = adopt(behind, asking.wrapped)
    assert behind.scope_secret(old) is None
    assert behind.scope_for(PROJECT) == asking.scope_for(PROJECT)


def test_acknowledging_twice_does_not_destroy_the_key_that_the_erasure_brought() -> None:
    asking = renew_scope(A, PROJECT, _secret(30), _salt(30))
    asking = renew_scope(asking, PROJECT, _secret(31), _salt(31), CAUSE)
    once = spend(asking, [PROJECT], CAUSE)
    assert spend(once, [PROJECT], CAUSE) == once
    later = renew_scope(once, PROJECT, _secret(32), _salt(32))
    assert later.scope_secret(key_id(_secret(31))) is not None, "made by hand: nothing was erased since"


def test_a_destroyed_scope_key_comes_back_neither_by_a_line_nor_by_a_pack() -> None:
    first = renew_scope(A, PROJECT, _secret(30), _salt(30))
    second = renew_scope(first, PROJECT, _secret(31), _salt(31), CAUSE)
    done = spend(renew_scope(second, PROJECT, _secret(32), _salt(32), b"\x08" * 32), [PROJECT], b"\x08" * 32)
    assert {key_id(_secret(30)), key_id(_secret(31))} <= done.gone
    again, _ = merged(adopt(done, second.wrapped), offer(second), _salt(1))
    assert again.scopes == done.scopes


def test_a_line_that_tells_of_destroyed_keys_has_them_destroyed() -> None:
    behind = renew_scope(A, PROJECT, _secret(30), _salt(30))
    ahead = spend(renew_scope(behind, PROJECT, _secret(31), _salt(31), CAUSE), [PROJECT], CAUSE)
    behind, _ = merged(behind, offer(ahead), _salt(1))
    assert behind.scopes == ahead.scopes


@pytest.mark.parametrize("theirs", range(32, 40))
def test_of_two_erasures_at_once_one_device_that_still_had_the_old_key_leads_the_other_to_the_new_one(
    theirs: int,
) -> None:
    other = b"\x08" * 32
    both = renew_scope(A, PROJECT, _secret(30), _salt(30))
    one = spend(renew_scope(both, PROJECT, _secret(31), _salt(31), CAUSE), [PROJECT], CAUSE)
    two = renew_scope(both, PROJECT, _secret(theirs), _salt(theirs), other)
    assert one.scope_secret(key_id(_secret(30))) is None
    two = adopt(two, one.wrapped)
    for cause in (CAUSE, other):
        two = spend(two, [PROJECT], cause)
    one = spend(adopt(one, two.wrapped), [PROJECT], other)
    assert one.scope_for(PROJECT) == two.scope_for(PROJECT)
    assert adopt(one, two.wrapped) == one
    assert adopt(two, one.wrapped) == two
    away = adopt(both, (*one.wrapped, *two.wrapped))  # it reads the packs of both
    assert away.scope_for(PROJECT) == one.scope_for(PROJECT)


def test_a_scope_that_is_switched_off_is_off_on_devices_that_follow() -> None:
    on = renew_scope(A, PROJECT, _secret(30), _salt(30))
    off = renew_scope(on, PROJECT, b"", _salt(31))
    assert off.scope_for(PROJECT) is None
    follower = adopt(on, off.wrapped)
    assert follower.scope_for(PROJECT) is None
    assert follower.scope_secret(key_id(_secret(30))) == _secret(30), "what was sealed stays readable"
    assert renew_scope(follower, PROJECT, _secret(32), _salt(32)).scope_for(PROJECT) is not None


def test_a_scope_needs_the_key_of_a_project() -> None:
    with pytest.raises(ValueError):
        renew_scope(A, "결제", _secret(30), _salt(30))


# -- the line -----------------------------------------------------------------------------------------------------


def _full() -> Keyring:
    ring = rotate(merged(A, offer(B), _salt(1))[0], _secret(9), _salt(2))
    ring = renew_scope(renew_scope(ring, PROJECT, _secret(30), _salt(30)), OTHER, _secret(31), _salt(31))
    ring = renew_scope(ring, OTHER, b"", _salt(32))
    return spend(renew_scope(ring, PROJECT, _secret(33), _salt(33), CAUSE), [PROJECT], CAUSE)


def test_a_line_gives_back_what_it_was_made_of() -> None:
    line = export_line(offer(_full()))
    assert line.startswith(PREFIX)
    assert "\n" not in line
    assert line.isascii()
    assert import_line(f"  {line}\r\n") == offer(_full())
    assert import_line(line.encode()) == offer(_full())


@settings(max_examples=count("damaged key lines", quick=100, full=500))
@given(st.data())
def test_a_line_that_was_damaged_anywhere_is_refused(data: st.DataObject) -> None:
    line = export_line(offer(_full()))
    at = data.draw(st.integers(0, len(line) - 1))
    kind = data.draw(st.sampled_from(["cut", "changed", "lost"]))
    damaged = {"cut": line[:at], "lost": line[:at] + line[at + 1 :], "changed": f"{line[:at]}키{line[at + 1 :]}"}[kind]
    with pytest.raises(BadKeyLine):
        import_line(damaged)


@settings(max_examples=count("damaged key lines", quick=100, full=500))
@given(st.data())
def test_a_line_with_another_letter_in_it_is_refused(data: st.DataObject) -> None:
    line = export_line(offer(_full()))
    at = data.draw(st.integers(len(PREFIX), len(line) - 1))
    other = data.draw(st.sampled_from("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"))
    changed = line[:at] + other + line[at + 1 :]
    if changed == line:
        return
    try:
        found = import_line(changed)
    except BadKeyLine:
        return
    assert found == offer(_full()), "only unused bits of the last letter may differ"


@given(st.binary(max_size=200) | st.text(max_size=200))
def test_anything_else_than_a_line_is_refused(text: bytes | str) -> None:
    with pytest.raises(BadKeyLine):
        import_line(text)


@pytest.mark.parametrize("text", ["", " \n", "x" * (LINE_BYTES_MAX + 1), f"{PREFIX}\n{PREFIX}", PREFIX])
def test_nothing_too_much_and_two_lines_are_refused(text: str) -> None:
    with pytest.raises(BadKeyLine):
        import_line(text)


# -- what peers give ----------------------------------------------------------------------------------------------


def test_a_peer_is_given_the_scope_keys_and_they_come_out_with_the_store_key_only() -> None:
    ahead = renew_scope(A, PROJECT, _secret(30), _salt(30))
    rows = for_peer(ahead, lambda: _salt(77))
    assert adopt(A, rows).scope_for(PROJECT) == ahead.scope_for(PROJECT)
    assert adopt(B, rows) == B
    behind = rotate(A, _secret(40), _salt(40), by_hand=True)
    assert adopt(A, for_peer(renew_scope(behind, PROJECT, _secret(31), _salt(31)), lambda: _salt(78))) == A


def test_a_scope_key_that_a_peer_gave_is_carried_by_no_pack() -> None:
    ahead = renew_scope(A, PROJECT, _secret(30), _salt(30))
    assert adopt(A, for_peer(ahead, lambda: _salt(77))).wrapped == ()


def test_a_scope_key_that_was_destroyed_here_is_not_taken_back_from_a_peer() -> None:
    behind = renew_scope(A, PROJECT, _secret(30), _salt(30))
    ahead = spend(renew_scope(behind, PROJECT, _secret(31), _salt(31), CAUSE), [PROJECT], CAUSE)
    assert adopt(ahead, for_peer(behind, lambda: _salt(77))).scopes == ahead.scopes
