"""Command lines that nobody writes: nothing raises, nothing fires by mistake, and time grows with the length alone."""

from __future__ import annotations

import random
import re
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

import pytest

from memorize.recall.deeds import BUILT_IN, DEEDS, GOALS
from memorize.recall.triggers import triggers_of
from memorize.recall.words import Shell
from tests.counts import FULL, count
from tests.recall.command_lines import ALIASES, CMD, OWN, POSIX, POWERSHELL

_SHELLS: Final[tuple[Shell, ...]] = ("posix", "powershell", "cmd")
_PIECES: Final = (
    *"'\"\\`$(){}[]<>|&;#!=-+*?~^%@,:\n\t\r /",
    *("&&", "||", ";;", "<<EOF\n", "\nEOF\n", "<<-'X'\n", "$(", "${", "$((", "))", "<(", "@'\n", "\n'@", "#>", "<#"),
    *(
        "git",
        "commit",
        "push",
        "gh",
        "pr",
        "create",
        "rm",
        "-rf",
        "sudo",
        "env",
        "bash -c",
        "eval",
        "case",
        "esac",
        "in",
    ),
    *(
        "if",
        "then",
        "fi",
        "for",
        "do",
        "done",
        "[[",
        "]]",
        "npm",
        "publish",
        "한글",
        "é",
        "\u200b",
        "\ud800",
        "\x00",
        "a",
    ),
)
# What a shell may take out of a word before it becomes the name of a program.
_TAKEN_OUT: Final = re.compile("['\"\\\\`^\r\n$@]")


def _fire(line: str, shell: Shell) -> tuple[str, ...]:
    return triggers_of(line, aliases=ALIASES, own=OWN, shell=shell)


def _mutated(random_: random.Random) -> str:
    """Return a line of the table with a few characters taken out, put in, doubled or exchanged."""
    line = list(random_.choice((*POSIX, *POWERSHELL, *CMD))[1])
    for _ in range(random_.randint(1, 6)):
        at = random_.randint(0, len(line))
        change = random_.randrange(4)
        if change == 0:
            line[at : at + random_.randint(1, 4)] = []
        elif change == 1:
            line[at:at] = random_.choice(_PIECES)
        elif change == 2:
            line[at:at] = line[at : at + random_.randint(1, 12)]
        else:
            other = random_.choice(POSIX)[1]
            line[at:] = other[random_.randint(0, len(other)) :]
    return "".join(line)


def _soup(random_: random.Random) -> str:
    """Return pieces of syntax and words in any order; quotes and brackets hardly ever close."""
    return random_.choice(("", " ")).join(random_.choices(_PIECES, k=random_.randint(1, 60)))


def _octets(random_: random.Random) -> str:
    """Return random bytes as a payload would hand them over."""
    return random_.randbytes(random_.randint(0, 200)).decode(random_.choice(("latin-1", "utf-8")), "replace")


def _nested(random_: random.Random) -> str:
    """Return constructs that open far more often than anybody would, closed or not."""
    opening, closing = random_.choice(
        (("$(", ")"), ("(", ")"), ("{ ", "; }"), ("`", "`"), ('"$(', ')"'), ("${x:-", "}"), ("$((", "))"), ("<(", ")"))
    )
    depth = random_.choice((3, 30, 300))
    return opening * depth + "git push" + closing * random_.choice((depth, 0, depth // 2))


_GENERATORS: Final[tuple[Callable[[random.Random], str], ...]] = (_mutated, _soup, _octets, _nested)


def test_no_line_raises_and_what_fires_names_a_program_of_that_trigger() -> None:
    programs = {
        name: {program for program, deeds in DEEDS.items() for deed in deeds if deed.trigger == name}
        for name in BUILT_IN
    }
    for name, goals in GOALS.items():
        programs[name] |= goals.keys()
    programs["dependency-add"] |= {"pip", "go", "uv"}
    programs["migration-run"] |= {"manage.py", "artisan"}
    programs["destructive-delete"] |= {"remove-item", "ri", "rd", "rmdir", "del", "erase"}
    programs |= {name: {line.split()[0].rsplit("/", 1)[-1] for line in lines} for name, lines in OWN.items()}
    for seed in range(count("fuzzed command lines", quick=500, full=10_000)):
        random_ = random.Random(seed)
        line = random_.choice(_GENERATORS)(random_)
        plain = _TAKEN_OUT.sub("", line).lower()
        for shell in _SHELLS:
            for name in _fire(line, shell):
                # "git" is also what an alias with a command of its own goes through.
                assert any(program in plain for program in (*programs[name], "git")), (seed, shell, name, line)


def _quoted(text: str) -> list[tuple[str, Shell]]:
    """Return lines in which a text is data and nothing else."""
    single, double = text.replace("'", "'\\''"), re.sub(r'(["\\$`])', r"\\\1", text)
    escaped = "".join(f"\\{char}" for char in text if char not in "\n\r")
    flat = " ".join(text.split())
    return [
        (f"echo '{single}'", "posix"),
        (f'printf "{double}"', "posix"),
        (f"echo {escaped}", "posix"),
        (f"cat > notes <<'END OF IT'\n{text}\nEND OF IT\n", "posix"),
        (f"cat <<\\X | tee f\n{text}\nX\nls", "posix"),
        (f"ls # {flat}", "posix"),
        (f"x='{single}'; echo \"$x\"", "posix"),
        (f"python3 -c '{single}'", "posix"),
        ("Write-Host '" + text.replace("'", "''") + "'", "powershell"),
        (f"$x = @'\n{text}\n'@\nls", "powershell"),
        (f"<# {flat.replace('#>', '')} #> ls", "powershell"),
        (f"ls # {flat}", "powershell"),
        (f"rem {flat.replace('&', '').replace('|', '')}", "cmd"),
        ('echo "' + flat.replace('"', "") + '"', "cmd"),
    ]


def test_a_text_that_is_quoted_escaped_or_in_a_here_document_never_fires() -> None:
    for seed in range(count("quoted command lines", quick=100, full=3_000)):
        random_ = random.Random(seed)
        text = random_.choice(_GENERATORS)(random_).replace("\x00", "").replace("\nX", "\ny").replace("\n'@", "")
        text = re.sub(r"(?m)^(X|END OF IT)\r?$", "Y", text)
        for line, shell in _quoted(text):
            assert _fire(line, shell) == (), (seed, shell, line)


# Units that would cost more than linear time if anything were looked for twice.
_UNITS: Final = (
    "git commit -m x && ", "'", '"', "`", "\\`", "$(", "${", "$((", "(", ")", "{", "<(", "x(", "a=(", '"$(', "$'a\\'",
    "<<a\n", "<<'\t'\n\t\n", "case x in ", "[[ ", "for ", "function f() {", "sudo ", "env a=b ", "eval ", "bash -c '",
    "find . -exec ", "find . -exec a ; ", "xargs -I{} ", "git -c a ", " #", "$a = ", "call ", "if ", "@'\n", "%a", '""',
)  # fmt: skip


def _repeated(unit: str, chars: int) -> str:
    return (unit * (chars // len(unit) + 1))[:chars]


def _calls(line: str, shell: Shell) -> int:
    """Return how many calls of functions a reading makes."""
    calls = 0

    def step(_: FrameType, event: str, __: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    old = sys.getprofile()
    sys.setprofile(step)
    try:
        _fire(line, shell)
    finally:
        sys.setprofile(old)
    return calls


def _seconds(line: str, shell: Shell) -> float:
    """Return the processor time of a reading."""
    began = time.process_time()
    _fire(line, shell)
    return time.process_time() - began


@pytest.mark.parametrize("shell", _SHELLS)
def test_work_grows_with_the_length_of_the_line_and_not_faster(shell: Shell) -> None:
    for unit in _UNITS if FULL else _UNITS[_SHELLS.index(shell) :: len(_SHELLS)]:
        short, long = (_calls(_repeated(unit, chars), shell) for chars in (1_000, 8_000))
        assert long <= 12 * short + 1_000, (unit, short, long)


@pytest.mark.parametrize("shell", _SHELLS)
def test_a_line_of_a_megabyte_takes_as_much_longer_as_it_is_longer(shell: Shell) -> None:
    size = count("characters of the longest command line", quick=64_000, full=1_000_000)
    for unit in _UNITS[_SHELLS.index(shell) :: 6 * len(_SHELLS)]:
        short, long = (_seconds(_repeated(unit, chars), shell) for chars in (size // 8, size))
        # Eight times the length: a square would take 64 times as long.
        assert long <= 32 * max(short, 0.01), (unit, short, long)
