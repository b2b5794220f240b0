from __future__ import annotations

import sqlite3
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memorize.index.text import QUERY_TERMS_MAX, document, query_terms, query_units


class Table:
    """A full-text table as the index has them."""

    def __init__(self, *texts: str) -> None:
        self.connection = sqlite3.connect(":memory:")
        self.connection.execute("create virtual table t using fts5(text, tokenize = 'porter unicode61')")
        self.connection.executemany("insert into t values(?)", [(document(text),) for text in texts])

    def close(self) -> None:
        self.connection.close()

    def match(self, expression: str) -> list[int]:
        found = self.connection.execute("select rowid from t where t match ? order by rowid", (expression,))
        return [rowid - 1 for (rowid,) in found]


def hits(text: str, query: str) -> bool:
    """Tell whether any term of the query is found in the text."""
    table = Table(text)
    try:
        return table.match(" OR ".join(query_units(query))) == [0]
    finally:
        table.close()


def all_hit(text: str, query: str) -> bool:
    table = Table(text)
    try:
        return table.match(" AND ".join(query_units(query))) == [0]
    finally:
        table.close()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("getUserById", "get user by id getuserbyid"),
        ("get_user_by_id", "get user by id getuserbyid"),
        ("kebab-case--name", "kebab case name kebabcasename"),
        ("HTTPServer2", "http server2 httpserver2"),
        ("__init__.py", "__init__.py"),
        ("src/auth/tokenStore.ts", "src/auth/ token store tokenstore .ts"),
        ("세션", "세션"),
        ("값", "값"),
        ("데이터를", "데이 이터 터를"),
        ("漢字かな", "漢字 字か かな"),
        ("getUser함수", "get user getuser 함수"),
        ("Straße ÉCOLE", "strasse école"),
    ],
)
def test_documents_are_lower_case_words_with_identifiers_in_parts_and_whole(text: str, expected: str) -> None:
    assert document(text).split() == expected.split()


@pytest.mark.parametrize(
    "query", ["user id", "getUserById", "get_user_by_id", "get-user-by-id", "getuserbyid", "users"]
)
def test_an_identifier_is_found_by_its_parts_by_the_whole_and_in_other_spellings(query: str) -> None:
    assert all_hit("In the handler getUserById is called twice", query)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("토큰을 저장한다", "토큰은 어디에"),
        ("데이터베이스는 포스트그레스로 정했다", "데이터베이스를 무엇으로"),
        ("배포는 금요일에 하지 않는다", "금요일의 배포"),
        ("세션 저장소가 느리다", "저장소를"),
        ("データベースを変更した", "データベースは"),
        ("数据库连接池", "数据库"),
    ],
)
def test_a_noun_is_found_whatever_particle_follows_it(text: str, query: str) -> None:
    assert hits(text, query)


_HANGUL = st.text(st.characters(min_codepoint=0xAC00, max_codepoint=0xD7A3), min_size=2, max_size=6)


@given(_HANGUL, st.sampled_from(["은", "을", "에서", "으로", ""]), st.sampled_from(["이", "의", "까지", "에게"]))
def test_a_korean_noun_shares_its_pairs_whatever_follows(noun: str, one: str, other: str) -> None:
    pairs = {noun[at : at + 2] for at in range(len(noun) - 1)}
    assert pairs <= set(document(noun + one).split())
    assert pairs <= set(query_terms(noun + other))


@given(st.text())
@example("\ud800")
@example("ΐ\u0345 ǰ ﬃ İ")
@example("\0" * 5)
def test_no_text_is_too_strange_and_composition_makes_no_difference(text: str) -> None:
    made = document(text)
    assert made == document(unicodedata.normalize("NFD", text)) == document(unicodedata.normalize("NFC", text))
    made.encode()
    assert len(query_terms(text)) <= QUERY_TERMS_MAX
    table = Table(text)
    for unit in (*query_units(text), *query_units(text, prefix=True)):
        table.match(unit)
    table.close()


@given(st.text(alphabet="aB1_- 가나é./", max_size=30))
def test_a_query_finds_the_text_that_it_is(text: str) -> None:
    if query_terms(text):
        assert all_hit(text, text)


@given(st.lists(st.from_regex(r"[a-z]{2,8}", fullmatch=True), min_size=2, max_size=4))
def test_every_spelling_of_a_name_has_the_same_words(parts: list[str]) -> None:
    camel = parts[0] + "".join(part.capitalize() for part in parts[1:])
    spellings = [camel, camel[0].upper() + camel[1:], "_".join(parts), "-".join(parts), "_".join(parts).upper()]
    assert len({tuple(document(one).split()) for one in spellings}) == 1


def test_stop_words_are_dropped_from_queries_unless_there_is_nothing_else() -> None:
    assert query_terms("what is the name of the user") == ["name", "user"]
    assert query_terms("To be or not to be") == ["to", "be", "or", "not"]
    assert query_terms("...") == []
    assert "the" in document("the user").split()


def test_a_pasted_page_is_a_query_of_bounded_size() -> None:
    assert len(query_terms(" ".join(f"word{n}" for n in range(10_000)))) == QUERY_TERMS_MAX


def test_a_prefix_finds_longer_words() -> None:
    table = Table("authentication middleware")
    assert table.match(query_units("middle", prefix=True)[0]) == [0]
    assert table.match(query_units("middle")[0]) == []
    table.close()


def test_a_text_without_any_seam_stays_as_it_is_and_long_runs_are_not_joined() -> None:
    assert document("plain words only") == "plain words only"
    long = "-".join(["abcdefgh"] * 20)
    assert document(long).split() == ["abcdefgh"] * 20
