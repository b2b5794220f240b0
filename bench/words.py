"""Texts as they come up at work, in English and Korean: prompts, answers, commands, diffs, memories.

The same seed gives the same texts. Words are drawn by a law of Zipf, as in any language, so that the full-text index
meets frequent and rare ones; identifiers, paths and numbers are nearly always new.
"""

from __future__ import annotations

import random
from itertools import accumulate
from typing import Final

_ENGLISH: Final = """
the to a and of in is it that for on with as this not we be by are from an or use at when should must only so test file
error if all has can but was code then add call run user data after new one value build before page set type return api
function request check fix server always never change time make name client service index instead first table key list
because more string out old default fail field event without line branch event version null query order model state
session into token job config path merge cache message log deploy release schema account update path second package
customer payment refund invoice retry timeout limit worker queue batch column migration lock transaction rollback commit
review webhook header endpoint cookie login password role permission admin tenant export import report email template
locale currency rounding decimal amount balance ledger audit archive backup restore snapshot replica cluster node region
bucket upload download stream buffer chunk parser lexer grammar syntax compile linker module plugin hook signal thread
mutex deadlock race leak memory heap stack pointer overflow boundary fixture mock stub coverage regression flaky
benchmark profile latency throughput percentile histogram metric trace span dashboard alert incident postmortem runbook
feature toggle rollout canary staging production sandbox container image registry proxy gateway certificate handshake
socket packet router subnet firewall vault secret rotation policy quota throttle backoff jitter circuit breaker fallback
idempotent duplicate dedupe ordering partition offset consumer producer topic broker payload envelope signature digest
checksum collation encoding charset timezone calendar holiday weekday shipment warehouse inventory supplier discount
coupon basket checkout storefront catalogue category filter facet ranking relevance synonym stemming tokenizer
""".split()
_KOREAN: Final = """
그리고 이 는 것 수 를 에서 으로 합니다 해 주세요 하지 말고 반드시 항상 먼저 나중에 때문에 다시 함수를 파일을
테스트를 오류가 서버에서 데이터베이스 환불 결제 주문을 고객 정보를 로그인 비밀번호는 토큰을 세션이 브랜치에서
커밋하기 배포는 금요일에 하지 않습니다 마이그레이션을 되돌릴 수 있게 캐시를 지우고 인덱스를 다시 만들어 설정은
환경변수로 읽고 금액은 정수로 저장합니다 반올림은 은행가 방식으로 재시도는 세 번까지 타임아웃 삼십초 로그에
개인정보를 남기지 않습니다 스키마를 바꾸기 전에 백업을 확인하고 번역 파일은 직접 고치지 않습니다 검토 후 병합합니다
""".split()
_NOUNS: Final = (
    "User Order Refund Invoice Token Session Page Batch Ledger Report Cart Price Lock Index Rule Job".split()
)
_VERBS: Final = "get set load save find parse build merge send apply check fetch render count drop".split()
_TAILS: Final = "ById ForTenant Async V2 IfMissing WithRetry Batch OrNone InPlace Safely Once".split()
_FOLDERS: Final = "src lib app tests api web core jobs models views services migrations scripts docs".split()
_ENDINGS: Final = "py ts tsx go rs sql md json yaml".split()
_CHANGING: Final = (
    "npm install {word}@{number}",
    'git commit -am "{words}"',
    "python scripts/{name}.py --apply --limit {number}",
    "sed -i 's/{word}/{other}/g' {path}",
    "mkdir -p {path} && cp {path} {path}.{number}",
    "docker compose up -d {word} --scale {other}={number}",
    "make {word}-{other} STAGE={word} BUILD={number}",
    "psql -c 'update {word} set {other} = {number}'",
)


def _zipf(count: int) -> list[float]:
    return list(accumulate(1 / (place + 3) for place in range(count)))


_ENGLISH_WEIGHTS: Final = _zipf(len(_ENGLISH))
_KOREAN_WEIGHTS: Final = _zipf(len(_KOREAN))


class Author:
    """Writes; every call gives something new, and a seed always the same sequence."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def words(self, count: int, *, korean: bool = False) -> str:
        """Return some words with now and then an identifier, a path or a number among them."""
        if korean:
            found = self.chance.choices(_KOREAN, cum_weights=_KOREAN_WEIGHTS, k=count)
        else:
            found = self.chance.choices(_ENGLISH, cum_weights=_ENGLISH_WEIGHTS, k=count)
        for place in range(self.chance.randrange(6, 18), count, 14):
            found[place] = self.chance.choice((self.name, self.path, self.number))()
        return " ".join(found)

    def prose(self, characters: int) -> str:
        """Return sentences of about so many characters, one text in four in Korean."""
        korean = self.chance.random() < 0.25
        sentences = []
        while characters > 0:
            sentences.append(self.words(self.chance.randrange(6, 18), korean=korean).capitalize() + ".")
            characters -= len(sentences[-1])
        return " ".join(sentences)

    def name(self) -> str:
        """Return an identifier, camel or snake."""
        parts = [self.chance.choice(_VERBS), self.chance.choice(_NOUNS), self.chance.choice(_TAILS)]
        return "".join(parts) if self.chance.random() < 0.6 else "_".join(parts[:2]).lower()

    def path(self) -> str:
        """Return a path below a checkout."""
        folders = "/".join(self.chance.sample(_FOLDERS, 2))
        return f"{folders}/{self.name().lower()}_{self.chance.randrange(400)}.{self.chance.choice(_ENDINGS)}"

    def number(self) -> str:
        """Return a number that is probably new."""
        return str(self.chance.randrange(10, 100_000))

    def command(self) -> str:
        """Return a shell command that changes something."""
        word, other = self.chance.choices(_ENGLISH[40:], k=2)
        return self.chance.choice(_CHANGING).format(
            word=word,
            other=other,
            words=self.words(8),
            name=self.name(),
            path=self.path(),
            number=self.number(),
        )

    def output(self, characters: int) -> str:
        """Return lines as tools print them."""
        lines = []
        while characters > 0:
            lines.append(f"{self.path()}:{self.number()}: {self.words(self.chance.randrange(3, 9))}")
            characters -= len(lines[-1])
        return "\n".join(lines)

    def hunk(self, lines: int) -> list[str]:
        """Return the lines of a diff."""
        return [self.chance.choice("+- ") + f"    {self.name()}({self.words(4)})" for _ in range(lines)]

    def question(self) -> str:
        """Return what somebody might search for."""
        kind = self.chance.random()
        if kind < 0.2:
            return self.name()
        return self.words(self.chance.randrange(1, 5), korean=kind < 0.45)
