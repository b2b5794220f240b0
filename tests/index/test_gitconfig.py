"""git's configuration, read without git; git itself is the judge where it is there."""

from __future__ import annotations

import subprocess
from pathlib import Path

from memorize.index.gitconfig import aliases, entries, personal_files
from memorize.index.place import Places, locate


def test_aliases_are_what_git_says_they_are(tmp_path: Path) -> None:
    file = tmp_path / "config"
    lines = {
        "ci": "commit -v",
        "PUB": '!git push origin "$(git branch --show-current)" # not a comment',
        "long": "!f() { \\\n git commit -m 'x y'; \\\n }; f",
        "한글": "commit",
    }
    for name, value in lines.items():
        done = subprocess.run(["git", "config", "-f", str(file), f"alias.{name}", value], check=False)
        assert done.returncode == 0 or not name.isascii()
    file.write_text(
        file.read_text() + '; alias\n# x = y \\\n[alias "한글"]\n\tcommand = commit -m\n[alias] st = status # s\n'
    )
    found, looked = aliases((str(file),))
    assert looked == (str(file),)
    assert found["한글"] == "commit -m"
    assert found["st"] == "status"
    for name in ("ci", "pub", "long"):
        said = subprocess.run(
            ["git", "config", "-f", str(file), "--get", f"alias.{name}"], capture_output=True, text=True, check=True
        )
        assert found[name] == said.stdout.removesuffix("\n")


def test_the_repository_overrules_the_person_and_includes_are_followed(own_home: Path, tmp_path: Path) -> None:
    repository = tmp_path / "repo"
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    (own_home / ".gitconfig").write_text("[include]\n\tpath = ~/more\n[alias]\n\tci = commit\n\tp = push\n")
    (own_home / "more").write_text("[include]\npath = more\n[alias]\n\tco = checkout\n\tp = pull\n")
    with (repository / ".git" / "config").open("a") as file:
        file.write("[alias]\n\tci = commit --signoff\n")
    settings = personal_files({})
    places = Places("device", settings=settings)
    assert dict(places(str(repository)).aliases) == {"ci": "commit --signoff", "p": "push", "co": "checkout"}
    assert dict(locate(tmp_path, "device").aliases) == {}
    assert personal_files({"GIT_CONFIG_GLOBAL": "x"}) == ("x",)
    assert personal_files({"XDG_CONFIG_HOME": "/x"}) == ("/x/git/config", str(own_home / ".gitconfig"))
    assert dict(locate(repository, "device").aliases) == {"ci": "commit --signoff"}


def test_what_is_no_configuration_names_no_alias(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_bytes(b"\x00[[[\n]=\n=x\n[alias\nci = x\n\\")
    assert [entry.section for entry in entries(file.read_text()) if entry.section] == []
    assert aliases((str(file), str(tmp_path)))[0] == {}
