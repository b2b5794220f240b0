"""What is known of shell programs: which only look, and which look by some of their sub-commands."""

from __future__ import annotations

from typing import Final


def words(text: str) -> frozenset[str]:
    """Return the words of a table written as text."""
    return frozenset(text.split())


# Programs that only look, or that change nothing beyond their own shell.
READERS: Final = words("""
    : [ [[ ack ag alias apropos arch base64 basename bat batcat cal cat cd clear cmp column comm command compgen
    cksum cut date declare df diff dig dir dirname dirs du echo egrep env exa expand export expr eza fd fdfind fgrep
    file fmt fold free getconf getent grep groups hash head help hexdump history host hostname htop id info
    jobs join jq ldd less let local locale locate ls lsattr lsblk lscpu lsof man md5 md5sum mdfind more nl nm nproc
    nslookup objdump od otool pgrep ping popd printenv printf ps pushd pwd read readelf readlink readonly realpath rev
    rg select seq set sha1sum sha256sum sha512sum shasum shift shopt sleep ss stat strings sum tac tail
    test tokei top tput tr trap tree true false tsort tty type typeset ulimit umask uname unexpand uniq unset uptime
    vmstat wait wc whatis whereis which who whoami xmllint xxd yq zcat zgrep zless
    """)
# Programs with sub-commands, and those of them that only look.
SUB_READERS: Final = {
    "git": words("""
        status log diff show blame annotate grep describe shortlog rev-parse rev-list ls-files ls-tree ls-remote
        cat-file for-each-ref merge-base name-rev show-ref show-branch check-ignore check-attr count-objects
        diff-tree diff-index diff-files whatchanged range-diff cherry var version help reflog fetch
        """),
    "npm": words("ls list view info outdated why explain root prefix bin help search ping whoami"),
    "pnpm": words("ls list view info outdated why root bin help"),
    "yarn": words("list info why outdated help"),
    "pip": words("list show freeze check index help"),
    "pip3": words("list show freeze check index help"),
    "cargo": words("tree metadata search version help locate-project pkgid"),
    "go": words("list version env doc help"),
    "docker": words("ps images logs inspect version info stats top port history search"),
    "podman": words("ps images logs inspect version info stats top port history search"),
    "kubectl": words("get describe logs explain version top api-resources cluster-info"),
    "systemctl": words("status show cat list-units is-active is-enabled"),
    "brew": words("list info search deps outdated doctor"),
    "apt": words("list show search policy"),
}
GH_READERS: Final = words("view list diff checks status watch")
# git sub-commands that look when nothing but these options and no name follows.
GIT_LISTS: Final = {
    "branch": words("-a -r -v -vv -l --list --all --remotes --show-current --verbose --no-color"),
    "tag": words("-l --list -n"),
    "remote": words("-v --verbose show get-url"),
    "stash": words("list show"),
    "worktree": frozenset(["list"]),
    "submodule": frozenset(["status"]),
    "config": words("--get --get-all --get-regexp --list -l"),
    "symbolic-ref": frozenset(["--short"]),
}
# Programs whose exit status 1 is an answer ("no", "differs", "not found"), not a failure.
ANSWERERS: Final = words("grep egrep fgrep rg ag ack diff cmp test [ [[ which pgrep type expr zgrep")
