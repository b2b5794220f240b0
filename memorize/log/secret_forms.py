"""What secrets look like: the table behind ``redact``.

Loose on purpose: a known prefix and a dozen characters are enough. Every pattern starts at a literal and has no nested
repetition, so the time is linear; beside the patterns stand the cheap tests that tell when none of them has a chance.
"""

from __future__ import annotations

import re
from typing import Final

from memorize.patterns import late

# --- keys with a prefix of their own: (placeholder, patterns without the 12 characters that must follow) -------------
# ``W`` stands for a word character run, ``A`` for letters and digits, ``M`` for the same with at least one digit or
# capital in it, so that names such as hf_transformers stay.
W: Final = r"[A-Za-z0-9_\-]{12,}"
A: Final = r"[A-Za-z0-9]{12,}"
M: Final = r"(?=[a-z]{0,64}[0-9A-Z])[A-Za-z0-9]{12,}"

TOKENS: Final[tuple[tuple[str, str], ...]] = (
    ("aws-key", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}"),
    ("google-key", rf"AIza{W}"),
    ("google-token", rf"ya29\.{W}|GOCSPX-{W}|1//0[A-Za-z0-9_\-]{{20,}}"),
    ("digitalocean-token", rf"do[opr]_v1_{A}"),
    ("cloud-token", rf"hvs\.{W}|hvb\.{W}|dapi[0-9a-f]{{12,}}|tskey-{W}|pscale_(?:tkn|pw|oauth)_{W}|nvapi-{W}"),
    (
        "cloud-token",
        rf"sbp_{A}|nfp_{A}|FlyV1 fm\d_{W}|fo1_{W}|glsa_{W}|glc_{W}|NRAK-{A}|dp\.(?:pt|st|ct|sa)\.{W}",
    ),
    ("github-token", rf"gh[pousr]_{A}|github_pat_{W}"),
    ("gitlab-token", rf"gl(?:pat|ptt|dt|rt|cbt|imt|agent|soat|oas|ft|ffct)-{W}|GR1348941{W}"),
    ("forge-token", rf"ATATT3{W}|ATCTT3{W}|ATBB{A}|CCIPAT_{W}|bkua_{A}"),
    ("slack-token", rf"xox[abeoprs](?:\.xox[bp])?-{W}|xapp-{W}"),
    ("chat-webhook", r"(?<=hooks\.slack\.com/)(?:services|workflows|triggers)/[A-Za-z0-9_/\-]{12,}"),
    ("chat-webhook", r"(?<=/api/webhooks/)\d{5,}/[A-Za-z0-9_\-]{12,}"),
    ("telegram-token", r"\d{8,10}:AA[A-Za-z0-9_\-]{30,}"),
    ("npm-token", rf"npm_{M}"),
    ("pypi-token", rf"pypi-Ag{W}"),
    ("registry-token", rf"rubygems_{A}|dckr_[po]at_{W}|cio[A-Za-z0-9]{{32}}(?![A-Za-z0-9])|oy2[a-z0-9]{{43}}"),
    ("anthropic-key", rf"sk-ant-{W}"),
    ("model-key", rf"sk-(?:proj|svcacct|admin|or|None|lf|litellm)-{W}|sk-{A}|csk-{A}|xai-{M}|pplx-{A}"),
    ("model-key", rf"hf_{M}|api_org_{M}|gsk_{M}|r8_{M}|tgp_v1_{W}|fw_{M}|lsv2_(?:pt|sk)_{W}"),
    ("stripe-key", rf"[sr]k_(?:live|test|prod)_{A}|whsec_{M}"),
    ("sendgrid-key", r"SG\.[A-Za-z0-9_\-]{15,}(?:\.[A-Za-z0-9_\-]+)?"),
    ("twilio-key", r"SK[0-9a-f]{32}(?![0-9A-Za-z])"),
    ("mail-key", r"key-[0-9a-f]{32}(?![0-9A-Za-z])|xkeysib-[0-9a-f]{12,}|[0-9a-f]{32}-us\d\d?(?![0-9A-Za-z])"),
    (
        "service-token",
        rf"shp(?:at|ca|pa|ss)_{A}|sq0(?:atp|csp|idp)-{W}|EAAA[A-Za-z0-9_\-]{{40,}}|PMAK-{W}|figd_{W}",
    ),
    ("service-token", rf"lin_api_{A}|ntn_{A}|secret_{M}|dt0c01\.{W}|phx_{M}|sntry[su]_{W}"),
    ("memorize-key", rf"memorize-key-1:{W}"),
    ("age-key", r"AGE-SECRET-KEY-1[A-Z0-9]{12,}"),
    ("jwt", r"eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}(?:\.[A-Za-z0-9_\-]*)*"),
)

# One pattern for all. Behind a match the rest of the run goes too: half a key helps nobody, and what is left over can
# then never look like the beginning of another one.
TOKEN: Final = late(
    r"(?<![A-Za-z0-9])(?=[ACEFGNPSTa-ik-pr-y0-9])(?:"
    + "|".join(f"(?P<t{n}>{pattern})" for n, (_, pattern) in enumerate(TOKENS))
    + r")[A-Za-z0-9_\-]*"
)
# What must stand in a long run, or right before it, for the pattern above to have a chance.
STARTS: Final = (
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
    b"SK",
    b"cio",
    b"oy2",
)
BEFORE: Final = (
    b"ya29.",
    b"hvs.",
    b"hvb.",
    b"SG.",
    b"dt0c01.",
    b"dp.pt.",
    b"dp.st.",
    b"dp.ct.",
    b"dp.sa.",
    b"1//",
    b"key-1:",
)
# Nearly every run has neither of these, which a look at a byte or two tells.
LEADS: Final = frozenset(start[:2] for start in STARTS)
EDGES: Final = frozenset(one[-2:] for one in BEFORE)
JOINT: Final = late(
    rb"[_-](?:(?<=sk-|hf_|r8_|fw_)(?<![A-Za-z0-9]...)|(?<=[sr]k_)(?=live|test|prod)|"
    rb"(?<=gh[pousr]_|npm_|gsk_|xai-|csk-|sbp_|nfp_|fo1_|glc_|ntn_|phx_|tgp_|AGE-|fm\d_)|(?<=key-)(?=[0-9a-f]{9})|(?<=do[opr]_)v1_|"
    rb"(?<=glsa_|figd_|PMAK-|NRAK-|pplx-|dckr_|xapp-|bkua_|xox.-|lsv2_|gl[a-z]{2}-)|(?<=pypi-)Ag|"
    rb"(?<=tskey-|whsec_|nvapi-|shp.._|gl[a-z]{3}-)|(?<=github_)pat_|(?<=lin_)api_|(?<=api_)org_|us\d|"
    rb"(?<=pscale_|GOCSPX-|CCIPAT_|secret_|sntry._|sq0[a-z]{3}-|gl[a-z]{4}-)|(?<=xkeysib-|glagent-)|(?<=rubygems_)|"
    rb"A[KSBC]IA|ACCA|AIza|eyJ)"
)

RUN_CHARS: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")
CLASSES: Final = bytes(97 if byte in RUN_CHARS else 32 for byte in range(256))
RUN: Final = b"a" * 15
# A long run behind a slash, not far from this word.
HOOK: Final = late(rb"hooks.{0,74}/[A-Za-z0-9_\-]{15}", re.DOTALL)

# --- key blocks ---
PEM: Final = late(
    r"-----BEGIN (?:[A-Z0-9]+ ){0,4}(?:PRIVATE KEY(?: BLOCK)?|SECRET KEY)-----"
    r"(?:(?!-----END ).)*(?:-----END [A-Z0-9 ]{0,60}-----)?",
    re.DOTALL,
)

# --- passwords in addresses ---
URL: Final = late(
    r"(?<=://)(?P<user>[^\s/?#@:\"'<>`\[\]]{0,256}+)(?::(?P<secret>(?!\[redacted:)[^\s/@\"'<>`]{1,1024}+))?@(?=[^\s@])"
)

# --- headers and assignments ---
HEADER: Final = late(
    r"(?<![A-Za-z0-9_])(?P<scheme>[Bb]earer|BEARER|[Bb]asic|BASIC)(?P<gap>(?:\s|%20|\+){1,4})(?P<value>[A-Za-z0-9._~+/\-]{12,}+=*)"
)
_SCHEME: Final = "(?:bearer|basic|token|apikey|key|digest)"
AUTHORIZATION: Final = late(
    rf"(?i)(?P<lead>authorization\\?[\"']?\s{{0,4}}[:=]\s{{0,4}}\\?[\"']?(?:{_SCHEME}\s{{1,4}})?)(?!{_SCHEME}\s)"
    r"(?P<value>[A-Za-z0-9._~+/\-]{6,}=*)"
)
USER: Final = late(
    r"(?P<lead>\bcurl\b[^\n]{0,160}?\s(?:-u|--user)[ =]{0,2}[\"']?[^\s:\"']{1,64}:)"
    r"(?P<value>(?!\[redacted:)[^\s\"'$]{4,})"
)
KEY_OF: Final = ("api", "access", "account", "secret", "private", "encryption", "signing", "auth", "master", "storage")
NAMES: Final = (
    *("password", "passwd", "passphrase", "passcode", "_pwd", "-pwd", ";pwd", "_pass", "-pass", "secret", "token"),
    *("credential", "credentials", "?sig", "&sig", ";sig", "secret_key_base"),
    *(f"{word}{joint}key" for word in KEY_OF for joint in ("", "_", "-")),
)
NAME_CHARS_MAX: Final = 48
SKIP_CHARS: Final = 256
SEPARATOR: Final = late(r"[=:](?<=[\w\"'\s\]\\\-].)")
FLAG: Final = late(r"-(?<![\w\-]-)-?(?P<name>[A-Za-z][\w\-]{0,47}+) {1,2}(?=[^\s\-])")
VALUE: Final = late(
    r"(?P<sep>(?:=>|:=|[:=]|)[ \t]{0,8})(?:(?:str|string)[ \t]{0,2}=[ \t]{0,2})?"
    r"(?:[rbfu]?(?P<quote>\\?[\"'`])(?P<quoted>(?!\[redacted:)[^\"'`\\\n]{1,4096}+)(?P=quote)"
    r"|(?P<plain>[^\s\"'`,;&|<>(){}\[\]$*%\\=][^\s\"'`,;&|<>(){}\[\]$\\]*+)(?P<after>[(\[]?))"
)

# The cheap test for all of these, on folded bytes: lower case, both separators as one, quotes and spaces left out, so
# that a secret's name stands right before "=" or behind a dash.
SQUEEZED: Final = b"\t\"'\\[]"
FOLD: Final = bytes(61 if byte == 58 else byte + 32 if 65 <= byte <= 90 else byte for byte in range(256))
BEHIND: Final = "".join(
    rf"|(?<=[oasrpkieydnt][a-eilnorstwyd_-][desntylg0-9]{gap}=)(?:(?<=word{gap}=|sswd{gap}=|rase{gap}=|code{gap}=|[_;-]pwd{gap}=|pass{gap}=|cret{gap}=|"
    rf"oken{gap}=|[iystneghr_-]key{gap}=|tial{gap}=|ials{gap}=|[?&;]sig{gap}=|(?:key|ord|ken|ret)\d{gap}=|"
    rf"(?:ey|rd|en|et)[_-]\d{gap}=)|(?<=ization{gap}=)|(?<=key_base{gap}=))"
    for gap in ("", " ")
)
NAMED: Final = late(rf"=(?:(?<=  =)|(?<=curlhttps=)|(?<=curlhttp=)|(?<=curl https=)|(?<=curl http=){BEHIND})".encode())
DASHED: Final = late(
    rb"-(?:(?<=curl -)|(?<=--)[\w-]{0,24}?(?:pass|token|secret|key|cred)|(?:pass|token|secret|apikey))"
)
NOT_A_VALUE: Final = frozenset(
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
CODE: Final = late(
    r"(?:self|this|cls|os|process|config|settings|env|args|ctx|req|request|options|opts)\b[.?!]|(?:await|return|lambda|function)$"
)
DOTTED_NAME: Final = late(r"[A-Za-z_]+\d{0,3}(?:[._][A-Za-z_]*\d{0,3}){1,16}[:.]?")
LINE_NAME: Final = late(r"\s*(?:- )?[\"']?[\w.\-]+[\"']?\s*")
MENTION: Final = late(r"(?i)pass|pwd|secret|token|key|cred")

# --- names of secrets in structured values ---
SECRET_KEY: Final = late(
    r"(?i)(?:.*[^A-Za-z])?(?:passw(?:or)?d|passphrase|passcode|pwd|pass|secret|token|credentials?|(?:proxy-)?authorization|"
    r"(?:api|access|account|private|secret|encryption|signing|auth|master)[_\- ]?key|secret_key_base)(?:[_\-]?\d{1,2})?"
)
SECRET_CAMEL: Final = late(
    r".*[a-z0-9](?:Password|Passwd|Passphrase|Secret|Token|Credentials?|(?:Api|API|Access|Account|Private|Secret|Signing|Auth)Key)"
)
