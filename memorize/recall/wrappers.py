"""Programs that run the command which their arguments name, and how to find it there. Data only."""

from __future__ import annotations

from typing import Final, NamedTuple


def words(text: str) -> frozenset[str]:
    """Return the words of a table written as text."""
    return frozenset(text.split())


class Wrapper(NamedTuple):
    """``valued`` options take the next word as their value; ``operands`` words stand before the command.

    With one of the options in ``looks`` nothing is run. ``after`` are sub-commands of which one must come first.
    ``assigns``: assignments may stand before the command.
    """

    valued: frozenset[str] = frozenset()
    operands: int = 0
    looks: frozenset[str] = frozenset()
    after: frozenset[str] = frozenset()
    assigns: bool = False


COMPOSE_VALUED: Final = words(
    "-f --file -p --project-name --profile --env-file --project-directory -e --env -u --user -w --workdir --index"
    " --entrypoint -v --volume --name -l --label --publish"
)
_SUDO: Final = Wrapper(
    words(
        "-u -g -h -p -C -r -t -T -U -D -R --user --group --host --prompt --close-from --role --type --other-user"
        " --command-timeout --chdir --chroot"
    ),
    looks=words("-l --list -e --edit -v --validate -V --version -K -k --help"),
    assigns=True,
)
_RUN: Final = words("run exec x dlx")
_EXEC: Final = words("exec")

WRAPPERS: Final[dict[str, Wrapper]] = {
    "sudo": _SUDO,
    "doas": Wrapper(words("-u -C"), looks=words("-L")),
    "env": Wrapper(words("-u -C --unset --chdir --argv0 -a"), looks=words("--help --version"), assigns=True),
    "time": Wrapper(words("-f -o --format --output"), looks=words("--help --version -V")),
    "gtime": Wrapper(words("-f -o --format --output")),
    "nice": Wrapper(words("-n --adjustment")),
    "ionice": Wrapper(words("-c -n -p -P -u --class --classdata")),
    "chrt": Wrapper(operands=1),
    "taskset": Wrapper(operands=1),
    "nohup": Wrapper(),
    "setsid": Wrapper(),
    "timeout": Wrapper(words("-s -k --signal --kill-after"), 1),
    "gtimeout": Wrapper(words("-s -k --signal --kill-after"), 1),
    "stdbuf": Wrapper(words("-i -o -e --input --output --error")),
    "unbuffer": Wrapper(),
    "command": Wrapper(looks=words("-v -V")),
    "builtin": Wrapper(),
    "noglob": Wrapper(),
    "nocorrect": Wrapper(),
    "exec": Wrapper(words("-a")),
    "xargs": Wrapper(
        words(
            "-n -P -I -J -R -L -d -a -s -E --max-args --max-procs --replace --max-lines --delimiter --arg-file"
            " --max-chars --eof"
        )
    ),
    "parallel": Wrapper(words("-j --jobs -a --arg-file -S --sshlogin --delay --joblog")),
    "chronic": Wrapper(),
    "chpst": Wrapper(words("-u -U -b -e -/ -n -l -L -m -d -o -p -f -c")),
    "gosu": Wrapper(operands=1),
    "su-exec": Wrapper(operands=1),
    "runuser": Wrapper(words("-u --user -g --group -G --supp-group")),
    "setarch": Wrapper(operands=1),
    "systemd-run": Wrapper(
        words("-u --unit -p --property --uid --gid --slice -M --machine -E --setenv --working-directory --nice")
    ),
    "unshare": Wrapper(words("-S -G -R -w --setuid --setgid --root --wd --map-user --map-group --propagation")),
    "nsenter": Wrapper(words("-t --target -S -G --setuid --setgid")),
    "perf": Wrapper(words("-e --event -o --output -p -C -r --repeat"), after=words("stat record trace")),
    "entr": Wrapper(),
    "firejail": Wrapper(),
    "torsocks": Wrapper(),
    "proxychains": Wrapper(words("-f")),
    "proxychains4": Wrapper(words("-f")),
    "corepack": Wrapper(),
    "devbox": Wrapper(words("-c --config -e --env --env-file"), after=words("run")),
    "dotenvx": Wrapper(words("-f --env-file -e --env"), after=words("run")),
    "asdf": Wrapper(after=_EXEC),
    "pipx": Wrapper(words("--spec --python --index-url --pip-args"), after=words("run")),
    "sail": Wrapper(),
    "caffeinate": Wrapper(words("-t -w")),
    "flock": Wrapper(words("-w -E --timeout --conflict-exit-code"), 1),
    "strace": Wrapper(words("-o -e -p -s -E -u -P -O -S -a -b -I -X")),
    "ltrace": Wrapper(words("-o -e -p -s -u -a -l -n")),
    "catchsegv": Wrapper(),
    "dbus-run-session": Wrapper(),
    "xvfb-run": Wrapper(words("-n -s -e -f -w -p")),
    "wsl": Wrapper(words("-d -u --distribution --user --cd"), looks=words("--list -l --status --shutdown")),
    "winpty": Wrapper(),
    "chroot": Wrapper(operands=1),
    "busybox": Wrapper(),
    "uv": Wrapper(words("--directory --project --with --python -p --extra --group --env-file"), after=_RUN),
    "uvx": Wrapper(words("--from --with --python -p")),
    "poetry": Wrapper(words("-C --directory -P --project"), after=_RUN),
    "pipenv": Wrapper(after=_RUN),
    "pdm": Wrapper(words("-p --project"), after=_RUN),
    "hatch": Wrapper(words("-e --env"), after=_RUN),
    "pixi": Wrapper(words("-e --environment --manifest-path"), after=_RUN),
    "rye": Wrapper(after=_RUN),
    "conda": Wrapper(words("-n --name -p --prefix"), after=_RUN),
    "npx": Wrapper(words("-p --package")),
    "pnpx": Wrapper(),
    "bunx": Wrapper(),
    "npm": Wrapper(words("-p --package -w --workspace --prefix"), after=words("exec x")),
    "pnpm": Wrapper(words("-C --dir --filter -F"), after=words("exec dlx")),
    "yarn": Wrapper(words("--cwd"), after=words("exec dlx")),
    "bun": Wrapper(words("--cwd"), after=words("x")),
    "bundle": Wrapper(after=words("exec")),
    "mise": Wrapper(after=words("exec x")),
    "direnv": Wrapper(operands=1, after=words("exec")),
    "dotenv": Wrapper(words("-f -e")),
    "op": Wrapper(words("--env-file --account"), after=words("run")),
    "aws-vault": Wrapper(words("-d --duration --region"), operands=1, after=words("exec")),
    # A service that a project declares for itself; another container or machine is not the project.
    "docker-compose": Wrapper(COMPOSE_VALUED, 1, after=words("exec run")),
    "podman-compose": Wrapper(COMPOSE_VALUED, 1, after=words("exec run")),
    "doppler": Wrapper(words("-p -c --project --config"), after=words("run")),
}
# Package managers run a program of the project by its bare name; their options before it that take a value.
RUNNERS: Final = {"pnpm": words("-C --dir --filter -F"), "yarn": words("--cwd"), "bun": words("--cwd")}
NODE_PROGRAMS: Final = words(
    "cdk changeset drizzle-kit jsr knex lerna prisma rimraf sequelize sequelize-cli supabase typeorm vsce"
)
# Programs that run the script which is their first argument, besides the shells.
SCRIPT_RUNNERS: Final = words("python pypy node bun deno ruby perl php source .")
# Options of git before its sub-command: with a value in the next word; with which it only tells of itself.
GIT_VALUED: Final = words(
    "-c -C --git-dir --work-tree --namespace --exec-path --config-env --super-prefix --attr-source"
)
GIT_ASKED: Final = words("--help -h --version -v --html-path --man-path --info-path")
# Shells that run the text which follows an option, by the letter of that option.
SHELLS: Final = words("sh bash zsh dash ksh mksh ash fish rbash busybox-sh git-bash nu")
SHELL_VALUED: Final = words("-o +o -O +O --rcfile --init-file")
POWERSHELLS: Final = words("powershell pwsh")
POWERSHELL_LINE: Final = words("-command -c")
CMD_LINE: Final = words("/c /k //c //k")
# Programs that join their arguments and run them as a line.
JOINERS: Final = words("eval watch invoke-expression iex")
JOINER_VALUED: Final = words("-n --interval -q --equexit")
# Programs one of whose options takes a line to run.
LINES: Final[dict[str, frozenset[str]]] = {
    "su": words("-c --command"),
    "runuser": words("-c --command"),
    "script": words("-c --command"),
    "env": words("-S --split-string"),
    "nix-shell": words("--run --command"),
    "flock": words("-c --command"),
}
