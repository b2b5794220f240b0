"""Secrets leave the text, ordinary text stays. Every key here is made up and joined from parts."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorize.log.redact import redact, redact_value

_LETTERS = "aB3dE5gH7jK9mN1pQ2sT4vW6yZ8"
_HEX = "0a1b2c3d4e5f60718293a4b5c6d7e8f9"


def _run(length: int, alphabet: str = _LETTERS) -> str:
    return (alphabet * (length // len(alphabet) + 1))[:length]


# (kind, the secret): prefix and filling are joined only here, so that no scanner takes this file for a leak.
KEYS = [
    ("aws-key", "AK" + "IA" + _run(16, "Q3XW7NRT2K")),
    ("aws-key", "AS" + "IA" + _run(16, "Q3XW7NRT2K")),
    ("google-key", "AI" + "za" + _run(35)),
    ("google-token", "ya" + "29." + _run(40)),
    ("google-token", "GOC" + "SPX-" + _run(28)),
    ("digitalocean-token", "dop" + "_v1_" + _HEX * 2),
    ("cloud-token", "hv" + "s." + _run(24)),
    ("cloud-token", "da" + "pi" + _HEX),
    ("cloud-token", "tsk" + "ey-auth-" + _run(20)),
    ("cloud-token", "nva" + "pi-" + _run(40)),
    ("github-token", "gh" + "p_" + _run(36)),
    ("github-token", "gh" + "o_" + _run(36)),
    ("github-token", "gh" + "u_" + _run(12)),
    ("github-token", "gh" + "s_" + _run(36)),
    ("github-token", "gh" + "r_" + _run(36)),
    ("github-token", "github" + "_pat_" + _run(22) + "_" + _run(30)),
    ("gitlab-token", "gl" + "pat-" + _run(20)),
    ("gitlab-token", "gl" + "dt-" + _run(20)),
    ("forge-token", "ATA" + "TT3" + _run(40)),
    ("slack-token", "xo" + "xb-" + "1234567890-" + _run(24)),
    ("slack-token", "xo" + "xp-" + "1234567890-" + _run(24)),
    ("slack-token", "xa" + "pp-1-" + _run(24)),
    ("telegram-token", "123456789" + ":AA" + _run(33)),
    ("npm-token", "np" + "m_" + _run(36)),
    ("pypi-token", "py" + "pi-AgEI" + _run(50)),
    ("registry-token", "ruby" + "gems_" + _HEX),
    ("registry-token", "dc" + "kr_pat_" + _run(27)),
    ("anthropic-key", "sk-" + "ant-api03-" + _run(40)),
    ("model-key", "sk-" + "proj-" + _run(40)),
    ("model-key", "sk-" + _run(48)),
    ("model-key", "h" + "f_" + _run(34)),
    ("model-key", "gs" + "k_" + _run(40)),
    ("model-key", "r" + "8_" + _run(37)),
    ("model-key", "xa" + "i-" + _run(40)),
    ("stripe-key", "sk" + "_live_" + _run(24)),
    ("stripe-key", "rk" + "_test_" + _run(24)),
    ("sendgrid-key", "S" + "G." + _run(22) + "." + _run(43)),
    ("twilio-key", "S" + "K" + _HEX),
    ("service-token", "shp" + "at_" + _HEX),
    ("age-key", "AGE-" + "SECRET-KEY-1" + _run(40, "QPZRY9X8GF2TVDW0")),
    ("jwt", "ey" + "J" + _run(30) + ".ey" + "J" + _run(40) + "." + _run(43)),
]
PLACES = [
    "{}",
    "I put {} into the settings.",
    "export KEY='{}' && deploy",
    '{{"env": {{"value": "{}"}}}}',
    "한국어 문장 안의 {} 열쇠입니다",
    "curl -H 'X-Thing: {}' https://example.invalid/",
    "first line\n{}\nlast line",
    "https://example.invalid/?key={}&x=1",
    "(`{}`)",
    "--- a\n+++ b\n+value={}\n",
]
PASSWORD = "hunter" + "2-xyz"
NAMED = [
    "password={}",
    "password={} next",
    "export DB_PASSWORD={}",
    "export TOKEN={}; run",
    "PGPASSWORD={} psql -h db",
    "DB_PASS={}",
    "AWS_SECRET_ACCESS_KEY={}",
    "OPENAI_API_KEY = '{}'",
    "API_KEY_2={}",
    "password: {}",
    "  db_password: {}\n  host: db",
    'password: "{}"',
    '{{"password": "{}"}}',
    '{{"apiKey":"{}"}}',
    '{{\\"clientSecret\\": \\"{}\\"}}',
    'os.environ["API_KEY"] = "{}"',
    'password: str = "{}"',
    ":password => '{}'",
    "const authToken = `{}`",
    "secret_key_base: {}",
    "tool --password {} run",
    "tool --password={} run",
    "tool --api-key '{}'",
    "tool -token {}",
    "AccountName=a;AccountKey={};EndpointSuffix=x",
    "https://a.example.invalid/c?sv=2020&sig={}&se=1",
    "Server=db;Uid=sa;Pwd={};",
    "curl -u bob:{} https://example.invalid",
    "curl --user 'bob:{}' https://example.invalid",
    "x-api-key: {}",
    "Authorization: Bearer {}",
    'Authorization: token {}"',
    "authorization={}",
    "https://bob:{}@example.invalid/x.git",
    "postgres://app:{}@db.example.invalid:5432/app?sslmode=require",
    "redis://:{}@localhost:6379/0",
    "비밀번호는 password={} 입니다",
]
ORDINARY = [
    "token budget: 500",
    "password reset flow",
    "tokens=486",
    "max_tokens=4096, token_type: bearer",
    'secret = os.environ["X"]',
    "the token is stored in the keychain",
    "commit 7e0b283f1a2b3c4d5e6f708192a3b4c5d6e7f809",
    "uuid 123e4567-e89b-12d3-a456-426614174000",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    "password: required",
    "def login(user: str, password: str) -> None: ...",
    "interface A { password: string; token: number }",
    "token = tokens[0]",
    "api_key=api_key",
    "connect(password=args.password, token=self._token)",
    "secret=get_secret()",
    "token = await get()",
    "Authorization: Bearer $TOKEN",
    "export TOKEN=$(cat file)",
    "API_KEY=${API_KEY}",
    "password={{ vault.password }}",
    "password=********",
    "password: <your password>",
    "https://github.com/foo/bar/pull/123",
    "git@github.com:foo/bar.git",
    "ssh://git@github.com/foo/bar",
    "write to user@example.invalid",
    "see https://example.invalid/@scope/package and a@b",
    "sk-estimator-doc-link",
    "risk-assessment-of-the-thing, task-list-of-all-things",
    "hf_transformers and npm_config_registry",
    "docker login --password-stdin",
    "tool --token-file /etc/x --tokens 500 --key=2,3",
    "curl -u $USER:$PASS https://example.invalid",
    "if token == expected_value: return",
    "password != other_password",
    "token:\n  - read\n  - write",
    "the secret: never give up",
    "basic functionality and basic infrastructures",
    "the bearer of good news, bearer authentication",
    "primary key: id; foreign key: user_id",
    "sorted(x, key=lambda item: item.name)",
    "PWD=/home/somebody OLDPWD=/tmp",
    "class SkillSetOfTheWholeTeam0123456789: pass",
    "-----BEGIN CERTIFICATE-----\nMIIB0a1b2c3d4e5f\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\nMIIB0a1b2c3d4e5f\n-----END PUBLIC KEY-----",
    "비밀번호: 재설정이 필요합니다. 토큰 예산: 500",
    "秘密はトークンの中にあります: 説明",
    "",
    "\x00\ud800 lone surrogate",
]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("kind", "key"), KEYS)
def test_a_key_of_every_family_is_replaced_wherever_it_stands(kind: str, key: str, place: str) -> None:
    cleaned = redact(place.format(key))
    assert key not in cleaned
    assert key[8:] not in cleaned
    assert cleaned == place.format(f"[redacted:{kind}]")


@pytest.mark.parametrize("form", NAMED)
def test_the_value_of_a_secrets_name_is_replaced_and_the_rest_stays(form: str) -> None:
    cleaned = redact(form.format(PASSWORD))
    assert PASSWORD not in cleaned
    before, after = form.format("\0").split("\0")
    assert cleaned.startswith(before)
    assert cleaned.endswith(after)
    assert "[redacted:" in cleaned


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize("label", ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED ", "PGP "])
@pytest.mark.parametrize("newline", ["\n", "\\n", "\r\n"])
def test_private_key_blocks_go_closed_or_not(label: str, newline: str) -> None:
    kind = label + "PRIVATE" + " KEY" + (" BLOCK" if label == "PGP " else "")
    body = newline.join(_run(64, _LETTERS + "+/") for _ in range(4))
    block = f"-----BEGIN {kind}-----{newline}{body}{newline}-----END {kind}-----"
    assert redact(f"열쇠: {block} 끝") == "열쇠: [redacted:private-key] 끝"
    cut = f"before {block[: len(block) // 2]}"
    assert redact(cut) == "before [redacted:private-key]"


def test_webhooks_lose_their_path() -> None:
    slack = "https://hooks.slack" + ".com/services/T" + _run(8) + "/B" + _run(8) + "/" + _run(24)
    discord = "https://discord" + ".com/api/webhooks/123456789012345678/" + _run(68)
    assert redact(slack) == "https://hooks.slack.com/[redacted:chat-webhook]"
    assert redact(discord) == "https://discord.com/api/webhooks/[redacted:chat-webhook]"


def test_a_token_alone_before_the_host_is_replaced() -> None:
    assert redact(f"git push https://{_run(30)}@example.invalid/x.git") == (
        "git push https://[redacted:url-token]@example.invalid/x.git"
    )


def test_basic_and_bearer_values_are_replaced_outside_of_headers_too() -> None:
    assert redact(f"sent Bearer {_run(20)} to it") == "sent Bearer [redacted:bearer] to it"
    assert redact(f"sent Basic {_run(20)}== to it") == "sent Basic [redacted:basic] to it"


def test_values_under_a_secrets_name_are_replaced_at_any_depth() -> None:
    value = {
        "password": "고양이",
        "clientSecret": "x",
        "env": [
            {"API_KEY": "abc", "Authorization": "plain", "PATH": "/bin"},
            ("token=" + PASSWORD, b"token=raw", 3, None),
        ],
        "tokens": 486,
        "key": "project",
        "text_key": "stays",
        "scope_key": "stays",
        "secrets": "",
        "access_token": ["a", {"b": "c"}],
        "token": "",
    }
    assert redact_value(value) == {
        "password": "[redacted:secret]",
        "clientSecret": "[redacted:secret]",
        "env": [
            {"API_KEY": "[redacted:secret]", "Authorization": "[redacted:secret]", "PATH": "/bin"},
            ("token=[redacted:secret]", b"token=raw", 3, None),
        ],
        "tokens": 486,
        "key": "project",
        "text_key": "stays",
        "scope_key": "stays",
        "secrets": "",
        "access_token": ["[redacted:secret]", {"b": "c"}],
        "token": "",
    }


def test_a_key_in_a_mappings_name_is_replaced() -> None:
    assert list(redact_value({KEYS[10][1]: 1})) == ["[redacted:github-token]"]


_SNIPPETS = st.one_of(
    st.sampled_from([key for _, key in KEYS]),
    st.sampled_from([form.format(PASSWORD) for form in NAMED]),
    st.sampled_from(ORDINARY),
    st.sampled_from(
        [
            "password",
            "token",
            "=",
            ":",
            " ",
            '"',
            "'",
            "\\",
            "://",
            "@",
            "-",
            "--",
            "bearer ",
            "[redacted:x]",
            "\n",
            "eyJ",
        ]
    ),
    st.text(max_size=20),
)


@given(st.lists(_SNIPPETS, max_size=8).map("".join))
def test_redacting_twice_is_redacting_once(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


@given(st.sampled_from(KEYS), st.text(max_size=30), st.text(max_size=30))
def test_no_key_survives_between_arbitrary_texts(key: tuple[str, str], before: str, after: str) -> None:
    assert key[1] not in redact(f"{before} {key[1]} {after}")


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz가나다라마바사 .,\n", max_size=300))
def test_words_and_spaces_alone_are_never_touched(text: str) -> None:
    assert redact(text) is text


_HARD = [
    *(
        "a",
        "=",
        ":",
        "--a ",
        "Bearer ",
        "://",
        "api_key=",
        "password: ",
        "-----BEGIN PRIVATE KEY-----",
        "curl -u ",
        "eyJ",
        "sk-",
    ),
    *(
        'password="',
        "eyJaaaaaaaaaaaaa.",
        "https://a:",
        "@://",
        "token token=",
        "gh" + "p_",
        " ",
        "\\",
        "key:\t",
        "1:AA",
        "authorization: ",
    ),
]


@pytest.mark.parametrize("value", ["tokenab12cd34", "basically56ef", "Bearer78ghIJ90"])
def test_nothing_is_kept_of_a_header_that_begins_like_the_name_of_a_scheme(value: str) -> None:
    assert redact(f"인증 Authorization: {value} 끝") == "인증 Authorization: [redacted:authorization] 끝"


@pytest.mark.parametrize("part", _HARD)
def test_the_time_grows_with_the_length_and_not_with_its_square(part: str) -> None:
    def seconds(size: int) -> float:
        text = "password=x " + part * (size // len(part))
        began = time.process_time()
        redact(text)
        return time.process_time() - began

    small, large = max(seconds(20_000), 0.002), seconds(160_000)
    assert large < small * 8 * 4, f"8 times the text took {large / small:.0f} times as long"
