"""Replicas against the simplest model there is, a Python set, with hypothesis choosing what happens next."""

from __future__ import annotations

from random import Random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.counts import count
from tests.sync.simulator import faults
from tests.sync.simulator.chance import seeded
from tests.sync.simulator.history import settle
from tests.sync.simulator.links import Link
from tests.sync.simulator.world import Rules, World

MACHINES = count("sync: hypothesis histories", quick=20, full=150)
PICK = st.integers(0, 5)


class Replicas(RuleBasedStateMachine):
    """Two to six replicas; ``self.model`` holds what was captured anywhere and must be held everywhere in the end."""

    @initialize(seed=st.integers(0, 2**32 - 1))
    def begin(self, seed: int) -> None:
        random = Random(seed)
        self.chance = seeded(random)
        self.chance.__enter__()
        self.world = World(random, Rules(), lambda line: None)
        self.model: set[bytes] = set()

    def device(self, pick: int):
        devices = self.world.alive()
        return devices[pick % len(devices)]

    @rule(pick=PICK, ingest=st.booleans())
    def capture(self, pick: int, ingest: bool) -> None:
        device = self.device(pick)
        before = set(self.world.nonces)
        self.world.capture(device, self.world.draft(device), ingest=ingest)
        self.model |= self.world.nonces - before

    @rule(times=st.integers(1, 8))
    def carry(self, times: int) -> None:
        for _ in range(times if self.world.carrier.disks else 0):
            self.world.carrier.step()

    @rule(pick=PICK)
    def do_a_round_with_the_folder(self, pick: int) -> None:
        device = self.device(pick)
        if device.folder is not None:
            self.world.ingest(device)
            device.folder_round()

    @rule(pick=PICK, cut=st.one_of(st.none(), st.integers(1, 12)))
    def talk(self, pick: int, cut: int | None) -> None:
        if pairs := list(self.world.pairs()):
            Link(self.world, *pairs[pick % len(pairs)]).talk(cut)

    @rule(days=st.integers(0, 9))
    def wait(self, days: int) -> None:
        self.world.time.advance(days * 24 * 3600 * 1000)

    @rule()
    def erase(self) -> None:
        before = set(self.world.nonces)
        faults.erase(self.world)
        self.model |= self.world.nonces - before

    @rule()
    def copy_a_state_directory(self) -> None:
        faults.clone(self.world)

    @rule()
    def start_a_machine_again(self) -> None:
        faults.reboot(self.world)

    @rule()
    def lose_what_is_derived(self) -> None:
        faults.forget_derived(self.world)

    @rule()
    def leave_junk(self) -> None:
        faults.junk(self.world)

    @invariant()
    def what_is_captured_stays_where_it_was_captured(self) -> None:
        if hasattr(self, "world"):
            held = {nonce for one in self.world.alive() for nonce, _ in one.replica.holding.nonces}
            held.update(nonce for one in self.world.alive() for nonce in one.replica.spool)
            assert self.model <= held

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        try:
            assert settle(self.world) == []
            for device in self.world.alive():
                assert {nonce for nonce, _ in device.replica.holding.nonces} == self.model
        finally:
            self.chance.__exit__(None, None, None)


TestReplicas = Replicas.TestCase
TestReplicas.settings = settings(max_examples=MACHINES, stateful_step_count=25, deadline=None)
