"""A daemon that serves while text is erased: by it, by a verb beside it, and with captures going on."""

from __future__ import annotations

import subprocess
import sys

from memorize import model
from memorize.clock import SystemClock
from memorize.log.spool import put_batch
from memorize.log.verify import CLEAN, verify
from memorize.model import Draft
from tests.children import environ
from tests.daemon.kit import PATIENCE_S, Place, until

SECRET = "zebra-quagga-7391"
GEHEIM = "고양이밥통비밀번호"


def left(place: Place) -> list[str]:
    words = (SECRET.encode(), GEHEIM.encode())
    files = [path for path in place.home.root.rglob("*") if path.is_file()]
    return [path.name for path in files if any(word in path.read_bytes() for word in words)]


def clean(place: Place) -> bool:
    """Tell whether nothing is left; a file may go while it is looked at."""
    try:
        return not left(place)
    except OSError:
        return False


def prompted(place: Place, text: str, session: str = "세션") -> None:
    place.capture("UserPromptSubmit", session, prompt=text)
    place.drained()


def prompts(place: Place) -> dict[bytes, str]:
    found = place.events(model.OBSERVED_PROMPT)
    return {event.id: str(event.payload["text"]) for event in found if event.payload}


def test_a_daemon_takes_out_what_a_request_in_the_spool_names_and_goes_on(place: Place) -> None:
    place.serve()
    prompted(place, f"the code is {SECRET} und {GEHEIM}")
    (wrong,) = until(lambda: prompts(place), "the prompt in the index")
    assert left(place)
    put_batch(place.home, [Draft(model.ERASE_REQUESTED, {"ids": [wrong]})], SystemClock())
    until(lambda: clean(place), "nothing left of it")
    until(lambda: place.events(model.ERASE_ACKNOWLEDGED), "the acknowledgement")
    prompted(place, "다음 이야기")
    until(lambda: list(prompts(place).values()) == ["다음 이야기"], "the next prompt")
    assert clean(place)


def test_a_verb_erases_beside_a_daemon_that_has_the_segment_open_and_nothing_is_lost(place: Place) -> None:
    place.serve()
    for number in range(3):
        prompted(place, f"{number}: {SECRET} {GEHEIM}")
        prompted(place, f"{number}: 남는다")
        done = subprocess.run(
            [sys.executable, "-m", "memorize", "erase", "--matching", GEHEIM, "--yes"],
            cwd=place.project,
            env=environ(),
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, done
        assert clean(place)
    prompted(place, "and after it")
    place.end()
    assert sorted(prompts(place).values()) == ["0: 남는다", "1: 남는다", "2: 남는다", "and after it"]
    assert clean(place)
    assert verify(place.home, deep=True).exit == CLEAN
