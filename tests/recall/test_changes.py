"""What a person does to a memory, as batches of drafts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memorize.limits import DEPS_MAX, MEMORY_TEXT_CHARS_MAX
from memorize.log.spool import check_drafts
from memorize.recall import changes

IDS = st.lists(st.binary(min_size=32, max_size=32), max_size=3 * DEPS_MAX, unique=True)


def test_an_edit_puts_the_new_memory_first_in_the_place_of_all_members() -> None:
    payload = changes.formed("가격은 정수다.", "constraint", "project", "p", 7)
    first, second = changes.edited(payload, [b"a" * 32, b"b" * 32])
    assert (first.kind, first.payload["text"]) == ("memory.formed", "가격은 정수다.")
    assert (second.kind, second.deps) == ("memory.superseded", (0, b"a" * 32, b"b" * 32))


def test_a_text_over_the_limit_is_cut_before_its_key_is_made() -> None:
    payload = changes.formed("x" * (MEMORY_TEXT_CHARS_MAX + 9), "fact", "project", "p", 5)
    assert payload["text_key"] == "x" * MEMORY_TEXT_CHARS_MAX


@given(IDS)
def test_every_batch_can_be_written_and_names_each_id_once(ids: list[bytes]) -> None:
    for batch in (
        changes.edited(changes.formed("t", "fact", "project", "p", 5), ids),
        changes.forgotten(ids, ids, "no longer true"),
        changes.restored(ids),
        changes.pinned(ids),
        changes.unpinned(ids),
        changes.confirmed(ids),
    ):
        check_drafts(batch)
        assert [dep for draft in batch for dep in draft.deps if dep != 0] == ids
