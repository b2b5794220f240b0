"""The style of the project, as far as a machine can hold it."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest

from memorize.errors import Problem
from tests.counts import note

ROOT = Path(__file__).resolve().parent.parent
MODULE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60
_TEXT = {".py", ".sh", ".ps1", ".md", ".toml", ".json", ".jsonl", ".txt", ".bats", ".bash", ".yml", ".yaml", ""}

# A run against the wheel looks at the wheel's code; the checkout's style is judged by the run in the checkout.
pytestmark = pytest.mark.skipif("MEMORIZE_TEST_WHEEL" in os.environ, reason="judges the checkout only")


@cache
def tracked() -> tuple[Path, ...]:
    """Return the files of the project: what git tracks or would track; without git, everything but tools' folders."""
    if shutil.which("git") and (ROOT / ".git").exists():
        command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(command, check=True, capture_output=True).stdout.decode().split("\0")
        return tuple(sorted({ROOT / name for name in names if name and (ROOT / name).is_file()}))
    made = {".git", ".venv", ".check", "__pycache__", "dist"}
    return tuple(sorted(path for path in ROOT.rglob("*") if path.is_file() and not made & set(path.parts)))


def modules(*folders: str) -> list[Path]:
    """Return the tracked Python files below the given folders."""
    return [path for path in tracked() if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in folders]


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def room(path: Path) -> str:
    """Return the room of a module: the folder below the package, or the module's own name."""
    return path.relative_to(ROOT / "memorize").parts[0].removesuffix(".py")


def calls(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and dotted name of everything a module calls or reads as an attribute."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Attribute):
            yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.lineno, node.func.id


def shown(path: Path, line: int, text: object) -> str:
    return f"{path.relative_to(ROOT)}:{line}: {text}"


def test_no_module_is_longer_than_400_lines() -> None:
    sizes = {path: len(path.read_text("utf-8").splitlines()) for path in modules("memorize", "bench", "scripts")}
    assert [shown(path, size, "too long") for path, size in sizes.items() if size > MODULE_LINES_MAX] == []


def test_no_function_is_longer_than_60_lines() -> None:
    found = []
    for path in modules("memorize", "bench", "scripts", "tests"):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                size = (node.end_lineno or node.lineno) - node.lineno + 1
                if size > FUNCTION_LINES_MAX:
                    found.append(shown(path, node.lineno, f"{node.name} has {size} lines"))
    assert found == []


def test_no_file_is_named_after_nothing_in_particular() -> None:
    vague = re.compile(r"(^|_)(utils?|helpers?|common|misc|stuff)(_|\.|$)")
    assert [path for path in tracked() if vague.search(path.name)] == []


def test_no_line_says_that_something_is_yet_to_be_done() -> None:
    later = re.compile(r"\b(TOD[O]|FIXM[E]|XX[X]|HAC[K])\b")
    found = []
    for path in tracked():
        if path.suffix in {".py", ".sh", ".ps1", ".bats", ".bash", ".md"}:
            for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
                if later.search(line):
                    found.append(shown(path, number, line.strip()))
    assert found == []


def test_only_the_faces_print() -> None:
    speaking = {"cli", "capture"}
    # It answers one hook in the place of the hook's own child.
    in_their_place = {ROOT / "memorize" / "daemon" / "serve.py"}
    found = [
        shown(path, line, name)
        for path in modules("memorize")
        if room(path) not in speaking and path not in in_their_place
        for line, name in calls(path)
        if name in {"print", "input", "sys.stdout", "sys.stderr", "click.echo"}
    ]
    assert found == []


def test_no_pattern_is_compiled_before_it_is_used() -> None:
    """``patterns.late`` compiles at the first use; at import it would be paid for by every verb."""

    def outside_of_functions(node: ast.AST) -> Iterator[ast.AST]:
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                yield child
                yield from outside_of_functions(child)

    found = [
        shown(path, node.lineno, ast.unparse(node.func))
        for path in modules("memorize")
        for node in outside_of_functions(tree(path))
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("re.")
    ]
    assert found == []


def test_only_the_clock_reads_a_clock() -> None:
    # A monotonic deadline is no clock in this sense: it never gets into a record. Nor is a conversion of a given time.
    clocks = re.compile(r"^(time\.(time|time_ns)|(datetime\.)?(datetime|date)\.(now|utcnow|today))$")
    of_now = {"time.localtime", "time.gmtime", "time.ctime", "time.asctime", "localtime", "gmtime"}
    found = []
    for path in (each for each in modules("memorize") if room(each) not in {"clock", "capture"}):
        found += [shown(path, line, name) for line, name in calls(path) if clocks.match(name)]
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Call) and not node.args and ast.unparse(node.func) in of_now:
                found.append(shown(path, node.lineno, ast.unparse(node)))
    assert found == []


def test_only_the_faces_and_the_composition_root_read_the_environment() -> None:
    allowed = {"cli", "daemon", "mcp", "web", "bootstrap", "capture"}
    found = [
        shown(path, line, name)
        for path in modules("memorize")
        if room(path) not in allowed
        for line, name in calls(path)
        if name in {"os.environ", "os.getenv", "os.environb"}
    ]
    assert found == []


def test_no_pattern_repeats_a_group_possessively() -> None:
    # Python up to 3.11.4, which Debian 12 has, goes on inside a group that did not match: "(?:a b)?+a" finds no "a".
    bad = [
        f"{path}:{node.lineno}"
        for path in modules("memorize")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.search(r"(?<!\\)\)(?:[*+?]|\{\d*,?\d*\})\+", node.value)
    ]
    assert bad == []


def test_no_file_names_a_registry_or_a_machine() -> None:
    # A letter in brackets, so that this file does not name what it looks for.
    hosts = (r"py[p]i\.", r"python[h]osted", r"npm[j]s\.", r"deb\.[d]ebian", r"crates\.[i]o")
    places = (r"(?<![\w.~-])/wor[k]/", r"/roo[t]/", r"/tmp/[h]/", r"\.pyen[v]\b")
    banned = re.compile("|".join((*hosts, *places)), re.IGNORECASE)
    found = []
    for path in tracked():
        if path.suffix in _TEXT:
            for number, line in enumerate(path.read_text("utf-8", errors="replace").splitlines(), 1):
                if banned.search(line):
                    found.append(shown(path, number, line.strip()[:120]))
    assert found == []


def all_problems(base: type[Problem] = Problem) -> list[type[Problem]]:
    return [base, *(deeper for child in base.__subclasses__() for deeper in all_problems(child))]


def test_every_problem_has_an_exit_code_of_its_own_and_a_hint() -> None:
    codes = Counter(kind.exit for kind in all_problems())
    assert [kind.__name__ for kind in all_problems() if codes[kind.exit] > 1] == []
    for kind in all_problems():
        assert kind.__doc__, kind
        assert kind.hint, kind
        # 2 is a wrong command line, and shells keep those from 126 on for themselves
        assert kind.exit == 1 or 3 <= kind.exit <= 125, kind


def made_by(script: str) -> str:
    """Return the page that a script in scripts/ makes."""
    spec = importlib.util.spec_from_file_location(script, ROOT / "scripts" / f"{script}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return str(module.page())


def test_the_page_of_errors_is_the_table_of_errors() -> None:
    page = (ROOT / "docs" / "errors.md").read_text("utf-8")
    assert page == made_by("errors_doc"), "run scripts/errors_doc.py"


def test_the_page_of_verbs_is_the_help_of_the_verbs() -> None:
    page = (ROOT / "docs" / "cli.md").read_text("utf-8")
    assert page == made_by("cli_doc"), "run scripts/cli_doc.py"


def test_every_link_between_pages_leads_somewhere() -> None:
    missing = [
        shown(path, 0, target)
        for path in tracked()
        if path.suffix == ".md"
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", path.read_text("utf-8"))
        if not (path.parent / target).exists()
    ]
    assert missing == []


def walk(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for word in command.list_commands(context):
            child = command.get_command(context, word)
            assert child is not None, f"{name} {word}"
            yield from walk(f"{name} {word}", child)


def test_every_verb_and_every_option_has_help() -> None:
    from memorize.cli.verbs import cli

    missing = []
    for name, command in walk("memorize", cli):
        missing += [] if command.help else [name]
        options = (each for each in command.params if isinstance(each, click.Option))
        missing += [f"{name} {option.opts[-1]}" for option in options if not option.help]
    assert missing == []


def test_the_glossary_is_in_order_and_names_every_word_once() -> None:
    page = (ROOT / "docs" / "glossary.md").read_text("utf-8")
    words = re.findall(r"^\*\*(.+?)\*\*:", page, re.MULTILINE)
    assert words == sorted(set(words))
    needed = (
        "event capture observation memory rule person device replica writer store project session boundary window "
        "watermark segment pack fold index context"
    )
    assert set(needed.split()) <= set(words)


def test_the_version_is_written_in_one_place() -> None:
    from memorize import __version__

    literal = re.compile(rf"\bversion[_ ]*=+ *[\"']{re.escape(__version__)}", re.IGNORECASE)
    found = [path for path in tracked() if path.suffix in {".py", ".toml"} and literal.search(path.read_text("utf-8"))]
    assert [path.relative_to(ROOT).as_posix() for path in found if path.name != "install.sh"] == []
    assert f'__version__ = "{__version__}"' in (ROOT / "memorize" / "__init__.py").read_text("utf-8")


def test_there_is_about_as_much_test_as_source() -> None:
    # Reported, not asserted: a number to look at, not one to please.
    def lines(*folders: str) -> int:
        return sum(len(path.read_text("utf-8").splitlines()) for path in modules(*folders))

    source, tests = lines("memorize"), lines("tests")
    note(f"{source:,} lines of source, {tests:,} lines of test ({tests / source:.2f})")
