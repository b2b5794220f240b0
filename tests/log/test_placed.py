"""Secrets that are known by where they stand, through the same door as all others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorize.log.placed import redact_placed
from memorize.log.redact import redact

HIDDEN = [
    ("curl -H 'Cookie: session=abc123def; theme=dark' https://x.example", "abc123def"),
    ("< Set-Cookie: sid=s3cr3t-session; Path=/; HttpOnly", "s3cr3t-session"),
    ('{"Cookie": "token=abcd"}', "abcd"),
    ("mysql -u root -phunter22 shop", "hunter22"),
    ("mysqldump --host db -pGeheim99 shop > dump.sql", "Geheim99"),
    ("docker login -u me -p tops3cret registry.example", "tops3cret"),
    ("sshpass -p 'pa55word' ssh host", "pa55word"),
    ("sshpass -ppa55word ssh host", "pa55word"),
    ("redis-cli -a s3cr3t ping", "s3cr3t"),
    ("운영 서버 비밀번호=qwer1234! 입니다", "qwer1234!"),
    ("비밀번호는 hunter22! 이다", "hunter22!"),
    ("密码：hunter22!", "hunter22!"),
    ("パスワードは hunter22!", "hunter22!"),
]

KEPT = [
    "The cookie banner: show it once.",
    "cookies: none are set here",
    "mkdir -p build/out",
    "ssh -p 2222 host",
    "mysql -p shop",
    "docker run -p 8080:80 web",
    "비밀번호 재설정 화면을 고쳐 줘",
    "비밀번호는 8자 이상이어야 한다",
    "토큰 예산: 500",
    "암호화 키를 만든다",
    "cp -a src dst",
    "docker login -p $TOKEN registry.example",
]


@pytest.mark.parametrize(("text", "secret"), HIDDEN)
def test_what_stands_where_a_secret_stands_is_hidden(text: str, secret: str) -> None:
    cleaned = redact(text)
    assert secret not in cleaned
    assert "[redacted:" in cleaned


@pytest.mark.parametrize("text", KEPT)
def test_ordinary_text_is_untouched(text: str) -> None:
    assert redact(text) == text


@given(st.lists(st.sampled_from([*[text for text, _ in HIDDEN], *KEPT, " ", "\n", "x"]), max_size=6).map("".join))
def test_a_second_pass_changes_nothing(text: str) -> None:
    assert redact(redact(text)) == redact(text)


def test_a_megabyte_takes_a_bounded_time() -> None:
    for unit in ("mysql -", "Cookie: a=", "비밀번호 ", "docker login -p"):
        redact_placed(unit * (1_000_000 // len(unit)))
