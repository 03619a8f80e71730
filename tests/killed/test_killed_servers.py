"""Crash enumeration on a real etcd: cells drawn by seed, with processes killed, stopped, deposed.

The cells, their modes and what must be true at the end are those of test_crash_enumeration. Here a
server is a process: SIGKILL or SIGSTOP meets it at the call that the cell names, another process
takes over, and what etcd tells of its own history is judged. More of them: `make kills PERCENT=20`.
"""

import asyncio
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random

import pytest

from tests.crash.enumeration import BY_NAME, FULL, Cell, cells, lived
from tests.etcd.process import EtcdProcess
from tests.fakes.faults import Call, Mode
from tests.killed.fault import fault_at
from tests.killed.forked import Zygote, zygote
from tests.killed.life import Place, world
from tests.killed.loop import SPEED, FastLoop
from tests.procedures.harness.scenarios import SCENARIOS

PERCENT = float(os.environ.get("PERCENT", "2"))
PERCENT_FOR_ALL = 2  # of fewer cells, not every mode is among them, nor every rare state
SEED = int(os.environ.get("SEED", "2"))
AT_ONCE = 4  # lives: most of one is waiting, for a lease or for etcd
LIMIT_S = 800 * PERCENT  # on two slow cores that others use too
END_S = 60  # behind the limit: all that still runs is ended, and etcd
SHOWN_MAX = 5
RARE = {
    "a write of a deposed leader was refused",
    "in doubt, and had been done",
    "in doubt, and had been not done",
    "no space",
}

pytestmark = [pytest.mark.long, pytest.mark.etcd, pytest.mark.timeout(LIMIT_S + END_S)]

ASKED_OF_SLOW = "nodes.fetched"
"""The port of a question that is asked only of a copy that takes long. Here that hangs on how fast
the machine is, so its cells are for virtual time alone."""

Drawn = tuple[str, Cell]
"""A scenario's name, and one of its cells."""


@pytest.fixture
def etcd_of_its_own(tmp_path: Path) -> Iterator[str]:
    """It is full now and then."""
    process = EtcdProcess(tmp_path)
    process.start()
    yield process.endpoint
    process.kill()


@dataclass
class Lives:
    """Lives of the cells drawn, on one etcd."""

    endpoint: str
    folder: Path
    calls: dict[str, tuple[Call, ...]]
    """Calls of each scenario, without faults, in memory."""
    rare: Counter[str] = field(default_factory=Counter)
    wrong: list[tuple[Drawn, tuple[str, ...]]] = field(default_factory=list)
    left: list[Drawn] = field(default_factory=list)
    """Cells that have not been lived to their end."""
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    async def live(self, drawn: Sequence[Drawn]) -> None:
        """A full store is full for all: those lives come last, one after the other. Whatever is
        left when the limit is over ends there, and is in `left`."""
        self.left = list(drawn)
        with suppress(TimeoutError):
            async with asyncio.timeout(LIMIT_S * SPEED):
                await self._live(drawn)

    async def _live(self, drawn: Sequence[Drawn]) -> None:
        places = asyncio.Semaphore(AT_ONCE)
        alone = [one for one in drawn if one[1].mode in FULL]
        async with zygote() as servers:
            async with asyncio.TaskGroup() as tasks:
                for one in drawn:
                    if one not in alone:
                        tasks.create_task(self._one_of(servers, one, places))
            for one in alone:
                await self._one(servers, one)

    async def _one_of(self, servers: Zygote, drawn: Drawn, places: asyncio.Semaphore) -> None:
        async with places:
            await self._one(servers, drawn)

    async def _one(self, servers: Zygote, drawn: Drawn) -> None:
        """Here time passes while servers work: a call may come less often than in memory, or a
        cancellation before it. Then the fault comes at the first like it, and before that one.
        """
        scenario, cell = drawn
        fault = fault_at(self.calls[scenario], cell.at, cell.mode)
        for skipped, fault_first in ((fault["skipped"], False), (0, True)):
            number = next(self._numbers)
            folder = self.folder / str(number)
            folder.mkdir()
            place = Place(servers, self.endpoint, f"/life-{number}/", folder)
            fault["skipped"] = skipped
            try:
                async with world(place, scenario, cell, fault, fault_first=fault_first) as life:
                    found = await life.live()
            except Exception as error:
                error.add_note(f"{scenario}: {cell}")
                raise
            self.rare += found.sometimes
            if found.wrong:
                self.wrong.append((drawn, found.wrong))
            if found.happened or found.wrong:
                break
        else:
            self.wrong.append((drawn, (f"the fault never happened: {fault}",)))
        self.left.remove(drawn)


def draw(calls: dict[str, tuple[Call, ...]]) -> list[Drawn]:
    """Draws cells; those with a cancellation come first: they last longest, and others run beside
    them."""
    every = [
        (name, cell)
        for name, made in calls.items()
        for cell in cells(made)
        if made[cell.at].port != ASKED_OF_SLOW
    ]
    drawn = Random(SEED).sample(every, -int(-len(every) * PERCENT // 100))
    return sorted(drawn, key=lambda one: BY_NAME[one[0]].cancel_after_ms is None)


def test_given_a_process_killed_at_a_call_when_another_leads_then_a_legal_end_on_etcd(
    etcd_of_its_own: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Whose moment hangs on a lease is for virtual time: here a slow machine would miss it.
    timely = [one.name for one in SCENARIOS if not one.dead_holder]
    calls = {name: lived(name, None).calls for name in timely}
    drawn = draw(calls)
    lives = Lives(etcd_of_its_own, tmp_path, calls)

    with asyncio.Runner(loop_factory=FastLoop) as runner:
        runner.run(lives.live(drawn))

    with capsys.disabled():
        print(f"\n{len(drawn)} cells of {sum(len(list(cells(made))) for made in calls.values())},")
        print(f"seed {SEED}: {len(lives.wrong)} wrong; {dict(sorted(lives.rare.items()))}", end="")
    assert not lives.wrong, "\n".join(map(str, lives.wrong[:SHOWN_MAX]))
    assert lives.left[:SHOWN_MAX] == [], f"{len(lives.left)} are left after {LIMIT_S:.0f} s"
    if PERCENT < PERCENT_FOR_ALL:
        return
    assert lives.rare.keys() >= RARE
    assert {cell.mode for _, cell in drawn} == set(Mode) - {Mode.NODE_DIES}  # test_node_death
