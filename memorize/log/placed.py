"""Secrets that are known by their place: cookies, passwords given to programs, names of secrets in other languages.

Called by ``redact`` for every text, so each pattern has a literal that must be there first.
"""

from __future__ import annotations

from typing import Final

from memorize.patterns import late

_SECRET: Final = "[redacted:secret]"
_COOKIE: Final = "[redacted:cookie]"

# A header's whole value: what a session cookie is called differs from site to site.
_COOKIES: Final = late(
    r"(?P<lead>\b(?:[Ss]et-)?[Cc]ookie2?\\?[\"']?\s{0,4}:\s{0,4}\\?[\"']?)(?P<value>(?!\[redacted:)[^\s\"'\\=;]{1,256}=[^\n\r\"']{1,8192})"
)
# "mysql -pSECRET" takes the password glued to the flag, "sshpass -p SECRET" and "docker login -p SECRET" apart.
_GLUED: Final = late(
    r"(?P<lead>\b(?:mysql(?:dump|admin|import|show)?|mariadb(?:-dump|-admin)?|7z[a-z]?|sshpass|zip|unzip)\b"
    r"[^\n|;&]{0,200}?\s-[pP])(?P<value>(?!\[redacted:)[^\s\"'|;&$-][^\s\"'|;&]{2,128})"
)
_APART: Final = late(
    r"(?P<lead>\b(?:sshpass|(?:docker|podman|helm(?: registry)?|nerdctl|oc|az|cf) login"
    r"|ldap\w{3,8}|smbclient|redis-cli|htpasswd)\b"
    r"[^\n|;&]{0,200}?\s-(?:p|a|w)[ =]{1,2}[\"']?)(?P<value>(?!\[redacted:)[^\s\"'|;&$-][^\s\"'|;&]{2,128})"
)
_WORDS: Final = (
    "비밀번호",
    "비번",
    "암호",
    "패스워드",
    "토큰",
    "パスワード",
    "暗証番号",
    "トークン",
    "密码",
    "口令",
    "密碼",
    "令牌",
)
_LETTERS: Final = (
    "번호워큰ワー証ト密口令"  # each word has one; to look for a letter is ten times faster than for a word
)
_SPOKEN: Final = late(
    rf"(?P<lead>(?:{'|'.join(_WORDS)})(?:는|은|가|이|を|は|是)?\s{{0,2}}(?:[:=：＝]\s{{0,2}}|\s)[\"'`]?)"
    r"(?P<value>(?!\[redacted:|[A-Za-z_.-]+[=:])(?=[!-~]{0,127}[0-9!#@^~+=?/])[!-&(-+\--~]{4,128})"
)


def redact_placed(text: str) -> str:
    """Return the text without the secrets that stand at such a place. The same object when there is none."""
    if ":" in text and "ookie" in text:
        text = _COOKIES.sub(lambda match: match["lead"] + _COOKIE, text)
    if "-" in text and (" -p" in text or " -P" in text or " -a" in text or " -w" in text):
        text = _GLUED.sub(lambda match: match["lead"] + _SECRET, text)
        text = _APART.sub(lambda match: match["lead"] + _SECRET, text)
    if not text.isascii() and any(map(text.__contains__, _LETTERS)) and any(map(text.__contains__, _WORDS)):
        text = _SPOKEN.sub(lambda match: match["lead"] + _SECRET, text)
    return text
