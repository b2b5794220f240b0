"""Secrets out, everything else untouched: the filter that every string passes before it may become part of an event.

The table is loose on purpose: a known prefix and a dozen characters are enough, because an erased commit message
costs less than a published key. What it must not touch is ordinary text: hashes, ids, paths, prose about passwords.

Nearly all text holds no secret, so the work is ordered by that. ``redact`` first looks for the three things without
which nothing below can match (a long run of token characters that begins like a key, a secret's name in front of a
separator, an ``@`` behind a scheme) with byte translations and memory searches, and runs a pattern only when one of
them is there. Every pattern starts at a literal and has no nested repetition, so the time is linear.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

_PASSES_MAX: Final = 8
_MEMO_KEYS_MAX: Final = 4096
_SHORT_CHARS: Final = 80

# --- keys with a prefix of their own: (placeholder, patterns without the 12 characters that must follow) -------------
# ``W`` stands for a word character run, ``A`` for letters and digits, ``M`` for the same with at least one digit or
# capital in it, so that names such as hf_transformers stay.
_W: Final = r"[A-Za-z0-9_\-]{12,}"
_A: Final = r"[A-Za-z0-9]{12,}"
_M: Final = r"(?=[a-z]{0,64}[0-9A-Z])[A-Za-z0-9]{12,}"

_TOKENS: Final[tuple[tuple[str, str], ...]] = (
    ("aws-key", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}"),
    ("google-key", rf"AIza{_W}"),
    ("google-token", rf"ya29\.{_W}|GOCSPX-{_W}|1//0[A-Za-z0-9_\-]{{20,}}"),
    ("digitalocean-token", rf"do[opr]_v1_{_A}"),
    ("cloud-token", rf"hvs\.{_W}|hvb\.{_W}|dapi[0-9a-f]{{12,}}|tskey-{_W}|pscale_(?:tkn|pw|oauth)_{_W}|nvapi-{_W}"),
    (
        "cloud-token",
        rf"sbp_{_A}|nfp_{_A}|FlyV1 fm\d_{_W}|fo1_{_W}|glsa_{_W}|glc_{_W}|NRAK-{_A}|dp\.(?:pt|st|ct|sa)\.{_W}",
    ),
    ("github-token", rf"gh[pousr]_{_A}|github_pat_{_W}"),
    ("gitlab-token", rf"gl(?:pat|ptt|dt|rt|cbt|imt|agent|soat|oas|ft|ffct)-{_W}|GR1348941{_W}"),
    ("forge-token", rf"ATATT3{_W}|ATCTT3{_W}|ATBB{_A}|CCIPAT_{_W}|bkua_{_A}"),
    ("slack-token", rf"xox[abeoprs](?:\.xox[bp])?-{_W}|xapp-{_W}"),
    ("chat-webhook", r"(?<=hooks\.slack\.com/)(?:services|workflows|triggers)/[A-Za-z0-9_/\-]{12,}"),
    ("chat-webhook", r"(?<=/api/webhooks/)\d{5,}/[A-Za-z0-9_\-]{12,}"),
    ("telegram-token", r"\d{8,10}:AA[A-Za-z0-9_\-]{30,}"),
    ("npm-token", rf"npm_{_M}"),
    ("pypi-token", rf"pypi-Ag{_W}"),
    ("registry-token", rf"rubygems_{_A}|dckr_[po]at_{_W}|cio[A-Za-z0-9]{{32}}(?![A-Za-z0-9])|oy2[a-z0-9]{{43}}"),
    ("anthropic-key", rf"sk-ant-{_W}"),
    ("model-key", rf"sk-(?:proj|svcacct|admin|or|None|lf|litellm)-{_W}|sk-{_A}|csk-{_A}|xai-{_M}|pplx-{_A}"),
    ("model-key", rf"hf_{_M}|api_org_{_M}|gsk_{_M}|r8_{_M}|tgp_v1_{_W}|fw_{_M}|lsv2_(?:pt|sk)_{_W}"),
    ("stripe-key", rf"[sr]k_(?:live|test|prod)_{_A}|whsec_{_M}"),
    ("sendgrid-key", r"SG\.[A-Za-z0-9_\-]{15,}(?:\.[A-Za-z0-9_\-]+)?"),
    ("twilio-key", r"SK[0-9a-f]{32}(?![0-9A-Za-z])"),
    ("mail-key", r"key-[0-9a-f]{32}(?![0-9A-Za-z])|xkeysib-[0-9a-f]{12,}|[0-9a-f]{32}-us\d\d?(?![0-9A-Za-z])"),
    (
        "service-token",
        rf"shp(?:at|ca|pa|ss)_{_A}|sq0(?:atp|csp|idp)-{_W}|EAAA[A-Za-z0-9_\-]{{40,}}|PMAK-{_W}|figd_{_W}",
    ),
    ("service-token", rf"lin_api_{_A}|ntn_{_A}|secret_{_M}|dt0c01\.{_W}|phx_{_M}|sntry[su]_{_W}"),
    ("age-key", r"AGE-SECRET-KEY-1[A-Z0-9]{12,}"),
    ("jwt", r"eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}(?:\.[A-Za-z0-9_\-]*)*"),
)

# One pattern for all. Behind a match the rest of the run goes too: half a key helps nobody, and what is left over can
# then never look like the beginning of another one.
_TOKEN: Final = re.compile(
    r"(?<![A-Za-z0-9])(?=[ACEFGNPSTa-ik-pr-y0-9])(?:"
    + "|".join(f"(?P<t{n}>{pattern})" for n, (_, pattern) in enumerate(_TOKENS))
    + r")[A-Za-z0-9_\-]*"
)
# What must stand in a long run, or right before it, for the pattern above to have a chance.
_STARTS: Final = (
    b"AKIA",
    b"ASIA",
    b"ABIA",
    b"ACCA",
    b"AIza",
    b"dapi",
    b"GR134",
    b"ATATT3",
    b"ATCTT3",
    b"ATBB",
    b"EAAA",
    b"eyJ",
)
_OTHER_STARTS: Final = (b"SK", b"cio", b"oy2")
_BEFORE: Final = (b"ya29.", b"hvs.", b"hvb.", b"SG.", b"dt0c01.", b"dp.pt.", b"dp.st.", b"dp.ct.", b"dp.sa.", b"1//")
_JOINT: Final = re.compile(
    rb"[_-](?:(?<=sk-|hf_|r8_|fw_)(?<![A-Za-z0-9]...)|(?<=[sr]k_)(?=live|test|prod)|"
    rb"(?<=gh[pousr]_|npm_|gsk_|xai-|csk-|sbp_|nfp_|fo1_|glc_|ntn_|phx_|tgp_|AGE-|fm\d_)|(?<=key-)(?=[0-9a-f]{9})|(?<=do[opr]_)v1_|"
    rb"(?<=glsa_|figd_|PMAK-|NRAK-|pplx-|dckr_|xapp-|bkua_|xox.-|lsv2_|gl[a-z]{2}-)|(?<=pypi-)Ag|"
    rb"(?<=tskey-|whsec_|nvapi-|shp.._|gl[a-z]{3}-)|(?<=github_)pat_|(?<=lin_)api_|(?<=api_)org_|us\d|"
    rb"(?<=pscale_|GOCSPX-|CCIPAT_|secret_|sntry._|sq0[a-z]{3}-|gl[a-z]{4}-)|(?<=xkeysib-|glagent-)|(?<=rubygems_)|"
    rb"A[KSBC]IA|ACCA|AIza|eyJ)"
)

_RUN_CHARS: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")
_CLASSES: Final = bytes(97 if byte in _RUN_CHARS else 32 for byte in range(256))
_RUN: Final = b"a" * 15

# --- key blocks ---
_PEM: Final = re.compile(
    r"-----BEGIN (?:[A-Z0-9]+ ){0,4}(?:PRIVATE KEY(?: BLOCK)?|SECRET KEY)-----"
    r"(?:(?!-----END ).)*(?:-----END [A-Z0-9 ]{0,60}-----)?",
    re.DOTALL,
)

# --- passwords in addresses ---
_URL: Final = re.compile(
    r"(?<=://)(?P<user>[^\s/?#@:\"'<>`\[\]]{0,256}+)(?::(?P<secret>(?!\[redacted:)[^\s/@\"'<>`]{1,1024}+))?@(?=[^\s@])"
)

# --- headers and assignments ---
_HEADER: Final = re.compile(
    r"(?<![A-Za-z0-9_])(?P<scheme>[Bb]earer|BEARER|[Bb]asic|BASIC)(?P<gap>(?:\s|%20|\+){1,4})(?P<value>[A-Za-z0-9._~+/\-]{12,}+=*)"
)
_AUTHORIZATION: Final = re.compile(
    r"(?i)(?P<lead>authorization\\?[\"']?\s{0,4}[:=]\s{0,4}\\?[\"']?(?:(?:bearer|basic|token|apikey|key|digest)\s{1,4})?+)"
    r"(?P<value>[A-Za-z0-9._~+/\-]{6,}=*)"
)
_USER: Final = re.compile(
    r"(?P<lead>\bcurl\b[^\n]{0,160}?\s(?:-u|--user)[ =]{0,2}[\"']?[^\s:\"']{1,64}:)"
    r"(?P<value>(?!\[redacted:)[^\s\"'$]{4,})"
)
_KEY_OF: Final = ("api", "access", "account", "secret", "private", "encryption", "signing", "auth", "master", "storage")
_NAMES: Final = (
    *("password", "passwd", "passphrase", "passcode", "_pwd", "-pwd", ";pwd", "_pass", "-pass", "secret", "token"),
    *("credential", "credentials", "?sig", "&sig", ";sig", "secret_key_base"),
    *(f"{word}{joint}key" for word in _KEY_OF for joint in ("", "_", "-")),
)
_NAME_CHARS_MAX: Final = 48
_SKIP_CHARS: Final = 256
_SEPARATOR: Final = re.compile(r"[=:](?<=[\w\"'\s\]\\\-].)")
_FLAG: Final = re.compile(r"-(?<![\w\-]-)-?(?P<name>[A-Za-z][\w\-]{0,47}+) {1,2}(?=[^\s\-])")
_VALUE: Final = re.compile(
    r"(?P<sep>(?:=>|:=|[:=]|)[ \t]{0,8})(?:(?:str|string)[ \t]{0,2}=[ \t]{0,2})?"
    r"(?:[rbfu]?(?P<quote>\\?[\"'`])(?P<quoted>(?!\[redacted:)[^\"'`\\\n]{1,4096}+)(?P=quote)"
    r"|(?P<plain>[^\s\"'`,;&|<>(){}\[\]$*%\\=][^\s\"'`,;&|<>(){}\[\]$\\]*+)(?P<after>[(\[]?))"
)

# The cheap test for all of these, on folded bytes: lower case, both separators as one, quotes and spaces left out, so
# that a secret's name stands right before "=" or behind a dash.
_SQUEEZED: Final = b" \t\"'\\[]"
_FOLD: Final = bytes(61 if byte == 58 else byte + 32 if 65 <= byte <= 90 else byte for byte in range(256))
_NAMED: Final = re.compile(
    rb"=(?<=[detynglskp0-9]=)(?:(?<=word=|sswd=|rase=|code=|[_;-]pwd=|pass=|cret=|oken=|[iystneghr_-]key=|tial=|ials=|"
    rb"[?&;]sig=|(?:key|ord|ken|ret)\d=|(?:ey|rd|en|et)[_-]\d=)|(?<=ization=)|(?<=key_base=)|(?<=curlhttps=)|(?<=curlhttp=))"
)
_DASHED: Final = re.compile(
    rb"-(?:(?<=curl-)|(?<=--)[\w-]{0,24}?(?:pass|token|secret|key|cred)|(?:pass|token|secret|apikey))"
)
_NOT_A_VALUE: Final = frozenset(
    (
        *(
            "string",
            "number",
            "boolean",
            "object",
            "undefined",
            "optional",
            "integer",
            "readonly",
            "varchar",
            "nullable",
        ),
        *(
            "required",
            "invalid",
            "missing",
            "expired",
            "changed",
            "removed",
            "redacted",
            "default",
            "disabled",
            "enabled",
        ),
        *("hidden", "unknown", "private", "public", "example", "static"),
    )
)
_CODE: Final = re.compile(
    r"(?:self|this|cls|os|process|config|settings|env|args|ctx|req|request|options|opts)\b[.?!]|(?:await|return|lambda|function)$"
)
_DOTTED_NAME: Final = re.compile(r"[A-Za-z_]+\d{0,3}(?:[._][A-Za-z_]*\d{0,3}){1,16}[:.]?")
_LINE_NAME: Final = re.compile(r"\s*(?:- )?[\"']?[\w.\-]+[\"']?\s*")
_MENTION: Final = re.compile(r"(?i)pass|pwd|secret|token|key|cred")

# --- names of secrets in structured values ---
_SECRET_KEY: Final = re.compile(
    r"(?i)(?:.*[^A-Za-z])?(?:passw(?:or)?d|passphrase|passcode|pwd|pass|secret|token|credentials?|(?:proxy-)?authorization|"
    r"(?:api|access|account|private|secret|encryption|signing|auth|master)[_\- ]?key|secret_key_base)(?:[_\-]?\d{1,2})?"
)
_SECRET_CAMEL: Final = re.compile(
    r".*[a-z0-9](?:Password|Passwd|Passphrase|Secret|Token|Credentials?|(?:Api|API|Access|Account|Private|Secret|Signing|Auth)Key)"
)
PLACEHOLDER: Final = "[redacted:{}]"
_SECRET: Final = PLACEHOLDER.format("secret")
_memo: dict[object, tuple[Any, bool]] = {}
_clean: set[str] = set()


def redact(text: str) -> str:
    """Return the text with every secret replaced by a typed placeholder such as ``[redacted:aws-key]``.

    Idempotent, total and linear in the length. Text without secrets comes back as the same object.
    """
    if len(text) < 8 or text in _clean:
        return text
    raw = text.encode("utf-8", "surrogatepass")
    keys = _key_like(raw)
    if not keys and not ("@" in text and "://" in text):
        if not ("=" in text or ":" in text or "-" in text):
            return _remembered(text)
        folded = raw.translate(_FOLD, _SQUEEZED)
        if not (_NAMED.search(folded) or _DASHED.search(folded)):
            return _remembered(text)
    for _ in range(_PASSES_MAX):
        cleaned = _once(text, keys)
        if cleaned == text:
            return text
        text = cleaned
    return text


def _remembered(text: str) -> str:
    """Return a text without secrets; a short one is remembered: sessions, projects and branches come again."""
    if len(text) <= _SHORT_CHARS:
        if len(_clean) >= _MEMO_KEYS_MAX:
            _clean.clear()
        _clean.add(text)
    return text


def redact_value(value: Any) -> Any:
    """Return the value with every string in it redacted, at any depth of mappings, lists and tuples.

    A string under a secret's name (``password``, ``apiKey``, ``Authorization``) is replaced whatever it holds.
    Bytes, numbers and anything else stay as they are.
    """
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        clean = {}
        for key, item in value.items():
            name, secret = _memo.get(key) or _name(key)
            clean[name] = _hide(item) if secret else redact(item) if type(item) is str else redact_value(item)
        return clean
    if isinstance(value, list | tuple):
        items = [redact_value(item) for item in value]
        return items if isinstance(value, list) else tuple(items)
    return value


def _hide(value: Any) -> Any:
    """Replace a value that stands under a secret's name; what is no text may still hold some."""
    if isinstance(value, str):
        return value if not value or value.startswith("[redacted:") else _SECRET
    if isinstance(value, list | tuple):
        return type(value)(_hide(item) for item in value)
    return redact_value(value)


def _name(key: object) -> tuple[Any, bool]:
    """Return a mapping's key, redacted, and whether it names a secret. Remembered: the same few keys come again."""
    if not isinstance(key, str):
        return key, False
    short = key[-80:]
    known = redact(key), _SECRET_KEY.fullmatch(short) is not None or _SECRET_CAMEL.fullmatch(short) is not None
    if len(_memo) < _MEMO_KEYS_MAX and len(key) <= _SHORT_CHARS:
        _memo[key] = known
    return known


def _key_like(raw: bytes) -> bool:
    """Tell whether some run of token characters is long enough and stands at a known prefix."""
    classes = raw.translate(_CLASSES)
    start = classes.find(_RUN)
    if start < 0:
        return False
    while start >= 0:
        end = classes.find(b" ", start)
        if end < 0:
            end = len(raw)
        if raw.startswith(_STARTS, start) or _JOINT.search(raw, start, end) or _edge(raw, start):
            return True
        start = classes.find(_RUN, end)
    return raw.find(b"-----BEGIN") >= 0 or raw.find(b"earer") >= 0 or raw.find(b"asic ") >= 0 or raw.find(b"EARER") >= 0


def _edge(raw: bytes, start: int) -> bool:
    """Tell whether what stands before a run, or its first letters, may belong to a key without a joint."""
    if raw.startswith(_OTHER_STARTS, start):
        return True
    before = raw[start - 1 : start]
    if before == b":":
        return raw.startswith(b"AA", start)
    if before == b"/" and raw.find(b"hooks", max(0, start - 80), start) >= 0:
        return True
    return before in (b".", b"/") and raw.endswith(_BEFORE, 0, start)


def _once(text: str, keys: bool) -> str:
    """Run every pattern that has a chance over the text."""
    if keys:
        text = _PEM.sub(PLACEHOLDER.format("private-key"), text) if "-----BEGIN" in text else text
        text = _TOKEN.sub(_token, text)
        text = _HEADER.sub(_header, text)
    if "://" in text:
        text = _URL.sub(_address, text)
    if "curl" in text:
        text = _USER.sub(lambda match: match["lead"] + _SECRET, text)
    text = _AUTHORIZATION.sub(lambda match: match["lead"] + PLACEHOLDER.format("authorization"), text)
    return _assignments(text)


def _token(match: re.Match[str]) -> str:
    """Name the kind of key that was found."""
    return PLACEHOLDER.format(_TOKENS[int((match.lastgroup or "t0")[1:])][0])


def _header(match: re.Match[str]) -> str:
    """Keep the scheme; "basic functionality" and the like have neither digits nor a mixture of cases."""
    scheme, value = match["scheme"], match["value"]
    mixed = not value.islower() and not value.isupper()
    if not (mixed or (scheme.lower() == "bearer" and any(char.isdigit() for char in value))):
        return match[0]
    return f"{scheme}{match['gap']}[redacted:{scheme.lower()}]"


def _address(match: re.Match[str]) -> str:
    """Keep the user, drop the password; a lone long word before the host is a token."""
    user, secret = match["user"], match["secret"]
    if secret is not None:
        return f"{user}:[redacted:url-password]@"
    if len(user) >= 12 and any(char.isdigit() for char in user):
        return "[redacted:url-token]@"
    return match[0]


def _assignments(text: str) -> str:
    """Replace the values of assignments to a secret's name, unless they are code, a reference or prose."""
    found: list[tuple[int, int]] = []
    done = 0
    for match in _SEPARATOR.finditer(text):
        if match.start() < done:
            continue
        head = text[max(0, match.start() - _NAME_CHARS_MAX) : match.start()].rstrip(" \t\"'\\]").rstrip("0123456789_-")
        if head.lower().endswith(_NAMES):
            value = _VALUE.match(text, match.start())
            if value is not None and _is_secret(value, head):
                found.append(value.span("quoted" if value["plain"] is None else "plain"))
                done = value.end()
            elif value is not None and value.end() - value.start() > _SKIP_CHARS:
                done = value.end()  # keeps the time linear
    for match in _FLAG.finditer(text):
        if ("-" + match["name"].lower()).endswith(_NAMES):
            value = _VALUE.match(text, match.end())
            if value is not None and _is_secret(value, ""):
                found.append(value.span("quoted" if value["plain"] is None else "plain"))
    pieces, done = [], 0
    for start, end in sorted(found):
        if start >= done:
            pieces += [text[done:start], _SECRET]
            done = end
    return "".join(pieces) + text[done:] if pieces else text


def _is_secret(match: re.Match[str], name: str) -> bool:
    """Decide by the form of the assignment and of the value. No name: the value follows a flag."""
    separator, value = match["sep"], match["quoted"] or match["plain"]
    if match["quoted"] is not None:
        spaced = " " in value.strip()
        return (
            len(value) >= 4
            and not _reference(value)
            and not (spaced and ":" in separator)
            and value.lower() not in _NOT_A_VALUE
        )
    if match["after"] or len(value) < 6 or _reference(value) or value.lower().rstrip(".:") in _NOT_A_VALUE:
        return False
    if _DOTTED_NAME.fullmatch(value) or _CODE.match(value) or (value.isdigit() and len(value) < 8 and name):
        return False
    if any(char.isdigit() or char in "!#@^~+=?/" for char in value.rstrip("?!.:")):
        return True
    if not name or name[-8:].isupper():
        return True
    return (separator == "=" or (":" in separator and _alone(match))) and _MENTION.search(value) is None


def _alone(match: re.Match[str]) -> bool:
    """Tell whether the assignment is a whole line, as in YAML."""
    text, end = match.string, match.end()
    before = text[max(0, match.start() - 2 * _NAME_CHARS_MAX) : match.start()].rpartition("\n")[2]
    return (end == len(text) or text[end] in "\r\n") and _LINE_NAME.fullmatch(before) is not None


def _reference(value: str) -> bool:
    """Tell whether the value only points at a secret: a variable, a template, a mask, an earlier placeholder."""
    return value[0] in "$<{[%*" or "${" in value or "{{" in value or not value.strip("*.xX•- ")
