"""install.ps1: read by two grammars, held to what Windows PowerShell 5.1 understands, and equal to install.sh.

No PowerShell runs here; what these tests cannot see is said in the README.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import tree_sitter_powershell
import tree_sitter_pwsh
from tree_sitter import Language, Node, Parser

from tests.counts import count

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "install.ps1"
SHELL_SCRIPT = ROOT / "install.sh"
PARSERS = {
    "powershell": Parser(Language(tree_sitter_powershell.language())),
    "pwsh": Parser(Language(tree_sitter_pwsh.language())),
}


def code() -> str:
    """Return the script without its comments (it has no block comments)."""
    lines = SCRIPT.read_text("ascii").splitlines()
    return "\n".join(line for line in lines if not line.lstrip().startswith("#"))


@pytest.mark.parametrize("name", PARSERS)
def test_a_grammar_of_powershell_reads_the_script_without_an_error(name: str) -> None:
    assert not PARSERS[name].parse(SCRIPT.read_bytes()).root_node.has_error


@pytest.mark.parametrize("name", PARSERS)
@pytest.mark.parametrize("broken", ["if ($x) {", "$x = 'open", "function f { $y = @(1, 2 }"])
def test_the_grammars_notice_broken_scripts(name: str, broken: str) -> None:
    assert PARSERS[name].parse(broken.encode()).root_node.has_error


def test_the_script_is_plain_ascii_without_a_mark_or_carriage_returns() -> None:
    # 5.1 takes a file without a byte order mark for the machine's old code page.
    data = SCRIPT.read_bytes()
    assert data.isascii()
    assert b"\r" not in data
    assert b"\t" not in data


# What 5.1 does not know, and what the script must never do.
BANNED = {
    r"&&|\|\|": "pipeline chains are new in 7",
    r"\?\?|\?\.|\?\[": "null operators are new in 7",
    r"^\s*(class|enum|using)\b": "refused at parsing in a restricted language mode",
    r"-Parallel|-AsHashtable|-AsByteStream|\$Is(Windows|Linux|MacOS)": "new in 6 or 7",
    r"\b(Out-File|Set-Content|Add-Content|Tee-Object|Export-\w+)\b": "it writes no files",
    r"(?<!2)>(?!=)\s*[^$=\s']": "it redirects into no file",
    r"HKCU|HKLM|Set-ItemProperty|SetEnvironmentVariable": "it edits no registry",
    r"\bexit\b": "would close the window of a person who piped the script",
    r"\bRead-Host\b": "it asks nothing",
    r"\b(iex|Invoke-Expression)\b": "it runs no text",
    r"\b(?-i:powershell|pwsh)(\.exe)?\s": "the running host may be the only one",
    r"RunAs|Set-ExecutionPolicy": "it needs no rights",
    r"\bNew-Object\b": "refused in a restricted language mode",
    r"2>&1": "makes a failure of every line on standard error in 5.1",
    r"Join-Path [^|)\n]+ '[^']*' '": "5.1 joins two parts only",
    r"\bpip\b.*--user\b|--break-system-packages": "the system's Python is not ours",
}


@pytest.mark.parametrize("pattern", BANNED, ids=BANNED.values())
def test_the_script_holds_nothing_that_is_banned(pattern: str) -> None:
    assert re.findall(pattern, code(), re.MULTILINE | re.IGNORECASE) == []


def test_every_program_that_is_run_has_its_exit_code_looked_at() -> None:
    # The call operator stands in two functions only, and both look at the code in the next lines.
    lines = code().splitlines()
    calls = [number for number, line in enumerate(lines) if re.search(r"(^|[=\s(])& [$\w]", line)]
    assert len(calls) == 2
    for number in calls:
        assert any("$LASTEXITCODE -ne 0" in line for line in lines[number + 1 : number + 5])


def test_no_argument_of_a_program_holds_double_quotes() -> None:
    # 5.1 drops them on the way.
    assert [text for text in re.findall(r"'([^'\n]*)'", code()) if '"' in text and "name = " not in text] == [
        '^__version__ = "(.*)"$'
    ]


def top_level(node: Node) -> set[str]:
    """Return the kinds of the statements that would run, or be defined, when this script is run."""
    kinds = set()
    for child in node.children:
        if child.type in {"statement_list", "program", "script_block", "script_block_body"}:
            kinds |= top_level(child)
        else:
            kinds.add(child.type)
    return kinds


@pytest.mark.slow
def test_a_script_that_was_cut_off_is_broken_or_only_defines() -> None:
    data = SCRIPT.read_bytes().rstrip()
    parser = PARSERS["powershell"]
    wanted = count("cuts of install.ps1", quick=200, full=len(data))
    cuts = sorted({*range(0, len(data), max(1, len(data) // wanted)), *range(len(data) - 200, len(data))})
    harmless = {"comment", "param_block", "function_statement"}
    # A cut inside a leading keyword leaves the name of a program that does not exist.
    stump = re.compile(rb"(^|\n)(p(a(r(am?)?)?)?|f(u(n(c(t(i(on?)?)?)?)?)?)?)$")
    acting = []
    for cut in cuts:
        root = parser.parse(data[:cut]).root_node
        if not root.has_error and not top_level(root) <= harmless and not stump.search(data[:cut]):
            acting.append(cut)
    assert acting == []
    assert not top_level(parser.parse(data).root_node) <= harmless


def options_of_shell() -> set[str]:
    """Return the options that the loop of install.sh takes."""
    text = SHELL_SCRIPT.read_text("utf-8")
    loop = text[text.index("while [ $# -gt 0 ]") :]
    return {name for name in re.findall(r"--([a-z-]+)", loop) if f"--{name}" in text[: text.index("say()")]}


def options_of_powershell() -> set[str]:
    """Return the parameters of install.ps1, spelt as options."""
    text = code()
    names = re.findall(r"\](\$\w+)", text[: text.index("function Install-Memorize")])
    return {re.sub(r"(?<!^)(?=[A-Z])", "-", name[1:]).lower() for name in names}


def test_both_scripts_take_the_same_options() -> None:
    assert len(options_of_shell()) >= 9
    assert options_of_shell() == options_of_powershell()


def test_both_scripts_tell_of_all_their_options() -> None:
    usage = SHELL_SCRIPT.read_text("utf-8").partition("EOF'")[2].partition("\nEOF")[0]
    assert set(re.findall(r"^  --([a-z-]+)", usage, re.MULTILINE)) == options_of_shell()
    told = set(re.findall(r"Write-Host '  -(\w+)", code()))
    assert {re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower() for name in told} == options_of_powershell()


def test_both_scripts_read_the_same_variables_and_pin_the_same_facts() -> None:
    ours = re.compile(r"\bMEMORIZE_[A-Z_]+\b")
    pinned = re.compile(r"^\s*\$?([A-Z_]+(?:URL|VERSION|SHA256)) ?= ?'(.*)'", re.MULTILINE)
    shell, powershell = SHELL_SCRIPT.read_text("utf-8"), SCRIPT.read_text("ascii")
    assert set(ours.findall(shell)) == set(ours.findall(powershell))
    assert pinned.findall(shell) == pinned.findall(powershell)
    assert len(pinned.findall(shell)) == 4


def test_both_scripts_prefer_the_same_tools_in_the_same_order() -> None:
    shell, powershell = SHELL_SCRIPT.read_text("utf-8"), SCRIPT.read_text("ascii")
    order = re.findall(r"^    way=(\w+)$", shell.partition("choose_way()")[2].partition("\n}")[0], re.MULTILINE)
    assert order == ["uv", "pipx", "venv"]
    assert re.findall(r"\$tool = '(\w+)'", powershell.partition("# By what.")[2].partition("$next")[0]) == order
    for words in ("--compile-bytecode", "--reinstall", "--constraints", "--no-index", "--require-hashes"):
        assert words in shell
        assert words in powershell
