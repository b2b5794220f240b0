from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorize.clock import FixedClock
from memorize.ids import project_key
from memorize.index.gitfiles import normal_remote
from memorize.index.place import Place, Places, locate

DEVICE = "d" * 32
NAMES = ("plain", "with space", 'it\'s "quoted"', "세션 저장소", "two\nlines", "ends with newline\n", "-dash", "héllo")


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", folder, *words], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def repository(folder: Path, commits: int = 1) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    for number in range(commits):
        git(folder, "commit", "-q", "--allow-empty", "-m", f"커밋 {number} {folder.name!r}")
    return folder


def at(path: Path | str) -> Place:
    return locate(path, DEVICE)


def kinds(place: Place) -> list[str]:
    return [kind for kind, _ in place.identities]


@pytest.mark.parametrize("name", NAMES)
def test_a_repository_is_found_from_its_top_and_from_below_whatever_its_name(tmp_path: Path, name: str) -> None:
    top = repository(tmp_path / name)
    git(top, "remote", "add", "origin", "git@GitHub.com:team/shop.git")
    below = top / "src" / name
    below.mkdir(parents=True)
    place = at(below)
    assert (place.root, place.dir) == (str(top), f"src/{name}")
    assert (place.branch, place.head) == ("main", git(top, "rev-parse", "HEAD"))
    assert place.identities[0] == ("remote", "github.com/team/shop")
    assert place.project == at(top).project == project_key("remote", "github.com/team/shop")
    assert place.name == "shop"
    assert kinds(place) == ["remote", "root", "path"]
    assert not place.capture_off


@pytest.mark.parametrize("name", NAMES)
def test_a_worktree_is_the_same_project_on_another_branch(tmp_path: Path, name: str) -> None:
    top = repository(tmp_path / name)
    other = tmp_path / f"tree of {name}"
    git(top, "worktree", "add", "-q", "-b", "기능/결제", str(other))
    git(other, "commit", "-q", "--allow-empty", "-m", "더")
    place = at(other)
    assert place.project == at(top).project
    assert place.branch == "기능/결제"
    assert place.head == git(other, "rev-parse", "HEAD") != at(top).head
    assert place.root == str(other)
    assert place.identities == at(top).identities


def test_a_worktree_of_a_repository_without_any_commit_or_remote_shares_the_path(tmp_path: Path) -> None:
    top = repository(tmp_path / "one", commits=0)
    place = at(top)
    assert place.identities == (("path", f"{DEVICE}\0{top}"),)
    assert (place.branch, place.head) == ("main", "")


def test_a_submodule_is_its_own_project_and_equal_to_a_clone_of_it(tmp_path: Path) -> None:
    inner = repository(tmp_path / "lib")
    outer = repository(tmp_path / "app")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner), "vendor/lib")
    part = outer / "vendor" / "lib"
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(inner), str(clone))
    for folder in (part, clone):
        git(folder, "remote", "set-url", "origin", "ssh://git@example.org:22/libs/lib.git")
    assert at(part).project == at(clone).project != at(outer).project
    assert at(part).root == str(part)


def test_the_innermost_repository_counts(tmp_path: Path) -> None:
    outer = repository(tmp_path / "outer")
    inner = repository(outer / "inner" / "deep")
    assert at(inner).root == str(inner)
    assert at(inner.parent).root == str(outer)
    assert at(inner).project != at(outer).project


def test_clones_of_a_bare_remote_are_one_project_and_a_fork_is_another(tmp_path: Path) -> None:
    source = repository(tmp_path / "source")
    bare = tmp_path / "hub" / "shop.git"
    git(tmp_path, "clone", "-q", "--bare", str(source), str(bare))
    one, two = tmp_path / "one", tmp_path / "two"
    for clone in (one, two):
        git(tmp_path, "clone", "-q", str(bare), str(clone))
    assert at(one).project == at(two).project  # a local path is no remote; the first commit is the same
    for clone, url in ((one, "https://example.org/team/shop"), (two, "https://example.org/me/shop")):
        git(clone, "remote", "set-url", "origin", url)
    assert at(one).project != at(two).project
    assert at(bare).root == str(bare)


def test_a_shallow_clone_has_no_first_commit(tmp_path: Path) -> None:
    source = repository(tmp_path / "source", commits=4)
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{source}", str(clone))
    assert kinds(at(clone)) == ["path"]
    assert at(clone).head == at(source).head


def test_the_first_commit_is_found_loose_and_after_git_packed_everything(tmp_path: Path) -> None:
    top = repository(tmp_path / "repo", commits=5)
    first = git(top, "rev-list", "--max-parents=0", "HEAD")
    assert ("root", first) in at(top).identities
    git(top, "-c", "gc.writeCommitGraph=true", "gc", "-q", "--prune=now")
    copy = tmp_path / "moved"
    top.rename(copy)  # so that nothing remembered can answer
    assert ("root", first) in at(copy).identities
    git(copy, "commit", "-q", "--allow-empty", "-m", "새 커밋")
    assert ("root", first) in at(copy).identities
    assert at(copy).head == git(copy, "rev-parse", "HEAD")


def test_a_damaged_commit_graph_is_no_commit_graph(tmp_path: Path) -> None:
    top = repository(tmp_path / "repo", commits=3)
    git(top, "-c", "gc.writeCommitGraph=true", "gc", "-q", "--prune=now")
    graph = top / ".git" / "objects" / "info" / "commit-graph"
    whole = graph.read_bytes()
    graph.chmod(0o600)
    for size in range(0, len(whole), 7):
        graph.write_bytes(whole[:size])
        copy = tmp_path / f"copy {size}"
        copy.symlink_to(top)
        assert kinds(at(copy))[-1] == "path"


def test_a_detached_head_has_no_branch_and_packed_references_are_read(tmp_path: Path) -> None:
    top = repository(tmp_path / "repo", commits=2)
    head = git(top, "rev-parse", "HEAD")
    git(top, "pack-refs", "--all")
    assert (at(top).branch, at(top).head) == ("main", head)
    git(top, "checkout", "-q", "--detach", "HEAD")
    assert (at(top).branch, at(top).head) == ("", head)


def test_origin_comes_first_then_the_first_remote_by_name(tmp_path: Path) -> None:
    top = repository(tmp_path / "repo")
    git(top, "remote", "add", "zeta", "https://example.org/z")
    git(top, "remote", "add", "beta", "https://example.org/b")
    assert at(top).identities[0] == ("remote", "example.org/b")
    git(top, "remote", "add", "origin", 'https://example.org/가#b "c"')
    assert at(top).identities[0] == ("remote", "example.org/가")


def test_a_marker_is_stronger_than_the_remote_and_may_lie_below_the_top(tmp_path: Path) -> None:
    top = repository(tmp_path / "repo")
    git(top, "remote", "add", "origin", "https://example.org/a")
    part = top / "packages" / "web"
    part.mkdir(parents=True)
    (part / ".memorize.toml").write_text('id = "웹"\nname = "The web part"\n', encoding="utf-8")
    place = at(part)
    assert kinds(place) == ["marker", "remote", "root", "path"]
    assert (place.project, place.name) == (project_key("marker", "웹"), "The web part")
    assert (place.root, place.dir) == (str(top), "packages/web")
    assert at(top).identities[0][0] == "remote"


def test_without_git_the_nearest_marker_makes_the_project_and_else_the_directory(tmp_path: Path) -> None:
    inner = tmp_path / "notes" / "2026"
    inner.mkdir(parents=True)
    assert at(inner).identities == (("path", f"{DEVICE}\0{inner}"),)
    assert (at(inner).name, at(inner).root, at(inner).dir) == ("2026", str(inner), "")
    (tmp_path / "notes" / ".memorize.toml").write_text("", encoding="utf-8")
    assert (at(inner).root, at(inner).dir, at(inner).name) == (str(tmp_path / "notes"), "2026", "notes")
    assert locate(inner, "e" * 32).project != at(inner).project


@pytest.mark.parametrize(
    "text",
    ["capture = false", "\ufeffcapture=false  # 잠깐", "capture = false\nnot toml at all", "[x]\ncapture\t=\tfalse"],
)
def test_an_opt_out_is_heard_in_every_directory_below(tmp_path: Path, text: str) -> None:
    top = repository(tmp_path / "work" / "repo")
    (top / ".memorize.toml").write_text("capture = true", encoding="utf-8")
    assert not at(top).capture_off
    (tmp_path / "work" / ".memorize.toml").write_text(text, encoding="utf-8")
    assert at(top).capture_off
    assert not at(tmp_path).capture_off


def test_an_excluded_directory_is_not_captured_by_whatever_name(tmp_path: Path) -> None:
    top = repository(tmp_path / "secret project")
    (tmp_path / "링크").symlink_to(top)
    exclude = tmp_path / "exclude"
    exclude.write_text(f"\n# words\n{tmp_path / '링크'}\n", encoding="utf-8")
    assert locate(top / "src", DEVICE, exclude).capture_off
    assert not locate(tmp_path, DEVICE, exclude).capture_off
    assert not locate(top, DEVICE, tmp_path / "nothing").capture_off


@pytest.mark.parametrize(
    "content", ["", "gitdir:", "gitdir: /nowhere/at all", "\0\0\0", "gitdir: " + "x" * 5000, "읽을 수 없다"]
)
def test_a_git_file_that_leads_nowhere_is_none(tmp_path: Path, content: str) -> None:
    (tmp_path / ".git").write_text(content, encoding="utf-8")
    assert at(tmp_path).identities[0][0] == "path"


@pytest.mark.parametrize("path", ["/", "/nowhere/at all", "/a\0b", "/\ud800", "/" + "x" * 5000, "relative", ""])
def test_every_path_has_a_place(path: str) -> None:
    place = at(path)
    assert len(place.project) == 32
    place.root.encode()
    place.name.encode()


def test_git_need_not_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    top = repository(tmp_path / "repo")
    before = at(top)
    monkeypatch.setenv("PATH", "")
    assert at(top) == before


def test_what_is_remembered_of_a_directory_follows_its_files(tmp_path: Path) -> None:
    top = repository(tmp_path / "repo")
    clock = _Ticking()
    places = Places(DEVICE, clock=clock)
    steps = [
        lambda: git(top, "commit", "-q", "--allow-empty", "-m", "더"),
        lambda: git(top, "checkout", "-q", "-b", "다른"),
        lambda: git(top, "remote", "add", "origin", "https://example.org/x"),
        lambda: git(top, "pack-refs", "--all"),
        lambda: (top / ".memorize.toml").write_text('id = "mine"', encoding="utf-8"),
        lambda: (top / ".memorize.toml").write_text("capture = false", encoding="utf-8"),
        lambda: repository(top / "sub"),
    ]
    assert places(str(top / "sub")) == at(top / "sub")
    for step in steps:
        step()
        assert places(str(top / "sub")) == at(top / "sub")
        assert places(str(top)) == at(top)


class _Ticking(FixedClock):
    """A clock of which a second passes at every look."""

    seen: list[int] = []

    def monotonic_ns(self) -> int:
        self.seen.append(1)
        return len(self.seen) * 10**9


SAME = [
    "https://github.com/Team/shop.git", "https://GitHub.com/Team/shop", "http://github.com:80/Team/shop/",
    "https://user:token@github.com/Team/shop.git", "git@github.com:Team/shop.git", "github.com:Team/shop",
    "ssh://git@github.com/Team/shop.git", "ssh://git@github.com:22//Team/shop.git/", "git://github.com:9418/Team/shop",
    "git@github.com:/Team/shop.git", " https://github.com/Team/shop.git?x=1#y", "git+ssh://git@github.com/Team/shop",
]  # fmt: skip


@pytest.mark.parametrize("url", SAME)
def test_every_way_to_write_a_remote_is_the_same(url: str) -> None:
    assert normal_remote(url) == "github.com/Team/shop"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("ssh://git@example.org:2222/x.git", "example.org:2222/x"),
        ("https://example.org/%EA%B0%80%20b", "example.org/가 b"),
        ("git@example.org:가/나 다.git", "example.org/가/나 다"),
        ("ssh://[fe80::1]:22/x", "fe80::1/x"),
        ("/srv/git/x.git", ""), ("../x", ""), ("file:///srv/x", ""), ("C:\\work\\x", ""), ("", ""), ("https://", ""),
    ],
)  # fmt: skip
def test_remotes_of_other_forms(url: str, expected: str) -> None:
    assert normal_remote(url) == expected


@given(st.text(max_size=60) | st.from_regex(r"[a-z+]{1,6}://[^/]{0,20}/.{0,20}", fullmatch=True))
def test_no_text_is_too_strange_for_a_remote(url: str) -> None:
    found = normal_remote(url)
    assert found == "" or "/" in found
