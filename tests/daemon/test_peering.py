"""Devices of one person, each with its daemon, exchange events directly: real processes, real TLS, on loopback."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import ssl
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memorize.daemon import life
from memorize.daemon.peering import IN_MAX
from memorize.log.files import RealFiles
from memorize.paths import Home
from memorize.sync import tls
from memorize.sync.peers import Address
from memorize.sync.ring import SCOPE
from tests.counts import FULL
from tests.daemon.kit import PATIENCE_S, until
from tests.daemon.two_homes import Device, converged, free_port

DESK, LAPTOP, SERVER = "책상 데스크톱", "노트북", "서버"
Make = Callable[[str], Device]
# Each starts several daemons and waits for them; a quick run tries the others.
in_full = pytest.mark.skipif(not FULL, reason="part of a full run")


@pytest.fixture
def device(own_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Make]:
    """Make devices; no daemon outlives the test."""
    made: list[Device] = []

    def make(name: str) -> Device:
        root = Path(tempfile.mkdtemp(prefix="p", dir=tmp_path_factory.getbasetemp()))
        made.append(Device(root, name))
        return made[-1]

    yield make
    for one in made:
        one.stops()
        assert not life.is_locked(one.home), "a daemon outlived its test"


@pytest.fixture
def desk(device: Make) -> Device:
    return device(DESK)


@pytest.fixture
def laptop(device: Make) -> Device:
    return device(LAPTOP)


def _code(shown: str) -> tuple[str, str]:
    fields = dict(line.split() for line in shown.splitlines())
    return fields["code"], fields["at"]


def _shows(desk: Device) -> tuple[object, str, str]:
    """Let a device show a code and wait; return the process, the code and where it waits."""
    process = desk.begins("peer", "pair", "--no-lan", "--bind", "127.0.0.1", "--minutes", "10")
    assert process.stdout is not None
    lines = process.stdout.readline() + process.stdout.readline()
    return process, *_code(lines)


# -- pairing with verbs -------------------------------------------------------------------------------------------


def test_two_devices_with_a_past_are_paired_with_a_code_and_come_to_hold_the_same(desk: Device, laptop: Device) -> None:
    desk.remembers("환불은 멱등 키로 한다")
    laptop.remembers("배포는 금요일에 하지 않는다")
    desk.serves(listen=True)
    process, code, at = _shows(desk)
    left, out, err = laptop.types("peer", "pair", code, "--at", at, "--yes")
    assert left == 0, err
    assert DESK in out
    assert "joins the memory of" in err, "it is said before"
    told, said = process.communicate(timeout=PATIENCE_S)  # type: ignore[attr-defined]
    assert process.returncode == 0, said  # type: ignore[attr-defined]
    assert LAPTOP in told
    assert laptop.is_up(), "one of both listens, so the other one connects"
    converged(desk, laptop)
    assert desk.knows("배포는 금요일에 하지 않는다")
    assert laptop.knows("환불은 멱등 키로 한다")
    assert desk.ring().store == laptop.ring().store
    _, listed, _ = laptop.types("peer", "list")
    assert DESK in listed


def test_a_wrong_code_changes_nothing_and_ends_the_attempt_on_both_sides(desk: Device, laptop: Device) -> None:
    desk.remembers("여기")
    laptop.remembers("거기")
    before = (desk.ring(), laptop.ring())
    process, code, at = _shows(desk)
    number = int(code[-2:])
    wrong = f"{code[:-2]}{number + 1 if number < 99 else 10}"
    left, _, err = laptop.types("peer", "pair", wrong, "--at", at, "--yes")
    assert left == 54, err
    _, said = process.communicate(timeout=PATIENCE_S)  # type: ignore[attr-defined]
    assert process.returncode == 54  # type: ignore[attr-defined]
    assert "the code was wrong" in said
    assert (desk.ring(), laptop.ring()) == before
    assert not (desk.home.keys / "peers.json").exists()
    assert not (laptop.home.keys / "peers.json").exists()
    left, _, err = laptop.types("peer", "pair", code, "--at", at, "--yes")
    assert left == 54, "the code was good for one attempt"


@in_full
def test_where_nobody_can_be_asked_nothing_is_joined(desk: Device, laptop: Device) -> None:
    desk.remembers("여기")
    laptop.remembers("거기")
    before = (desk.ring(), laptop.ring())
    process, code, at = _shows(desk)
    left, _, err = laptop.types("peer", "pair", code, "--at", at, given="n\n")
    assert left == 46, err
    assert "--yes" in err
    process.communicate(timeout=PATIENCE_S)  # type: ignore[attr-defined]
    assert process.returncode == 54  # type: ignore[attr-defined]
    assert (desk.ring(), laptop.ring()) == before


def test_waiting_for_the_other_device_ends_with_ctrl_c_and_after_its_time(desk: Device) -> None:
    process, _, _ = _shows(desk)
    process.send_signal(signal.SIGINT)  # type: ignore[attr-defined]
    process.communicate(timeout=PATIENCE_S)  # type: ignore[attr-defined]
    assert process.returncode == 130  # type: ignore[attr-defined]
    left, _, err = desk.types("peer", "pair", "--no-lan", "--bind", "127.0.0.1", "--minutes", "0.01")
    assert left == 54
    assert "nobody came in time" in err


@pytest.mark.parametrize(
    ("words", "lacking"), [(("7-cedar-orbit",), "looks like"), (("7-cedar-orbit-42", "--no-lan"), "--at")]
)
def test_without_a_code_or_a_place_it_says_what_is_lacking(
    laptop: Device, words: tuple[str, ...], lacking: str
) -> None:
    left, _, err = laptop.types("peer", "pair", *words)
    assert left == 54
    assert lacking in err


# -- connected ----------------------------------------------------------------------------------------------------


def test_what_is_new_on_one_device_is_on_the_other_one_while_they_are_connected(desk: Device, laptop: Device) -> None:
    laptop.meets(desk)
    desk.serves(listen=True)
    laptop.serves()
    until(lambda: laptop.state_of(desk).get("converged"), "a connection")
    for number in range(3):
        desk.remembers(f"책상에서 {number}")
        laptop.remembers(f"노트북에서 {number}")
    until(lambda: laptop.knows("책상에서 2") and desk.knows("노트북에서 2"), "what was just remembered")
    converged(desk, laptop)
    assert desk.state_of(laptop)["state"] == "connected"


@in_full
def test_what_one_peer_brings_is_passed_on_to_another_one(device: Make, desk: Device, laptop: Device) -> None:
    server = device(SERVER)
    desk.meets(server)
    laptop.meets(server)
    server.serves(listen=True)
    desk.serves()
    laptop.serves()
    desk.remembers("책상에서만 말한 것")
    until(lambda: laptop.knows("책상에서만 말한 것"), "what the server passes on")
    converged(desk, laptop, server)


@in_full
def test_a_daemon_that_was_killed_goes_on_where_it_was(desk: Device, laptop: Device) -> None:
    laptop.meets(desk)
    desk.serves(listen=True)
    laptop.serves()
    until(lambda: laptop.state_of(desk).get("converged"), "a connection")
    running = life.status(laptop.home)
    assert running is not None
    os.kill(running.pid, signal.SIGKILL)
    desk.remembers("그동안")
    until(lambda: not life.is_locked(laptop.home), "its end")
    laptop.serves()
    until(lambda: laptop.knows("그동안"), "what came meanwhile")
    converged(desk, laptop)


@in_full
def test_devices_that_each_joined_the_other_come_to_one_store(desk: Device, laptop: Device) -> None:
    desk.remembers("여기")
    laptop.remembers("거기")
    _, mine, _ = desk.types("key", "export")
    _, theirs, _ = laptop.types("key", "export")
    assert desk.types("key", "import", given=theirs)[0] == 0
    assert laptop.types("key", "import", given=mine)[0] == 0
    assert desk.ring().store != laptop.ring().store
    laptop.meets(desk, keyed=False)
    desk.serves(listen=True)
    laptop.serves()
    until(lambda: desk.ring().store == laptop.ring().store, "one store")
    converged(desk, laptop)


@in_full
def test_a_copied_device_runs_beside_its_twin_and_nothing_of_either_is_lost(
    device: Make, desk: Device, laptop: Device
) -> None:
    laptop.meets(desk)
    laptop.remembers("둘로 나뉘기 전")
    twin = device("쌍둥이")
    shutil.rmtree(twin.home.root)
    shutil.copytree(laptop.home.root, twin.home.root)
    desk.serves(listen=True)
    for one in (laptop, twin):
        one.serves()
        until(lambda one=one: one.state_of(desk).get("converged"), "a connection")
    for number in range(3):
        laptop.remembers(f"노트북 {number}")
        twin.remembers(f"쌍둥이 {number}")
    until(lambda: desk.knows("노트북 2") and desk.knows("쌍둥이 2"), "what both said")
    converged(desk, laptop, twin)
    assert [one.state_of(desk)["state"] for one in (laptop, twin)] == ["connected"] * 2, "neither pushes the other out"


# -- keys ---------------------------------------------------------------------------------------------------------


def test_a_new_store_key_and_a_scope_key_reach_the_other_device(desk: Device, laptop: Device) -> None:
    laptop.meets(desk)
    desk.serves(listen=True)
    laptop.serves()
    until(lambda: laptop.state_of(desk).get("converged"), "a connection")
    assert desk.types("key", "rotate")[0] == 0
    until(lambda: laptop.ring().current == desk.ring().current, "the new key")
    assert laptop.types("key", "scope", "on")[0] == 0
    until(lambda: desk.ring().scopes and desk.ring().scopes == laptop.ring().scopes, "the scope key")
    assert not [one for one in desk.ring().wrapped if one.purpose == SCOPE], "none that a pack would carry"
    desk.remembers("열쇠가 바뀐 뒤")
    until(lambda: laptop.knows("열쇠가 바뀐 뒤"), "what came after")


@in_full
def test_after_a_rotation_by_hand_the_other_device_is_refused_until_it_has_the_new_line(
    desk: Device, laptop: Device
) -> None:
    laptop.meets(desk)
    desk.serves(listen=True)
    laptop.serves()
    until(lambda: laptop.state_of(desk).get("converged"), "a connection")
    assert desk.types("key", "rotate", "--by-hand")[0] == 0
    desk.remembers("비밀")
    until(lambda: "key" in laptop.state_of(desk).get("reason", ""), "a refusal that says why")
    assert not laptop.knows("비밀")
    _, line, _ = desk.types("key", "export")
    assert laptop.types("key", "import", given=line)[0] == 0
    until(lambda: laptop.knows("비밀"), "what came meanwhile")


# -- who is not let in --------------------------------------------------------------------------------------------


def test_a_device_that_was_removed_is_not_let_in_any_more(desk: Device, laptop: Device) -> None:
    laptop.meets(desk)
    desk.serves(listen=True)
    laptop.serves()
    until(lambda: laptop.state_of(desk).get("converged"), "a connection")
    left, out, err = desk.types("peer", "remove", LAPTOP)
    assert left == 0, err
    assert LAPTOP in out
    until(lambda: laptop.state_of(desk).get("state") != "connected", "the end of the connection")
    desk.remembers("나중에")
    desk.serves(listen=True)
    until(lambda: laptop.state_of(desk).get("reason"), "a reason")
    assert not laptop.knows("나중에")
    assert desk.types("peer", "remove", "없는 기기")[0] == 52


def test_whoever_answers_with_another_certificate_hears_nothing(desk: Device, laptop: Device, tmp_path: Path) -> None:
    laptop.remembers("비밀")
    laptop.meets(desk)
    stranger = Home(tmp_path / "낯선 기기")
    stranger.keys.mkdir(parents=True)
    own = tls.own_certificate(stranger, RealFiles(), b"\7" * 16)
    heard: list[bytes] = []

    def answer(listener: socket.socket) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(own.path)
        while True:
            try:
                wire, _ = listener.accept()
            except OSError:
                return
            wire.settimeout(PATIENCE_S)
            try:
                with context.wrap_socket(wire, server_side=True) as safe:
                    heard.append(safe.recv(100))
            except OSError:
                wire.close()

    with socket.create_server(("127.0.0.1", desk.port)) as listener:
        thread = threading.Thread(target=answer, args=(listener,), daemon=True)
        thread.start()
        laptop.serves()
        reason = until(lambda: laptop.state_of(desk).get("reason"), "a reason")
        assert "CERTIFICATE" in reason.upper()
        assert laptop.is_up()
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(PATIENCE_S)
    assert not any(heard), "not a byte was said"


def test_random_bytes_and_silent_connections_leave_the_daemon_up(desk: Device, laptop: Device) -> None:
    laptop.meets(desk)
    desk.serves(listen=True)
    until(lambda: life.peering(desk.home).get("listening"), "a port")
    silent = []
    for _ in range(2 * IN_MAX):
        with socket.create_connection(("127.0.0.1", desk.port), PATIENCE_S) as wire:
            try:
                wire.sendall(os.urandom(3_000))
            except OSError:
                continue  # there was no room for one more
        silent.append(socket.create_connection(("127.0.0.1", desk.port), PATIENCE_S))
    until(lambda: life.peering(desk.home).get("refused", 0) >= 1, "refused connections")
    assert desk.is_up()
    for wire in silent:
        wire.close()
    laptop.serves()
    desk.remembers("그래도")
    until(lambda: laptop.knows("그래도"), "an exchange all the same")


@in_full
def test_a_device_of_another_person_with_a_pinned_certificate_but_no_key_gets_nothing(
    desk: Device, laptop: Device
) -> None:
    desk.remembers("비밀")
    laptop.meets(desk, keyed=False)
    desk.serves(listen=True)
    laptop.serves()
    until(lambda: "store" in laptop.state_of(desk).get("reason", ""), "a refusal that says why")
    assert not laptop.knows("비밀")


# -- the daemon ---------------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="reads what is mapped from /proc")
def test_without_a_paired_device_nothing_of_it_is_loaded_and_no_port_is_open(desk: Device) -> None:
    desk.serves(listen=True)
    desk.remembers("혼자")
    running = life.status(desk.home)
    assert running is not None
    mapped = Path(f"/proc/{running.pid}/maps").read_text(encoding="utf-8")
    assert "_ssl" not in mapped
    assert "libssl" not in mapped
    assert "_rust" not in mapped
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", desk.port), 1.0)


@in_full
def test_a_daemon_with_peers_does_not_leave_when_idle_and_one_whose_last_peer_was_removed_does(
    desk: Device, laptop: Device
) -> None:
    laptop.meets(desk)
    laptop.configure("off", idle_exit_s=1)
    life.spawn(laptop.home, laptop.environ)
    running = life.wait_until_up(laptop.home, PATIENCE_S)
    assert running is not None
    until(lambda: (found := life.status(laptop.home)) is not None and found.since_s >= 5, "five quiet seconds")
    assert laptop.types("peer", "remove", DESK)[0] == 0
    until(lambda: not life.is_locked(laptop.home), "its leaving")


@in_full
def test_a_port_that_is_taken_is_said_and_the_daemon_serves_on(desk: Device, laptop: Device) -> None:
    laptop.meets(desk)
    with socket.create_server(("", desk.port)):
        desk.serves(listen=True)
        until(lambda: "port" in life.peering(desk.home).get("failure", ""), "what is wrong with the port")
        desk.remembers("그래도")
        assert desk.is_up()
        _, _, said = desk.types("peer", "list")
        assert str(desk.port) in said


@in_full
def test_addresses_that_lead_nowhere_or_to_somebody_else_are_tried_one_after_the_other(
    desk: Device, laptop: Device, device: Make
) -> None:
    laptop.meets(desk)
    other = device(SERVER)
    other.meets(desk)
    other.serves(listen=True)
    from memorize.sync import peers

    with laptop.app() as parts:
        nowhere = (Address("127.0.0.1", free_port()), Address("127.0.0.1", other.port))
        found = desk.as_peer()
        peers.change(
            parts.home,
            parts.files,
            lambda known: [
                one._replace(addresses=(*nowhere, *one.addresses)) for one in known if one.name == found.name
            ],
        )
    desk.serves(listen=True)
    laptop.serves()
    until(lambda: laptop.state_of(desk).get("converged"), "a connection")


@in_full
def test_listening_is_switched_on_and_off_by_a_verb(desk: Device, laptop: Device) -> None:
    laptop.meets(desk)
    port = free_port()
    left, out, err = desk.types("peer", "listen", "on", "--port", str(port))
    assert left == 0, err
    assert str(port) in out
    until(lambda: life.peering(desk.home).get("listening"), "a port")
    assert "listen" in desk.home.config.read_text(encoding="utf-8")
    left, out, err = desk.types("peer", "listen", "off")
    assert left == 0, err
    until(lambda: desk.is_up() and not life.peering(desk.home).get("listening"), "a closed port")
