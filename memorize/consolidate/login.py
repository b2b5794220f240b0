"""Which extractor is at work: whether a program is there and logged in, found out without a call of its model.

``auto`` uses a model only after setup switched that on. What was found out is remembered in ``extractor.json`` with
its time. Rules run where no model can: a login that is lost later, or a chosen program that is not there, makes the
windows wait instead, since rules would use them up.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple
from uuid import uuid4

from memorize.clock import Clock
from memorize.config import Config
from memorize.consolidate import child, claude_model, codex_model
from memorize.consolidate.port import Model
from memorize.errors import CannotWrite
from memorize.paths import Home

RULES: Final = "rules"
OFF: Final = "off"
TITLES: Final[Mapping[str, str]] = {"claude": "Claude Code", "codex": "Codex CLI", "url": "the service"}
_PROBE_S: Final = 10.0
# A login seldom goes away by itself, and a call that fails for it is told at once; one that comes is found in an hour.
_YES_MS: Final = 24 * 3600 * 1000
_NO_MS: Final = 3600 * 1000
# The first version with "auth status"; an older one would take the words for a prompt.
_AUTH_STATUS: Final = (2, 1, 41)
_KEYS: Final = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")

Name = Literal["claude", "codex", "url", "rules", "off", "wait"]


class Choice(NamedTuple):
    """What is at work, and why, in words for the person. ``model`` is None for ``rules``, ``off`` and ``wait``."""

    name: Name
    model: Model | None
    why: str


class Login(NamedTuple):
    """What was found of a program: its path (empty: not installed), whether it is logged in, and when (wall ms)."""

    program: str
    logged_in: bool
    at_ms: int


class Extractors:
    """The extractors of this machine, as the configuration orders them."""

    def __init__(
        self,
        home: Home,
        config: Config,
        environ: Mapping[str, str],
        clock: Clock,
        user: Path | None = None,
        *,
        keep: bool = True,
    ) -> None:
        """``user`` is the person's home directory; nothing is read yet. ``keep`` off: nothing is ever written."""
        self._keep = keep
        self._stale = False
        self._home = home
        self._config = config
        self._environ = environ
        self._clock = clock
        self._user = user or Path(environ.get("HOME") or environ.get("USERPROFILE") or "~").expanduser()

    def choose(self, *, fresh: bool = False, stale: bool = False, allowed: bool = False) -> Choice:
        """Return what is to be used now. No model is called.

        ``fresh`` looks again at what is remembered, ``stale`` takes it however old it is; ``allowed`` tells what would
        be used if setup had switched a model on.
        """
        self._stale = stale
        wanted = self._config.extractor
        if self._environ.get(child.GUARD):
            return Choice("off", None, "this runs inside a call of a model")
        if wanted == OFF:
            return Choice("off", None, "switched off in config.toml")
        if wanted == RULES:
            return Choice("rules", None, "chosen in config.toml")
        if wanted != "auto":
            return self._one(wanted, fresh) or Choice("wait", None, self._lack(wanted))
        if not (allowed or self.switched_on):
            return Choice("rules", None, "no model was switched on: memorize setup")
        names = [name.strip() for name in self._config.order.split(",")]
        for name in names:
            if (found := self._one(name, fresh)) is not None:
                return found
        last = str(self._memory().get("answered", ""))
        if last in names and (last == "url" or self._login(last, fresh=False).program):
            return Choice("wait", None, self._lack(last))
        return Choice("rules", None, "no agent is logged in on this machine")

    def choose_anew(self) -> Choice:
        """Return the same for a person who waits for it: who has logged in need not wait for an old "no" to pass."""
        choice = self.choose()
        return choice if choice.model is not None else self.choose(fresh=True)

    @property
    def switched_on(self) -> bool:
        """Whether setup allowed ``auto`` to use a model."""
        return self._memory().get("switched_on") is True

    def switch_on(self) -> None:
        """Let ``auto`` use a model from now on. Raises CannotWrite."""
        if not self.switched_on:
            self._remember(switched_on=True)

    def answered(self, name: str) -> None:
        """Remember that a model answered: from now on its windows wait for it. Raises CannotWrite."""
        if self._memory().get("answered") != name:
            self._remember(answered=name)

    def forget(self, name: str) -> None:
        """Look anew at the next choice: a call failed for its login or its program. Raises CannotWrite."""
        logins = self._logins()
        if logins.pop(name, None) is not None:
            self._remember(logins={key: login._asdict() for key, login in logins.items()})

    def logins(self, *, fresh: bool = False) -> dict[str, Login]:
        """Return what is known of the two programs, for the faces to show."""
        return {name: self._login(name, fresh) for name in ("claude", "codex")}

    # -- one of them ----------------------------------------------------------------------------------------------

    def _one(self, name: str, fresh: bool) -> Choice | None:
        config = self._config
        if name == "url":
            key = self._environ.get(config.url_key_env, "") if config.url_key_env else ""
            if not config.url or not config.model or (config.url_key_env and not key):
                return None
            from memorize.consolidate import url_model  # with HTTP and TLS, which no program that is run needs

            return Choice("url", url_model.UrlModel(config.url, config.model, key), f"{config.url}, {config.model}")
        login = self._login(name, fresh)
        if not login.logged_in:
            return None
        if name == "claude":
            model: Model = claude_model.ClaudeModel(login.program, self._environ, config.model)
            return Choice("claude", model, "logged in to Claude Code")
        model = codex_model.CodexModel(login.program, self._environ, self._codex_settings(), config.model)
        return Choice("codex", model, "logged in to Codex CLI")

    def _lack(self, name: str) -> str:
        if name == "url":
            if not self._config.url or not self._config.model:
                return "consolidate.url and consolidate.model are not both set"
            return f"the variable {self._config.url_key_env} is not set"
        if not self._login(name, fresh=False).program:
            return f"{TITLES[name]} is not installed; what was observed waits"
        return f"{TITLES[name]} is not logged in; what was observed waits"

    def _login(self, name: str, fresh: bool) -> Login:
        known = self._logins().get(name)
        program = self._program(name, known)
        now = self._clock.wall_ms()
        if known is not None and not fresh and known.program == program:
            age = now - known.at_ms
            if self._stale or 0 <= age < (_YES_MS if known.logged_in else _NO_MS):
                return known
        found = Login(program, bool(program) and self._probe(name, program), now)
        if program or known is not None:
            logins = {**self._logins(), name: found}
            self._remember(logins={key: login._asdict() for key, login in logins.items()})
        return found

    def _program(self, name: str, known: Login | None) -> str:
        """Return the command's path. A daemon may have another PATH than the shell in which setup ran."""
        found = shutil.which(name, path=self._environ.get("PATH", "")) or ""
        if not found and known is not None and known.program and os.access(known.program, os.X_OK):
            return known.program
        return str(Path(found).absolute()) if found else ""

    # -- probes ---------------------------------------------------------------------------------------------------

    def _probe(self, name: str, program: str) -> bool:
        return self._claude(program) if name == "claude" else self._codex(program)

    def _claude(self, program: str) -> bool:
        version = re.search(rb"(\d+)\.(\d+)\.(\d+)", self._says(program, "--version")[1])
        if version is None:
            return False
        if tuple(map(int, version.groups())) < _AUTH_STATUS:
            folder = Path(self._environ.get("CLAUDE_CONFIG_DIR") or self._user / ".claude")
            return any(self._environ.get(key) for key in _KEYS) or (folder / ".credentials.json").is_file()
        status, out = self._says(program, "auth", "status")
        try:
            told = json.loads(out)
        except ValueError:
            return status == 0
        return status == 0 and (not isinstance(told, dict) or told.get("loggedIn", True) is True)

    def _codex(self, program: str) -> bool:
        if self._environ.get("CODEX_API_KEY"):
            return True
        settings = codex_model.settings_of(self._codex_settings())
        providers = settings.get("model_providers")
        chosen = providers.get(settings.get("model_provider")) if isinstance(providers, dict) else None
        if isinstance(chosen, dict) and not chosen.get("requires_openai_auth"):
            key = chosen.get("env_key")
            return not isinstance(key, str) or bool(self._environ.get(key))
        return self._says(program, "login", "status")[0] == 0

    def _codex_settings(self) -> Path:
        return Path(self._environ.get("CODEX_HOME") or self._user / ".codex") / "config.toml"

    def _says(self, program: str, *words: str) -> tuple[int | None, bytes]:
        environ = child.environment(self._environ, claude_model.ENVIRON)
        try:
            with child.workplace() as place:
                done = child.run([program, *words], b"", environ, place / "empty", _PROBE_S)
        except OSError:
            return None, b""
        return done.status, done.out

    # -- what is remembered ---------------------------------------------------------------------------------------

    def _memory(self) -> dict[str, Any]:
        try:
            value = json.loads(self._home.extractor.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}

    def _logins(self) -> dict[str, Login]:
        found = {}
        stored = self._memory().get("logins")
        for name, value in stored.items() if isinstance(stored, dict) else ():
            try:
                login = Login(str(value["program"]), value["logged_in"] is True, int(value["at_ms"]))
            except (TypeError, KeyError, ValueError):
                continue
            found[name] = login
        return found

    def _remember(self, **facts: object) -> None:
        if not self._keep:
            return
        path = self._home.extractor
        beside = path.with_name(f".{path.name}.{uuid4().hex}")
        content = json.dumps({**self._memory(), **facts}, ensure_ascii=False, indent=1).encode()
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(content)
                beside.replace(path)
            finally:
                beside.unlink(missing_ok=True)
        except OSError as error:
            raise CannotWrite(path=path, detail=error.strerror or error) from error
