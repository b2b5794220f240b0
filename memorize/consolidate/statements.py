"""Find what a person stated in so many words: decisions, constraints, preferences, open questions, failed tries.

Pattern tables for English and Korean, applied sentence by sentence. They are strict on purpose: a sentence that is
not clearly a statement of the person is left to the model-driven extractor. Nothing is rephrased.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from memorize.consolidate import occasions
from memorize.patterns import late

SENTENCE_CHARS_MIN: Final = 8
SENTENCE_CHARS_MAX: Final = 400
# A prompt above this is mostly pasted text; a person's own words stand at its start and its end.
OWN_WORDS_CHARS: Final = 3_000

_RULE_IMPORTANCE: Final = 6

_FENCE = late(r"```.*?(?:```|\Z)", re.DOTALL)
# A dot inside a number, a path, a version or an abbreviation does not end a sentence: white space must follow.
_SENTENCE_END = late(r"(?<=[.!?。！？])(?=\s)|\n+")
_NOT_PROSE = late(r"^\s*(?:[>$#|]|at\s+\S+\(|File \"|Traceback|[{}<\[]|\d{4}-\d\d-\d\dT)")
_LEADING = late(
    r"^\s*(?:[-*•]\s+|\d+[.)]\s+)?(?:(?:ok(?:ay)?|so|also|and|but|please|note|well|right|yes|no)[,:]\s+)?", re.I
)
_QUESTION = late(
    r"[?？]\s*$|^(?:can|could|should|would|do (?:we|you|i|they)|does|did|is|are|what|why|how|which|where|when|who)\b",
    re.I,
)
_WHEN = late(r"when\b(?!.*\?\s*$)", re.I)
_KO_QUESTION = late(
    r"(?:까요|나요|을까|ㄹ까|할까|될까|(?:야 하|되|맞|있|없)나|는지 (?:알려|확인)|인가요|니)\s*[.?？]?\s*$"
)
# Words in code marks say nothing about what holds; a placeholder keeps the sentence in its form.
_CODE = late(r"`[^`\n]+`")
# Phrases with the words of an order that give none: figures of speech, guesses, complaints, compounds.
_IDLE = late(
    r"\bnever ?mind\b|\bnever (?:heard|knew|seen|worked|happened|thought|noticed|fails|failed|been|have|had)\b"
    r"|\b(?:as|like) always\b|\b(?:always|never|must)-\w+"
    r"|\b(?:i|it|he|she|they|you|that|this|who|which)(?:'d|'ve|'s|'ll| have| has| had| would"
    r"| could)? (?:always|never)\b"
    r"|\b(?:have|has|had|would|could) (?:always|never)\b"
    r"|(?<!\bis )(?<!\bare )(?<!\bbe )\balways (?:\w+(?:[^s]s|ed)|got|forget|time out|fail|crash|break|hang)\b"
    r"|\bmust(?: have|'ve) (?:been|had|gone|got|come|changed|broken|missed|forgotten)\b"
    r"|\b(?:it|that|this|there|he|she|they|you) must be\b|(?:^|[,;:]\s*)must be\b|\bmust be (?:the|because"
    r"|some|kidding)\b"
    r"|\bmust be (?:failing|crashing|breaking|leaking|missing|hanging|timing|getting|going|doing)\b"
    r"|\bi must (?:say|admit|confess)\b|\bif you must\b"
    r"|\b(?:don'?t|do not|can'?t|do you|as i) remember\b|\bpicked up\b|\busing (?:too|more|less|up|so)\b"
    r"|\bi (?:really )?(?:hate|dislike) (?:this|that|these|to)\b|\blet'?s (?:move|switch) to (?:the )?(?:next"
    r"|other|another)\b"
    r"|(?:항상|언제나|무조건|반드시) \S*\s?(?:실패|느리|느려|에러|오류|죽|끊|멈추|멈춰|막히|막혀)\S*"
    r"|절대 (?:안 (?:돼요|되네|되더)|모르)\S*|(?:걱정|신경|염려|고민)\S*\s?(?:하지|쓰지)? ?(?:마|말)\S*"
    r"|다음(?:으로|에) 가자|확정(?:되면|하면| 전)",
    re.IGNORECASE,
)
# What somebody else says, and what only escapes somebody.
_REPORTED = late(
    r"\b(?:it|error|message|log|docs?|page|readme|linter|compiler|ci|test|console|terminal|output) "
    r"(?:says?|said|complains?|reports?|tells|claims|prints|shows)\b"
    r"|[라다]고 (?:나[오와]|뜨|떠|뜬|적혀|하네|하는데)"
    r"|(?:네|네요|더라|더라고|더라고요|군|구나|군요|잖아|잖아요|ㅋ+|ㅠ+)\s*[.!~…]*\s*$",
    re.IGNORECASE,
)
# An order for this moment only.
_MOMENT = late(
    r"\b(?:yet|this time|just this once|only once|for a (?:moment|minute|second)|until i (?:say|tell|check"
    r"|review|have))\b"
    r"|(?:^|\s)(?:아직|일단|우선은?|이번(?:에는|엔|만)|지금은|잠깐|잠시)(?:\s|,)",
    re.IGNORECASE,
)


class Statement(NamedTuple):
    """A sentence of the person and what it is. ``scope`` is ``personal`` for what holds in every project.

    ``triggers`` name the actions that it orders something for.
    """

    kind: str
    text: str
    importance: int
    scope: str = "project"
    triggers: tuple[str, ...] = ()


class _Rule(NamedTuple):
    kind: str
    importance: int
    pattern: re.Pattern[str]
    scope: str = "project"


def _any(*alternatives: str) -> re.Pattern[str]:
    return late("|".join(alternatives), re.IGNORECASE)


# First match wins, so the more telling kinds stand first.
_TABLE: Final = (
    _Rule(
        "failure",
        5,
        _any(
            r"\b(?:we|i) (?:already )?tried\b.*"
            r"\b(?:but|fail\w*|didn'?t|did not|doesn'?t|does not|never|broke|because)\b",
            r"\b(?:didn'?t|did not|doesn'?t|does not|won'?t) work\b.*\b(?:because|since|as|:)",
            r"\bdo(?:n'?t| not) (?:re)?try\b",
            r"(?:시도|해|려고|써|적용해)\s?(?:했|봤|보았|해 ?봤)(?:었)?(?:지만|는데|으나).*"
            r"(?:실패|안 (?:됐|되|돼)|불가|막혀|오류|에러)",
            r"다시 시도하지 (?:마|말)",
        ),
    ),
    _Rule(
        "question",
        4,
        _any(
            r"\bopen question\b",
            r"\b(?:still|have yet) (?:need )?to (?:decide|be decided|figure out)\b",
            r"\b(?:not|never) (?:been )?decided yet\b",
            r"\bundecided\b",
            r"아직 (?:안 |못 )?(?:정하지|결정하지|정해지지|결정되지|정했|결정했|미정)",
            r"(?:나중에|추후) (?:결정|정하)",
            r"\b미정\b",
        ),
    ),
    _Rule(
        "preference",
        5,
        _any(
            r"\b(?:answer|reply|respond|write to me|talk to me)\b.*"
            r"\bin (?:korean|english|japanese|chinese|german|french|spanish)\b",
            r"\bcode comments? in (?:korean|english)\b",
            r"\bi (?:always |generally |strongly )?(?:prefer|dislike|hate|would rather|'d rather)\b",
            r"\bmy (?:preference|style) (?:is|:)",
            r"(?:한국어|영어|일본어|중국어)로 (?:답|대답|설명|말|작성해|해 )",
            r"(?:^|[,.!] )(?:저는|나는|난|전) .*(?:선호|좋아(?! ?보)|싫어|편해|편합)",
        ),
        "personal",
    ),
    _Rule(
        "decision",
        6,
        _any(
            r"\bwe(?:'ve| have)? (?:decided|agreed|settled|chosen|chose|picked)\b",
            r"\bi(?:'ve| have)? (?:decided|settled|chosen|chose|picked)\b",
            r"\bdecision\s*:",
            r"\blet'?s (?:use|go with|stick (?:with|to)|stay (?:with|on)|switch to|move to|adopt|store)\b",
            r"\blet'?s keep (?!going|trying|working|looking|digging|debugging|it short)\S+",
            r"\blet'?s make \S+(?: \S+){0,3} (?:the default|mandatory|required|optional|private|public|read-only)\b",
            r"\bwe(?:'ll| will)? (?:stay (?:on|with|at)|stick (?:to|with)|keep using)\b",
            r"\bwe(?:'ll| will|'re going to| are going to|'re| are) "
            r"(?:use|using|go(?:ing)? with|stick\w* (?:with|to)|switch\w* to|mov\w+ to|keep\w*|adopt\w*)\b",
            r"\b(?:use|choose|take|prefer) \S+(?: \S+){0,4} (?:instead of|rather than|over)\b",
            r"\b(?:replaced?|replacing) \S+(?: \S+){0,4} (?:with|by)\b",
            r"기로 (?:했|결정|하자|합의|정했|하겠)",
            r"결정\s*[:：]|결정했|결정하였|으로 정했|로 정했|확정",
            r"(?<![새따바서대별])(?:으로|로) (?:가자|간다|갑시다|갑니다|가겠|갈게|바꾸자|바꿉시다|바꾸겠"
            r"|전환하자|교체하자"
            r"|교체했|바꿨|전환했)",
            r"(?<![새따바서대별])(?:으로|로) (?:하자|합시다|할게|하겠|통일하)",
            r"(?:을|를|은|는) (?:쓰자|씁시다|사용하자|사용합시다|쓰겠|사용하겠)",
            r"대신 .*(?:쓰자|씁시다|사용하자|사용합니다|쓴다|사용한다|쓰기로)",
        ),
    ),
    _Rule(
        "constraint",
        6,
        _any(
            r"\bnever\b",
            r"\balways\b",
            r"\bfrom now on\b",
            r"\blet'?s not (?:ever )?(?:use|commit|push|add|edit|touch|change|store|depend)\b",
            r"(?:^|[,.!] )앞으로(?:는|도)? .*(?:줘|세요|하자|합시다|마라|말자)[.!]?$",
            r"\bmust(?:n'?t| not)?\b",
            r"\bonly (?:use|ever|with)\b|^only (?!(?:one|two|three|four|\d+|a|an|some|then|now|when|if|after"
            r"|this|that)\b)\S+",
            r"\b(?:is|are) (?:not allowed|forbidden|prohibited|required|mandatory)\b",
            r"\bno \S+(?: \S+){0,3} (?:allowed|anywhere|in this (?:repo\w*|project|codebase))\b",
            r"\bdo(?:n'?t| not) (?:ever )?"
            r"(?:use|commit|push|add|edit|touch|change|rename|install|log|store|call|depend)\b",
            r"\bmake sure (?:that |to )?.*\b(?:every|all|each|any)\b",
            r"절대|반드시|무조건|항상|언제나",
            r"(?:하지|쓰지|넣지|건드리지|바꾸지|올리지|커밋하지|사용하지) (?:마|말|않)",
            r"금지|허용하지 않|(?:면|건|것은|서는|선|은|는) 안 ?(?:됩니다|된다|돼|되)",
            r"(?:으로|로)만 \S+(?:\s수)?\s?(?:한다|합니다|해요|해|하세요|됩니다|된다|돼|있어|있다|있습니다|가능)",
            r"만 (?:사용|써야|쓰세요|써|씁니다|사용해야|허용)",
            r"해야 (?:한다|합니다|해|함|돼|된다|됩니다)",
        ),
    ),
    _Rule(
        "fact",
        5,
        _any(
            r"\b(?:please )?remember(?: that|:)",
            r"^(?:note|fyi|for the record|keep in mind)\b",
            r"기억해|잊지 (?:마|말)|참고로",
        ),
    ),
)


def own_words(prompt: str) -> str:
    """Return the part of a prompt that the person typed rather than pasted, as well as one can tell."""
    text = _FENCE.sub("\n", prompt)
    if len(text) > 2 * OWN_WORDS_CHARS:
        return text[:OWN_WORDS_CHARS] + "\n" + text[-OWN_WORDS_CHARS:]
    return text


def sentences(text: str) -> list[str]:
    """Split into sentences that are worth looking at: prose of a sensible length."""
    found = []
    for part in _SENTENCE_END.split(text):
        sentence = " ".join(_LEADING.sub("", part, count=1).split())
        if SENTENCE_CHARS_MIN <= len(sentence) <= SENTENCE_CHARS_MAX and not _NOT_PROSE.match(part):
            found.append(sentence)
    return found


def classify(sentence: str) -> Statement | None:
    """Return what the sentence states, or None when it states nothing clearly (what it asks is no statement)."""
    plain = _IDLE.sub(" ", _CODE.sub("code", sentence))
    when = occasions.occasions(sentence) if not _MOMENT.search(plain) and not _REPORTED.search(plain) else ()
    # "When committing, ..." begins like a question and is none.
    asks = bool((_QUESTION.search(sentence) and not (when and _WHEN.match(sentence))) or _KO_QUESTION.search(sentence))
    # "main에 직접 푸시 금지" begins with a name, not with a word that somebody was too quick to write large.
    said = sentence if any("가" <= char <= "힣" for char in sentence) else sentence[:1].upper() + sentence[1:]
    for rule in _TABLE:
        # "Open question: should a refund ...?" asks and states at once.
        if asks and rule.kind != "question":
            continue
        if rule.kind == "constraint" and (_MOMENT.search(plain) or _REPORTED.search(plain)):
            continue
        if rule.pattern.search(plain):
            if rule.kind not in ("constraint", "preference"):
                return Statement(rule.kind, said, rule.importance, rule.scope)
            kind = "rule" if when and rule.kind == "constraint" else rule.kind
            return Statement(kind, said, rule.importance, rule.scope, when or occasions.subjects(sentence))
    if when and not asks and occasions.ORDER.search(plain):
        return Statement("rule", said, _RULE_IMPORTANCE, triggers=when)
    return None


def statements(prompt: str) -> list[Statement]:
    """Return the statements of one prompt, in its order."""
    return [found for sentence in sentences(own_words(prompt)) if (found := classify(sentence)) is not None]


# "Wait, ... instead of X", "아니, X 대신 ...": somebody takes back what was said, and names it.
_SECOND_THOUGHT = late(
    r"\b(?:actually|wait|sorry|on second thoughts?|scratch that|changed (?:my|our) minds?|forget that"
    r"|no longer|after all)\b"
    r"|(?:^|\s)(?:아 |아니|미안|다시 생각|생각이 바뀌|취소|번복|방금)",
    re.IGNORECASE,
)
_INSTEAD = late(
    r"\b(?:instead of|rather than|not) ([\w.+#/-]+)|([\w.+#/-]+)(?:을|를|은|는)? (?:대신|말고)", re.IGNORECASE
)


def taken_back(prompt: str) -> tuple[str, ...]:
    """Return what a prompt says is not chosen after all, case-folded; nothing without the sign of a second thought."""
    text = own_words(prompt)
    if not _SECOND_THOUGHT.search(text):
        return ()
    return tuple((found[1] or found[2]).casefold() for found in _INSTEAD.finditer(text))


def mentions(text: str, name: str) -> bool:
    """Tell whether a text names something, as a word; a Korean particle may follow."""
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![a-z0-9_-])", text.casefold()) is not None
