"""Erasing with the real verbs: what is gone is nowhere in the state directory, found by a search of every byte."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memorize import model
from memorize.bootstrap import App, open_app
from memorize.log.spool import put_capture
from memorize.model import Draft
from memorize.recall.changes import formed, remembered
from tests.children import environ
from tests.cli.kit import Person

SECRET = "zebra-quagga-7391"
GEHEIM = "고양이밥통비밀번호"
C = {"agent": "claude", "branch": "가지-branch", "head": "f" * 40, "dir": "src"}


def everywhere(person: Person, *words: str) -> list[str]:
    """Return the files of the state directory in which one of the words lies, in whatever encoding."""
    found = []
    for path in sorted(person.home.root.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            for word in words:
                forms = (word.encode(), word.encode("utf-16-le"), json.dumps(word)[1:-1].encode())
                if any(form in data for form in forms):
                    found.append(f"{path.relative_to(person.home.root)}: {word}")
    return found


def greps(person: Person, word: str) -> int:
    """Search as a person would; return the exit code of grep, 1 for nothing."""
    return subprocess.run(["grep", "-r", "-a", "-q", word, str(person.home.root)], check=False).returncode


@pytest.fixture
def app(person: Person) -> App:
    found = open_app(os.environ)
    yield found
    found.close()


def session(app: App, name: str, *texts: str, **more: str) -> list[bytes]:
    place = app.place(".")
    common = {**C, "session": name, "project": place.project}
    drafts = [Draft(model.SESSION_OPENED, {**common, "source": "startup", "transcript": "", "model": "m", **more}, 0)]
    for number, text in enumerate(texts, 1):
        kind = model.OBSERVED_REPLY if number % 2 == 0 else model.OBSERVED_PROMPT
        drafts.append(Draft(kind, {**common, "text": text}, number))
    return app.append(drafts, place=place)


def remember(app: App, text: str, **fields: Any) -> bytes:
    place = app.place(".")
    scope = fields.pop("scope", "project")
    return app.append(remembered(formed(text, "fact", scope, place.project, 5, **fields)), place=place)[0]


def test_an_erased_memory_is_nowhere_and_everything_else_is_as_it_was(person: Person) -> None:
    wrong = person.remembers(f"The code is {SECRET} und {GEHEIM}")
    person.remembers("Deploy on Mondays, 월요일에 배포한다")
    person.gets("search", SECRET)
    before = person.gets("digest")
    assert everywhere(person, SECRET, GEHEIM)
    said = person.types("erase", wrong[:8], "--yes")
    assert said.code == 0, said
    assert "erased 1 event" in said.out
    assert "cannot be undone" in said.err
    assert everywhere(person, SECRET, GEHEIM) == []
    assert [greps(person, word) for word in (SECRET, GEHEIM, "zebra")] == [1, 1, 1]
    assert [item["text"] for item in person.gets("list")["items"]] == ["Deploy on Mondays, 월요일에 배포한다"]
    assert person.gets("search", SECRET)["items"] == []
    assert person.types("verify", "--deep").code == 0
    after = person.gets("digest")
    assert int(after["set"].split("-")[0], 16) == int(before["set"].split("-")[0], 16) + 2
    assert person.types("rebuild").code == 0
    assert person.gets("digest") == after


def test_an_erased_event_is_still_shown_as_a_shell_without_its_words(person: Person) -> None:
    wrong = person.remembers(f"{SECRET} {GEHEIM}")
    person.types("erase", wrong, "--yes")
    for verb in (("show", wrong), ("history", wrong), ("log",), ("list",), ("pack", SECRET + " task"), ("doctor",)):
        said = person.types(*verb)
        told = said.out.replace(f"{SECRET} task", "")
        assert SECRET not in told, verb
        assert GEHEIM not in told, verb
    assert person.gets("show", wrong)["status"] == "erased"
    (event,) = [one for one in person.gets("log")["items"] if one["id"] == wrong]
    assert event["payload"] is None
    assert "(erased)" in person.types("log").out
    again = person.types("erase", wrong, "--yes")
    assert again.code == 62, again


def test_what_was_said_in_a_session_goes_with_the_memories_that_were_taken_from_it(person: Person, app: App) -> None:
    said = session(app, "세션-one", f"my {SECRET} is {GEHEIM}", "I will remember that")
    other = session(app, "session-two", "다른 이야기", "fine")
    remember(app, f"{GEHEIM} belongs to it", sources=[said[1]])
    kept = remember(app, "cites it and stays", sources=[said[1]])
    remember(app, "has nothing to do with it", sources=[other[1]])
    before = person.types("erase", said[1].hex()[:10], "--dry-run", "--keep", kept.hex()[:10])
    assert before.code == 0
    assert "memory.formed" in before.out
    assert "was taken from it" in before.out
    assert everywhere(person, GEHEIM)
    document = person.gets("erase", said[1].hex(), "--keep", kept.hex(), "--yes")
    assert document["erased"] == 2
    assert document["kept"] == [kept.hex()]
    assert everywhere(person, SECRET, GEHEIM) == []
    texts = {item["text"] for item in person.gets("list")["items"]}
    assert texts == {"cites it and stays", "has nothing to do with it"}


def test_a_memory_that_comes_later_and_cites_what_is_erased_waits_for_review(person: Person, app: App) -> None:
    said = session(app, "세션", f"{SECRET}", "ok")
    person.types("erase", said[1].hex(), "--yes")
    late = remember(app, "늦게 온 기억", sources=[said[1]])
    assert person.gets("list")["items"] == []
    (waiting,) = person.gets("review")["items"]
    assert waiting["id"] == late.hex()
    assert person.types("rebuild").code == 0
    assert [item["id"] for item in person.gets("review")["items"]] == [late.hex()]
    person.gets("review", "accept", late.hex()[:10])
    assert [item["text"] for item in person.gets("list")["items"]] == ["늦게 온 기억"]
    assert person.gets("review")["items"] == []


def test_a_whole_session_goes_with_everything_that_is_known_of_it(person: Person, app: App) -> None:
    session(app, "세션-비밀", f"{SECRET}", "좋아", f"{GEHEIM}", transcript="/home/somebody/very-own-transcript.jsonl")
    session(app, "session-two", "다른 이야기", "fine")
    unknown = person.types("erase", "--session", "없는", "--yes")
    assert unknown.code == 65
    said = person.types("erase", "--session", "세션", "--yes")
    assert said.code == 0, said
    assert everywhere(person, SECRET, GEHEIM, "very-own-transcript") == []
    assert [one["session"] for one in person.gets("sessions")["items"]] == ["session-two"]
    assert person.types("verify", "--deep").code == 0


def test_the_transcript_of_a_session_is_read_no_more_once_something_of_it_was_erased(
    person: Person, app: App, tmp_path: Path
) -> None:
    path = tmp_path / "0b4c2f.jsonl"
    line = {"type": "user", "sessionId": "0b4c2f", "uuid": "u1", "cwd": str(person.project)}
    line |= {"timestamp": "2026-11-01T10:00:00.000Z", "message": {"role": "user", "content": f"{SECRET} 를 기억해"}}
    path.write_text(json.dumps(line, ensure_ascii=False) + "\n", encoding="utf-8")
    said = session(app, "0b4c2f", f"{SECRET} 를 기억해", "ok", "another 이야기", transcript=str(path))
    (window,) = app.open_windows()
    assert SECRET in str(window)
    person.types("erase", said[1].hex(), "--yes")
    assert SECRET not in str(app.open_windows())
    assert app.open_windows()


def test_a_project_goes_by_its_directory_and_what_is_personal_stays(person: Person, app: App, tmp_path: Path) -> None:
    said = session(app, "세션", f"{SECRET}", "좋아")
    remember(app, f"{GEHEIM} of the project")
    mine = remember(app, "나는 탭을 쓴다", scope="personal", sources=[said[1]])
    own = remember(app, "from nowhere 개인", scope="personal")
    other = tmp_path / "다른 project"
    other.mkdir()
    place = app.place(str(other))
    app.append(remembered(formed("other project", "fact", "project", place.project, 5)), place=place)
    assert person.types("erase", "--project", "nothing-of-that-name", "--yes").code == 43
    done = person.types("erase", "--yes", "--project")
    assert done.code == 0, done
    assert everywhere(person, SECRET, GEHEIM, str(person.project), person.project.name) == []
    assert [one["name"] for one in person.gets("projects")["items"] if one["name"]] == ["다른 project"]
    app.close()
    assert {row.id for row in app.query().waiting(None)} == {mine}
    assert own in {row.id for row in app.query().ranked(_everything(), 20)}
    assert person.types("verify", "--deep").code == 0


def _everything() -> Any:
    from memorize.index.query import Scope

    return Scope()


def test_everything_with_certain_words_goes_whatever_its_kind_and_case(person: Person, app: App) -> None:
    session(app, "세션", "say ZEBRA-quagga-7391 aloud", "sure", "무관한 말", "no " + "x" * 3000 + GEHEIM)
    place = app.place(".")
    common = {**C, "session": "세션", "project": place.project}
    app.append([Draft(model.OBSERVED_SHELL, {**common, "command": f"echo {SECRET}", "ok": True, "output": ""}, 0)])
    app.append([Draft(model.OBSERVED_EDIT, {**common, "path": f"src/{SECRET}.py", "op": "edit", "diff": "+1"}, 0)])
    gone = remember(app, f"the word is {SECRET}", tags=["태그"])
    app.append([Draft(model.MEMORY_RETRACTED, {"reason": f"because {SECRET} was wrong"}, 0, (gone,))])
    remember(app, "stays 남는다")
    looked = person.gets("erase", "--matching", "Zebra-QUAGGA", "--dry-run")
    assert looked["total"] == 5
    assert looked["kinds"]["memory.retracted"] == 1
    assert looked["done"] is False
    assert everywhere(person, SECRET)
    assert person.gets("erase", "--matching", "Zebra-QUAGGA", "--yes")["erased"] == 5
    assert everywhere(person, SECRET, "ZEBRA") == []
    import unicodedata

    assert person.gets("erase", "--matching", unicodedata.normalize("NFD", GEHEIM), "--yes")["erased"] == 1
    assert everywhere(person, GEHEIM) == []
    assert person.types("erase", "--matching", "zebra", "--yes").code == 62
    texts = {item["text"] for item in person.gets("list")["items"]}
    assert texts == {"stays 남는다"}
    assert person.gets("show", gone.hex())["status"] == "erased"


def test_copies_that_nobody_indexes_go_too(person: Person, app: App) -> None:
    wrong = remember(app, f"the word is {SECRET} and also {GEHEIM}")
    broken = json.dumps({"cwd": 5, "prompt": f"the word is {SECRET} and also {GEHEIM}"})
    put_capture(person.home, "claude", "UserPromptSubmit", (broken + "}").encode(), app.clock)
    put_capture(person.home, "claude", "UserPromptSubmit", '{"not": "about it, 전혀"'.encode(), app.clock)
    app.ingest()
    for name in ("index.new", "index.new-wal"):
        (person.home.root / name).write_text(f"left by a rebuild that died: {SECRET}", encoding="utf-8")
    (segment, *_) = sorted(person.home.segments.glob("*.mzs"))
    (person.home.segments / f"{segment.name}.new").write_bytes(segment.read_bytes())
    (person.home.received / f"{'ab' * 16}-00000001.mzs").write_bytes(segment.read_bytes())
    assert len(list((person.home.spool / "bad").iterdir())) == 2
    assert person.types("erase", wrong.hex(), "--yes").code == 0
    assert everywhere(person, SECRET, GEHEIM) == []
    assert len(list((person.home.spool / "bad").iterdir())) == 1


def test_a_copy_of_a_file_that_is_put_back_later_does_not_bring_it_back(person: Person, app: App) -> None:
    wrong = remember(app, f"the word is {SECRET} and {GEHEIM}")
    (segment, *_) = sorted(person.home.segments.glob("*.mzs"))
    copy = segment.read_bytes()
    assert person.types("erase", wrong.hex(), "--yes").code == 0
    app.close()
    (person.home.received / f"{'cd' * 16}-00000001.mzs").write_bytes(copy)
    person.types("status")
    assert everywhere(person, SECRET, GEHEIM) == []
    assert person.types("verify", "--deep").code == 0


def test_nothing_is_erased_without_being_asked_and_only_one_thing_at_a_time(person: Person) -> None:
    wrong = person.remembers(f"{SECRET}")
    refused = person.types("erase", wrong)
    assert refused.code == 64
    assert "--yes" in refused.err
    assert person.types("erase").code == 2
    assert person.types("erase", wrong, "--matching", "x", "--yes").code == 2
    assert person.types("erase", "--status", wrong).code == 2
    assert person.types("erase", "--matching", "  ", "--yes").code == 2
    assert everywhere(person, SECRET)
    assert person.gets("list")["total"] == 1


@pytest.mark.parametrize("kind", [model.DEVICE_HELLO, model.ERASE_REQUESTED, model.ERASE_ACKNOWLEDGED])
def test_what_others_rely_on_cannot_be_erased(person: Person, kind: str) -> None:
    wrong = person.remembers(f"{SECRET}")
    person.gets("erase", wrong, "--yes")
    (event,) = [one for one in person.gets("log")["items"] if one["kind"] == kind]
    said = person.types("erase", event["id"], "--yes")
    assert said.code == 61
    assert kind in said.err


def test_status_tells_which_devices_have_done_what(person: Person) -> None:
    assert "nothing was ever erased" in person.types("erase", "--status").out
    wrong = person.remembers(f"{SECRET}")
    done = person.gets("erase", wrong, "--yes")
    assert done["waiting"] == []
    status = person.gets("erase", "--status")
    assert status["left_here"] == 0
    assert [(one["here"], one["open"]) for one in status["items"]] == [(True, [])]
    assert [(one["id"], one["events"], one["waiting"]) for one in status["erasures"]] == [(done["erasures"][0], 1, [])]
    assert "all done" in person.types("erase", "--status").out


def test_a_text_that_was_edited_goes_with_its_earlier_versions_and_with_whatever_says_the_same(person: Person) -> None:
    first = person.remembers(f"the first version with {SECRET}")
    second = person.gets("edit", first, f"now it is {GEHEIM}")["id"]
    person.remembers(f"now it is {GEHEIM}", "--kind", "constraint")
    assert person.gets("erase", second, "--yes")["erased"] == 3
    assert everywhere(person, SECRET, GEHEIM) == []


def test_a_process_that_died_half_way_is_followed_by_one_that_goes_on(person: Person, app: App) -> None:
    wrong = remember(app, f"the word is {SECRET} and {GEHEIM}")
    app.refresh_briefs()
    for step in ("forget", "compact", "scrub", "clean"):
        code = (
            "import os, memorize.bootstrap.erasing as e\n"
            "from memorize import model\n"
            "from memorize.bootstrap import open_app\n"
            "def die(*_, **__): os._exit(7)\n"
            f"setattr(e if {step!r} == 'scrub' else e.purge, {step!r}, die)\n"
            "app = open_app(os.environ)\n"
            f"app.append([model.Draft(model.ERASE_REQUESTED, {{'ids': [bytes.fromhex({wrong.hex()!r})]}})])\n"
        )
        died = subprocess.run([sys.executable, "-c", code], env=environ(), check=False, timeout=300)
        assert died.returncode == 7, step
    assert person.types("status").code == 0
    assert everywhere(person, SECRET, GEHEIM) == []
    assert person.gets("erase", "--status")["left_here"] == 0
    assert person.types("verify", "--deep").code == 0


def test_what_hinders_an_erasure_is_told_and_it_is_done_later(person: Person, app: App) -> None:
    wrong = remember(app, f"the word is {SECRET}")
    (segment, *_) = sorted(person.home.segments.glob("*.mzs"))
    blocker = person.home.segments / f"{segment.name}.new"
    blocker.mkdir()
    said = person.types("erase", wrong.hex(), "--yes")
    assert said.code == 63, said
    assert "in force" in said.err
    assert person.gets("list")["items"] == []
    status = person.types("erase", "--status")
    assert "not gone from this device yet" in status.out
    blocker.rmdir()
    assert person.gets("erase", "--status")["left_here"] == 0
    assert everywhere(person, SECRET) == []


def test_two_requests_at_once_and_one_larger_than_a_request_may_be(person: Person, app: App) -> None:
    place = app.place(".")
    common = {**C, "session": "큰 세션", "project": place.project}
    for start in range(0, 1_200, 400):
        drafts = [
            Draft(model.OBSERVED_NOTE, {**common, "text": f"{GEHEIM} {SECRET} {number}"}, number)
            for number in range(start, start + 400)
        ]
        app.append(drafts, place=place)
    done = person.gets("erase", "--session", "큰 세션", "--yes")
    assert done["erased"] == 1_200
    assert len(done["erasures"]) == 2
    assert everywhere(person, SECRET, GEHEIM) == []
    assert person.gets("erase", "--status")["left_here"] == 0
