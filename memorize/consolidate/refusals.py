"""What is never remembered, however well it is put: secrets, a person's private life, states that pass. Pure.

The prompt asks for the same; a model may not listen, and rules don't read. Each refusal is by its form: a project may
well deal with patients, faiths or passwords, so what is refused is a sentence about a person of flesh and blood, and
a secret that is told rather than named.
"""

from __future__ import annotations

import re
from typing import Final

from memorize.limits import MEMORY_TEXT_CHARS_MAX
from memorize.log.redact import redact
from memorize.patterns import late

SECRET: Final = "secret"
PRIVATE: Final = "private life"
PASSING: Final = "passing state"

# "The password is hunter2": a value with a digit or a sign behind the name; "the password is hashed" tells none.
_TOLD: Final = late(
    r"(?:pass(?:word|phrase|code)|\bpin(?: code)?\b|\bsecret\b|\btoken\b|\bapi key\b|비밀번호|암호|패스워드"
    r"|토큰|パスワード|暗証番号"
    r"|密码|密碼|口令)(?:\s+(?:for|of|to|on)(?:\s+[\w-]+){1,4}?)?\s*(?:is|was|are|=|:|은|는|이|가|は|为|為"
    r"|是)\s*[`'\"“「]?"
    r"(?=[^\s`'\"]*[0-9!@#$%^&*])(?!\[redacted)[^\s`'\"”」]{4,}",
    re.IGNORECASE,
)

_ILLNESSES: Final = (
    r"diabet\w+|cancer|adhd|autis\w+|depress(?:ion|ed)|anxiety|bipolar|epilep\w+|asthma|migraines?|hiv|aids|pregnan\w+"
    r"|chemo\w*|dialysis|insulin|antidepressants?|therap(?:y|ist)|burn-?out|disabilit\w+|dyslexi\w+|a miscarriage"
)
_BELIEFS: Final = (
    r"christians?|muslims?|jew(?:ish)?|hindus?|buddhists?|sikhs?|catholics?|protestants?|mormons?|atheists?|agnostics?"
)
_ORIENTATIONS: Final = r"gay|lesbian|bisexual|homosexual|asexual|pansexual|transgender|non-?binary|queer"
_SOMEBODY: Final = (
    r"(?:\b(?:i|he|she|they|(?:the )?(?:user|developer|author|owner|person|colleague|maintainer)|"
    r"(?:my|his|her|their|the user's) (?:\w+ )?(?:wife|husband|partner|mother|father|son|daughter|child|boss"
    r"|colleague))"
    r"(?:'s|'m|'ve| has| have| is| am| are| was| were| got| takes?| suffers?| lives?| identif\w+| came"
    r"| practi[cs]es)\b)"
)
_HANGUL_SENSITIVE: Final = (
    r"당뇨|암\s?(?:투병|환자|진단)|우울증|공황|조울|자폐|ADHD|간질|천식|임신|항암|정신과|장애인|유산했|"
    r"기독교인|기독교\s?신자|불교\s?신자|천주교|이슬람|무슬림|무신론|교회에 다|성당에 다|절에 다|동성애"
    r"|양성애|트랜스젠더|게이|레즈비언|성소수자"
)
_HANGUL_SOMEBODY: Final = (
    r"(?:저는|저도|나는|내가|제가|난|전|사용자[는가의]|개발자[는가]|본인[은이]|팀원|동료|아내|남편|어머니"
    r"|아버지|아들|딸)"
)
_PRIVATE: Final = (
    late(
        rf"{_SOMEBODY}(?:\W+\w+){{0,4}}?\W+(?:{_ILLNESSES}|{_BELIEFS}|{_ORIENTATIONS})\b(?! (?:table|field"
        rf"|flag|module))",
        re.IGNORECASE,
    ),
    late(
        rf"\b(?:my|his|her|the user's|the developer's) (?:\w+ )?"
        rf"(?:{_ILLNESSES}|religion|faith|sexual orientation|diagnosis|illness|medication)\b",
        re.IGNORECASE,
    ),
    late(rf"{_HANGUL_SOMEBODY}.{{0,30}}(?:{_HANGUL_SENSITIVE})"),
    late(
        r"(?:私|僕|俺|ユーザー?|開発者)[はがの].{0,20}(?:うつ病|糖尿病|がん|妊娠|発達障害|キリスト教|仏教徒"
        r"|イスラム|同性愛|ゲイ|レズビアン)"
    ),
    late(
        r"(?:我|用户|用戶|开发者|他|她)(?:有|是|患|得了|信|怀|懷).{0,12}(?:抑郁|憂鬱|糖尿病|癌|怀孕|懷孕|基督"
        r"|佛教|穆斯林|同性恋|同性戀)"
    ),
)

# What is over before the next session reads it. A question, a summary and a note of progress may speak of now.
_TIMELESS: Final = frozenset({"decision", "constraint", "preference", "fact", "rule"})
_DOING: Final = r"(?:running|in progress|waiting|installing|compiling|rebooting|restarting|being \w+)"
_PASSING: Final = late(
    rf"\b(?:is|are) (?:currently|now|just) {_DOING}\b|\b(?:is|are) (?:still )?{_DOING}\b.{{0,30}}(?:right now"
    rf"|at the moment)"
    r"|\b(?:is|are) (?:still )?(?:waiting|pending) (?:for|on) (?:the )?(?:ci|build|pipeline|review|approval)\b"
    r"|\b(?:right now|as we speak|a (?:minute|moment|second) ago|this (?:morning|afternoon|evening)"
    r"|later today|tonight)\b"
    r"|\b(?:is|are) (?:currently|now|still|temporarily) (?:down|failing|broken|red|stuck|offline|busy|out of)\b"
    r"|\buser is (?:tired|busy|away|frustrated|in a hurry|happy|annoyed|at lunch|on holiday|in a meeting)\b"
    r"|(?:지금|현재|잠시|방금|아직).{0,24}(?:배포|빌드|실행|설치|테스트|컴파일|재시작|점검|작업|회의|대기"
    r"|진행|리뷰)\s?(?:중|하고 있|되고 있)"
    r"|(?:지금|오늘은?|현재).{0,16}(?:피곤|바쁘|바빠|졸리|아프|다운(?:돼|되어|됐)|멈춰|멈췄|죽어 있)"
    r"|(?:ビルド|デプロイ|実行|テスト|インストール|待機|会議|作業|停止)中(?:です|だ)|(?:今|今日は).{0,10}(?:疲れ|忙し)"
    r"|(?:正在|目前|现在|現在).{0,16}(?:运行中|運行中|进行中|進行中|等待(?:审核|構建|构建)|宕机|当机|很忙|很累)",
    re.IGNORECASE,
)


def refusal(kind: str, text: str) -> str:
    """Return why a text is not remembered, "" when nothing speaks against it."""
    text = text[: 2 * MEMORY_TEXT_CHARS_MAX]
    if redact(text) != text or _TOLD.search(text):
        return SECRET
    if any(pattern.search(text) for pattern in _PRIVATE):
        return PRIVATE
    return PASSING if kind in _TIMELESS and _PASSING.search(text) else ""
