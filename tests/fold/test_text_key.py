"""The text key that writers store."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorize.model import text_key


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("Use  TABS\n\there ", "use tabs here"),
        ("Straße", "strasse"),
        (unicodedata.normalize("NFD", "배포 금지"), "배포 금지"),
        ("배포\u3000금지", "배포 금지"),
        ("", ""),
        (" \n", ""),
        ("CAFE\u0301", "café"),
    ],
)
def test_equal_texts_have_equal_keys(text: str, key: str) -> None:
    assert text_key(text) == key


@given(st.text())
def test_a_key_is_its_own_key(text: str) -> None:
    assert text_key(text_key(text)) == text_key(text)


@given(st.text())
def test_the_form_of_the_characters_makes_no_difference(text: str) -> None:
    assert text_key(unicodedata.normalize("NFC", text)) == text_key(text)
    assert text_key(unicodedata.normalize("NFD", text)) == text_key(text)


@given(st.text(alphabet=st.characters(categories=["Cs", "L"])))
def test_half_a_surrogate_does_not_raise(text: str) -> None:
    text_key(text)
