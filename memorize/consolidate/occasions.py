"""Find the action that an order of a person is about: "always ... when committing", "푸시하기 전에는 반드시 ...". Pure.

Tables for English and Korean, and what stands in code marks is read as the command that it is. An order about an action
gets its trigger, so that it is told right before the action; a sentence that only mentions an action gets none.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from memorize.patterns import late
from memorize.recall.triggers import triggers_of

_CODE: Final = late(r"`([^`\n]+)`")
_AN: Final = r"(?:(?:a|an|the|any|your|our|each|every|new|another|more|some) )*"
_PR: Final = r"(?:prs?|pull[ -]requests?|merge[ -]requests?|mrs?)\b"
_KO_PR: Final = r"(?:PR|MR|풀 ?리퀘스트|머지 ?리퀘스트)"


class _Action(NamedTuple):
    """How an action is called: ``doing`` and ``does`` in English (with what it is done to), ``ko`` in Korean."""

    trigger: str
    doing: str
    does: str
    noun: str
    ko: str


_MERGE: Final = (
    r"merge(?: (?:in)?to\b| without\b| only\b|[,.!]|$| (?:\S+ ){0,2}(?:branch(?:es)?|main|master|develop|trunk)\b)"
)
_IMAGE: Final = rf"{_AN}(?:docker |container )?images?\b"
_BRANCH: Final = rf"{_AN}(?:remote |local |merged )?branch(?:es)?\b"
_PACKAGE: Final = rf"{_AN}(?:dependenc(?:y|ies)|packages?|librar(?:y|ies))\b"
_MIGRATION: Final = rf"{_AN}(?:database |db |schema )?migrations?\b"
_NONE: Final = r"\b\B"
_INFRA: Final = (
    r"(?:(?:terraform|tofu|terragrunt) (?:apply|destroy)|kubectl (?:apply|delete)|helm (?:install|upgrade)|pulumi up)\b"
)
_RESET: Final = r"(?:git )?reset --hard\b"
_REMOVE: Final = r"(?:rm -rf?|git clean)\b"
_FILES: Final = rf"{_AN}(?:files?|director(?:y|ies)|folders?)\b"
_RUN: Final = r"(?:(?:run|use|call|do) )?"
# First match wins: "merging a pull request" is no merge of branches, "pushing an image" no git push.
_ACTIONS: Final = (
    _Action(
        "pr-create",
        rf"(?:opening|creating|making|submitting|raising|filing) {_AN}{_PR}",
        rf"(?:open|create|make|submit|raise|file) {_AN}{_PR}",
        rf"(?:{_PR}|(?:pr|pull request) (?:titles?|descriptions?|bodies|body))",
        rf"{_KO_PR}(?:을|를)? ?(?:올|만들|열|여|생성|작성|보내|날리)|{_KO_PR} ?(?:제목|본문|설명)",
    ),
    _Action(
        "pr-merge",
        rf"merging {_AN}{_PR}",
        rf"merge {_AN}{_PR}",
        _NONE,
        rf"{_KO_PR}(?:을|를|은|는)? ?(?:\S{{1,4}} ){{0,2}}(?:머지|병합|합)",
    ),
    _Action("container-push", f"pushing {_IMAGE}", f"push {_IMAGE}", _NONE, r"이미지(?:를)? ?(?:푸시|올)"),
    _Action(
        "branch-delete",
        f"(?:deleting|removing) {_BRANCH}",
        f"(?:delete|remove) {_BRANCH}",
        _NONE,
        r"브랜치(?:를)? ?(?:지우|지울|삭제)",
    ),
    _Action(
        "dependency-add",
        f"(?:adding|installing) {_PACKAGE}",
        f"(?:add|install) {_PACKAGE}",
        _NONE,
        r"(?:의존성|패키지|라이브러리)(?:을|를)? ?(?:추가|설치)",
    ),
    _Action(
        "package-publish",
        r"publishing\b",
        rf"publish\b(?! personal\b)(?: {_AN}(?:packages?|crates?|releases?|versions?))?",
        _NONE,
        r"(?:패키지|라이브러리|npm)(?:을|를)? ?(?:배포|게시|퍼블리시)",
    ),
    _Action(
        "migration-run",
        f"(?:running|applying) {_MIGRATION}",
        f"(?:run|apply) {_MIGRATION}",
        _NONE,
        r"마이그레이션(?:을)? ?(?:돌리|돌릴|실행|적용)",
    ),
    _Action(
        "git-commit",
        r"committing\b",
        r"(?:commit\b(?! to (?!main\b|master\b))"
        r"|(?:write|use|add|sign|put|keep)(?: [^\s,.]{1,40}){0,5} (?:commits|commit messages?)\b)",
        r"commits?\b(?: messages?\b)?",
        r"커밋",
    ),
    _Action(
        "git-push",
        r"(?:force[- ])?pushing\b",
        r"(?:force[- ])?push\b(?! back\b)",
        r"(?:force[- ])?push(?:es)?\b",
        r"(?:강제 ?)?(?:푸시|푸쉬)",
    ),
    _Action("git-rebase", r"rebasing\b", r"rebase\b", r"rebases?\b", r"(?:리베이스|rebase)"),
    _Action("git-merge", r"merging\b", _MERGE, r"merges?\b", r"(?:머지|병합)"),
    _Action(
        "infra-apply",
        rf"(?:(?:running|using|calling) )?{_INFRA}|(?:applying|changing) {_AN}infrastructure\b",
        rf"{_RUN}{_INFRA}|(?:apply|change) {_AN}infrastructure\b",
        _NONE,
        rf"{_INFRA}(?:을|를)? ?|인프라(?:를)? ?(?:변경|적용|바꾸|바꿀)",
    ),
    _Action(
        "git-reset",
        rf"(?:(?:running|using|doing) )?{_AN}{_RESET}",
        rf"{_RUN}{_RESET}",
        _NONE,
        rf"{_RESET}(?:을|를)? ?|(?:하드 ?)?리셋",
    ),
    _Action(
        "destructive-delete",
        rf"(?:(?:running|using) )?{_REMOVE}|(?:deleting|removing) {_FILES}",
        rf"{_RUN}{_REMOVE}|(?:delete|remove) {_FILES}",
        _NONE,
        rf"{_REMOVE}(?:을|를)? ?|(?:파일|디렉터리|폴더)(?:을|를)? ?(?:지우|지울|삭제)",
    ),
    _Action("git-tag", r"tagging\b", r"tag\b", r"tags?\b", r"태그(?:를)? ?(?:달|만들|찍|붙)"),
)
# A moment before or at which something is to be done; "each time you", "before every".
_MOMENT: Final = (
    r"\b(?:before|when|whenever|every time|each time|any ?time|prior to|while|after|if|once)"
    r"(?: (?:you|we|i|an agent|the agent|it|anybody|anyone|someone))?(?: (?:are|is|'re))?(?: ever| actually)? "
)
_EACH: Final = r"\b(?:before|on|for|with|after|in) (?:each|every|any|all) (?:single )?"
# The action itself is what the order allows or forbids.
_ORDERED: Final = (
    r"(?:^|[,;:.] |\b(?:we|you|agents?|please|and|but|everybody|everyone|one) (?:must |should |may |can )?)"
    r"(?:never|always|do(?:n'?t| not)(?: ever)?|must(?:n'?t| not)?(?: never| always)?|only|can(?:not|'t))"
    r"(?: just| directly| blindly| ever)? "
)
_ABOUT: Final = r"(?:^|[,;:] |\b(?:all|every|each|our|your|the) )"
_BOUND: Final = (
    r"(?: \S+){0,3}? (?:must|should|need(?:s)? to|ha(?:ve|s) to|always|never|(?:are|is) always|(?:are|is) never)\b"
)
_KO_WHEN: Final = (
    r"(?:\S{0,3}(?:할|릴|들|낼|울|운|칠|열|날릴|성할)? ?때(?:는|마다|에는)?(?=[ ,])|\S{0,4}기 ?전에?는?(?=[ ,])"
    r"|\S{0,2} ?전에?는?(?=[ ,])|\S{0,4}마다(?=[ ,])|\S{0,2} ?(?:후|뒤)에?는?(?=[ ,])|시에?는?(?=[ ,]))"
)
_KO_ABOUT: Final = r" ?(?:메시지|제목|본문|설명)?(?:은|는|에|에는|에서는|의)? "
_KO_NOT: Final = r"(?:\S{0,4}지 ?(?:마|말|않)|\S{0,3} ?금지|\S{0,4}면 안)"
_KO_DO: Final = r"(?:해라|하라|하세요|하십시오|해 ?주세요|해야|할 것)"
# An order that an occasion makes one for every time, without "always": "before pushing, run the tests".
_VERBS: Final = (
    r"(?:run|use|add|check|make sure|ensure|update|ask|write|sign|bump|include|put|format|lint|keep|rebase|squash"
    r"|pull|test|tell|verify|review|show|confirm|regenerate|rebuild|read|do|don'?t|do not|never|always|list"
    r"|wait|get|mention|link)"
)
ORDER: Final = late(
    rf"(?:{_MOMENT}|{_EACH})[^,]{{1,60}}, (?:please |first |always )?{_VERBS}\b"
    rf"|^(?:please |first )?{_VERBS}\b[^,]{{1,120}} (?:before|whenever|every time|each time) "
    rf"|^(?:before|prior to) \S+ing {_VERBS}\b"
    r"|(?:때(?:는|마다)|전에는|마다) \S",
    re.IGNORECASE,
)


def occasions(sentence: str) -> tuple[str, ...]:
    """Return the triggers of the actions before which the sentence orders something."""
    return _found(sentence, _WHEN)


def subjects(sentence: str) -> tuple[str, ...]:
    """Return the triggers of the actions that the sentence orders, forbids or sets a form for."""
    return _found(sentence, _WHAT)


def _table(pattern: str, ko: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    found = []
    for action in _ACTIONS:
        english = pattern.format(doing=action.doing, does=action.does, noun=action.noun)
        found.append((action.trigger, late(f"{english}|(?:{action.ko}){ko}", re.IGNORECASE)))
    return tuple(found)


def _braced(text: str) -> str:
    """Return a piece of a pattern as it stands in a template."""
    return text.replace("{", "{{").replace("}", "}}")


_WHEN: Final = _table(f"{_braced(_MOMENT)}(?:{{doing}}|{{does}})|{_braced(_EACH)}(?:{{noun}}|{{does}})", _KO_WHEN)
_WHAT: Final = _table(
    f"{_braced(_ORDERED)}(?:{{does}})|{_braced(_ABOUT)}(?:{{noun}}){_braced(_BOUND)}",
    f"(?:{_KO_ABOUT}|{_KO_NOT}|{_KO_DO})",
)
_CODED: Final = {
    _WHEN: late(f"(?:{_MOMENT}|{_EACH})(?:run(?:ning)? |call(?:ing)? |us(?:e|ing) )?$", re.IGNORECASE),
    _WHAT: late(f"{_ORDERED}(?:run |call |use )?$", re.IGNORECASE),
}
_KO_CODED: Final = {
    _WHEN: late(r"^(?:을|를)? ?(?:\S{1,4} ?)?(?:때|전|마다)"),
    _WHAT: late(rf"^(?:을|를|은|는)? ?{_KO_NOT}"),
}


def _found(sentence: str, table: tuple[tuple[str, re.Pattern[str]], ...]) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for code in _CODE.finditer(sentence):
        if _CODED[table].search(sentence[: code.start()]) or _KO_CODED[table].search(sentence[code.end() :]):
            names.update(dict.fromkeys(triggers_of(code[1])))
    rest = _CODE.sub("code", sentence)
    for trigger, pattern in table:
        if pattern.search(rest):
            names[trigger] = None
            rest = pattern.sub(" ", rest)  # what was an action is not another one, too
    return tuple(names)
