"""Which commands are worth remembering."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorize.agents import shell

READING = [
    "ls -la",
    "cat a | grep '한글' | wc -l",
    "git status && git diff --stat HEAD~1",
    "git -C /srv/x log --oneline | head -3",
    "git branch",
    "git branch -a",
    "git stash list",
    "git remote -v",
    "git config --get user.name",
    "ls 2>/dev/null",
    "ls >&2 2>&1",
    "ls &> /dev/null",
    "cat <<EOF\nrm x\nEOF",
    "cat <<'A' <<B\nrm\nA\nrm\nB\nls",
    'echo "$(date)" $((1 + 2))',
    "cd a && ls",
    "for f in *; do cat $f; done",
    "while read line; do echo $line; done < f",
    "find . -name x -exec grep y {} \\;",
    "sed -n 1,20p f",
    "awk '{print $1}' f",
    "curl -s https://example.org/x",
    "ls | xargs cat",
    "npm ls",
    "python --version",
    "FOO=1 git diff",
    "timeout 5 cat f",
    "sudo -u root cat f",
    "[ -f x ] && echo yes || echo no",
    "diff <(ls a) <(ls b)",
    "gh pr view 3 --json title",
    "gh api repos/x/y",
    "source .venv/bin/activate",
    "/usr/bin/cat f",
    "cat f # rm x",
    "(cd a; ls)",
    "ls \\\n -la",
    "true",
    "time ls",
]
CHANGING = [
    "git commit -m 'a; ls'",
    "git branch new",
    "git tag v1",
    "git stash",
    "git push",
    "git config user.name x",
    "git diff --output=f",
    "git reflog expire --all",
    "echo hi > f",
    "echo hi >> f",
    "echo hi 1>f",
    "ls &> out",
    "cat > f <<'EOF'\nls\nEOF",
    "cat <<EOF | sh\nrm x\nEOF",
    "echo $(rm x)",
    'echo "`rm x`"',
    "echo `rm x`",
    "cd a && pytest -q",
    "for f in *; do rm $f; done",
    "if [ -f x ]; then rm x; fi",
    "find . -name x -delete",
    "find . -exec rm {} \\;",
    "sed -i s/a/b/ f",
    "sed --in-place=.bak s/a/b/ f",
    "awk 'BEGIN{system(\"rm x\")}'",
    "curl -o f https://example.org/x",
    "curl -X POST https://example.org/x",
    "ls | xargs rm",
    "ls | tee f",
    "npm test",
    "make",
    "FOO=1 make",
    "env FOO=1 make",
    "sudo apt install x",
    "timeout 5 make",
    "gh pr create --fill",
    "gh api repos/x/y -X DELETE",
    ". ./deploy.sh",
    "ls\nrm x",
    "python script.py",
    "sort -o f f",
    "어떤명령 하나",
    "echo 'never closed",
    'echo "never closed',
    "echo $(never closed",
    "echo " + "$(" * 100 + "ls" + ")" * 100,
]


@pytest.mark.parametrize("command", READING)
def test_commands_that_only_look_are_known(command: str) -> None:
    assert shell.reads_only(command)


@pytest.mark.parametrize("command", CHANGING)
def test_every_other_command_counts_as_changing(command: str) -> None:
    assert not shell.reads_only(command)


@pytest.mark.parametrize(
    ("command", "yes"),
    [
        ("git commit -m x", True),
        ("cd a && git -c user.name=x commit -qm x", True),
        ("GIT_EDITOR=true git revert HEAD", True),
        ("echo git commit", False),
        ("git log --grep commit", False),
        ("", False),
    ],
)
def test_a_committing_git_is_recognised_by_its_sub_command(command: str, yes: bool) -> None:
    assert shell.runs_git(command, "commit", "revert") is yes


def test_status_one_is_an_answer_for_the_last_program_only() -> None:
    assert shell.answers_only("cat f | grep x")
    assert not shell.answers_only("grep x f && make")
    assert not shell.answers_only("")


@given(st.text(alphabet="ab '\"\\$()`<>|&;#\n{}!=-한", max_size=40))
def test_no_command_line_is_too_odd_to_be_read(command: str) -> None:
    shell.reads_only(command)
    shell.runs_git(command, "commit")
