"""Every problem that a person can meet: what happened, what is safe, what to do.

The docstring is the message (``str.format`` with the keyword arguments given), ``exit`` the exit code, ``hint`` the
remedy. ``docs/errors.md`` is generated from this table and a test holds both together.
"""

from __future__ import annotations

from typing import ClassVar


class Problem(Exception):
    """Something went wrong: {detail}"""

    exit: ClassVar[int] = 1
    hint: ClassVar[str] = 'run the same command with "--debug" and report what it prints'

    def __init__(self, **facts: object) -> None:
        """Keep the facts that the message names."""
        super().__init__(facts)
        self.facts = facts

    def __str__(self) -> str:
        """Return the message."""
        return " ".join((type(self).__doc__ or "").split()).format(**self.facts)

    def remedy(self) -> str:
        """Return the hint with the facts filled in."""
        return self.hint.format(**self.facts)


class UnknownMemory(Problem):
    """No memory or event has an id that begins with {prefix}."""

    exit = 10
    hint = 'run "memorize list" or "memorize search" to see the ids'


class AmbiguousId(Problem):
    """{count} ids begin with {prefix}: {candidates}."""

    exit = 11
    hint = "give more digits of the one you mean"


class ShortId(UnknownMemory):
    """An id needs at least {count} digits; "{prefix}" has fewer."""

    exit = 13
    hint = 'give more digits; "memorize list" shows the ids'


class NothingToRemember(Problem):
    """No text was given."""

    exit = 12
    hint = 'give the text as an argument, or "-" to read standard input'


class UnknownTrigger(Problem):
    """There is no action called "{name}" here; {near}"""

    exit = 17
    hint = 'known: {known}; "edit:<glob>" for files; others are declared under [triggers] in .memorize.toml'


class BadHome(Problem):
    """The state directory {path} cannot be used: {detail}."""

    exit = 20
    hint = "make it a private, writable directory of yours, or set MEMORIZE_HOME to another one"


class SyncedHome(Problem):
    """The state directory {path} lies inside a folder that {tool} synchronises; nothing was written."""

    exit = 21
    hint = "set MEMORIZE_HOME to a local directory and keep that folder for other things"


class NotPurged(Problem):
    """{path} could not be deleted whole: {detail}. The agents' settings were given back."""

    exit = 22
    hint = "mend the rights and delete what is left of it yourself"


class CannotRead(Problem):
    """{path} cannot be read: {detail}. Nothing was changed."""

    exit = 23
    hint = "check the disk and the rights of the file, then run the command again"


class CannotWrite(Problem):
    """{path} cannot be written: {detail}. Nothing that was kept before is lost."""

    exit = 24
    hint = "free some space or mend the rights, then run the command again"


class NotKept(CannotWrite):
    """{path} cannot be written: {detail}. What was given now was not kept."""

    exit = 15
    hint = "free some space or mend the rights, then give it once more"


class Busy(Problem):
    """Another memorize process has held the {what} for {seconds} s; nothing was lost."""

    exit = 25
    hint = 'wait for it, or look with "memorize status"'


class IndexBusy(Busy):
    """The index {path} is locked by another program; nothing was changed and nothing is lost."""

    exit = 34
    hint = "let that program end, then run the command again"


class NotWritten(Problem):
    """What was given could not be made into events; it lies in {path} and is not lost."""

    exit = 14
    hint = 'look with "memorize doctor"; "memorize verify --repair" tries it again'


class NotWaiting(Problem):
    """Memory {id} does not wait for review."""

    exit = 16
    hint = 'see what does with "memorize review --all-projects"'


class CannotErase(Problem):
    """{id} is of the kind {kind}, which cannot be erased: without it the log would mean something else."""

    exit = 61
    hint = 'see what it is with "memorize show {id}"; what it names can be erased'


class NothingToErase(Problem):
    """Nothing was found that could be erased: {what}. Nothing was changed."""

    exit = 62
    hint = 'look with "memorize search" or "memorize log", and "memorize erase --status" for what is gone already'


class UnknownSession(Problem):
    """No session is called {name}, and none begins so."""

    exit = 65
    hint = 'run "memorize sessions --json" to see their names'


class AmbiguousSession(Problem):
    """More than one session begins with {name}: {candidates}."""

    exit = 66
    hint = "give more of the name of the one you mean"


class NotAsked(Problem):
    """An erasure cannot be undone, and there is no terminal to ask at. Nothing was changed."""

    exit = 64
    hint = 'look with "--dry-run", then give "--yes"'


class NotErased(Problem):
    """The erasure is written down and in force, but the text is not gone from this device yet: {detail}"""

    exit = 63
    hint = 'it is tried again with every command; "memorize erase --status" shows how it stands'


class UnreadableSettings(Problem):
    """{path} could not be parsed ({detail}) and was left as it is."""

    exit = 30
    hint = "mend the file by hand, then run the same command again"


class UnknownAgent(Problem):
    """memorize does not know an agent called {name}."""

    exit = 31
    hint = "choose one of: {known}"


class BadConfig(Problem):
    """The configuration file {path} is wrong: {detail}."""

    exit = 32
    hint = 'see "memorize config --help" for the keys'


class IndexDamaged(Problem):
    """The index {path} cannot be used: {detail}. The log is not touched, and the index is made again from it."""

    exit = 26
    hint = 'run "memorize rebuild"'


class IndexMissing(IndexDamaged):
    """The index {path} is not there, or another version of memorize made it: {detail}. Nothing was lost."""

    exit = 27
    hint = 'run "memorize rebuild"'


class HookFails(Problem):
    """The hook did not run when it was tried ({detail}); no agent's settings were changed."""

    exit = 33
    hint = "see that the directory of the interpreter may be read and run, then run the same command again"


class NoDaemon(Problem):
    """No daemon came up within {seconds} s: {detail}. Every verb works without it, and nothing was lost."""

    exit = 28
    hint = 'run "memorize doctor"; a daemon that is stuck can be ended like any process'


class DaemonStays(Problem):
    """The daemon (process {pid}) did not leave within {seconds} s; what it captured is safe."""

    exit = 29
    hint = "end that process; nothing is lost by it"


class MeterDamaged(Problem):
    """The meter {path} cannot be read: {detail}. No model is asked while nobody knows what today has cost."""

    exit = 35
    hint = "move the file away; what was counted in it, today's calls too, then starts at nothing"


class BadKeyLine(Problem):
    """This is no key line of memorize: {detail}. Nothing was changed."""

    exit = 50
    hint = 'print the line on the other device with "memorize key export" and give it whole on standard input'


class ReceiptDamaged(CannotRead):
    """The file {path}, in which setup notes what it changed, cannot be used: {detail}. Nothing was changed."""

    exit = 36
    hint = 'move {path} away, then run "memorize setup": it finds its own hooks'


class KeysDamaged(Problem):
    """The keys in {path} cannot be used: {detail}. Nothing was changed; capture and recall need no key."""

    exit = 51
    hint = 'move the file away and run "memorize key import" with the line of another device'


class KeyMissing(KeysDamaged):
    """No key of this memory lies in {path}. Nothing was changed; capture and recall need none."""

    exit = 55
    hint = 'run "memorize key import" with the line of another device; when none has it any more: "memorize key rotate"'


class BadTarget(Problem):
    """Nothing can be synced with {what}: {detail}."""

    exit = 40
    hint = "memorize sync add folder PATH, or memorize sync add ssh://host"


class UnknownTarget(Problem):
    """{what} is not among what this device syncs with."""

    exit = 41
    hint = "memorize sync status   (shows what was added)"


class UnknownDevice(Problem):
    """No other device is meant by {name}, or more than one. Known are: {known}."""

    exit = 48
    hint = 'give the first digits of its id, which "memorize sync status" shows; it is retired from another device'


class UnknownProject(Problem):
    """No project is called {name}, no key begins so, and it is no directory of one."""

    exit = 43
    hint = 'run "memorize projects" to see names and keys'


class AmbiguousProject(Problem):
    """{count} projects are meant by {name}: {candidates}."""

    exit = 45
    hint = 'give more digits of the key; "memorize projects" shows them'


class NotLinked(Problem):
    """No link joins {one} and {other} directly."""

    exit = 44
    hint = "memorize projects   (shows what is joined with what)"


class NobodyToAsk(Problem):
    """There is no terminal to ask at: "{question}" Nothing was changed."""

    exit = 46
    hint = 'give "--yes" when that is what you want'


class ListDamaged(Problem):
    """The list {path} of what this device syncs with cannot be used: {detail}. Everything else works without it."""

    exit = 47
    hint = "move the file away, then name each of them again: {again}"


class NotSynced(Problem):
    """{count} of {total} could not be synced; nothing is lost, and the next round tries again: {detail}"""

    exit = 42
    hint = "mend what it says; memorize sync status shows the rest"


class UnknownPeer(Problem):
    """No paired device is called {name}, and no fingerprint begins so."""

    exit = 52
    hint = 'run "memorize peer list"'


class AmbiguousPeer(Problem):
    """More than one paired device is called {name}: {candidates}."""

    exit = 53
    hint = "give the first digits of the fingerprint of the one you mean"


class NotPaired(Problem):
    """The devices were not paired: {detail}. Nothing was changed."""

    exit = 54
    hint = 'begin again with "memorize peer pair" on one device; a code is good for one attempt'


class CannotRun(Problem):
    """The program {program} cannot be run: {detail}. Nothing was changed."""

    exit = 60
    hint = "install it, or see that it may be run"


class Deferred(Exception):
    """What was given is kept in the spool, but could not be taken in now: ``reason`` tells why.

    It becomes part of the memory with the next command that gets through, so it must not be given again.
    """

    def __init__(self, reason: Problem) -> None:
        """Keep what stood in the way."""
        super().__init__(str(reason))
        self.reason = reason
