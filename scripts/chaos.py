"""The long forms of tests/process: `make chaos CYCLES=3`, or `chaos.py NAME...` for some of them.

Each cycle runs each scenario on a cluster of its own, with the times that users have, and prints
what was counted. Exit 1 if a promise was broken; the folder of that cluster is kept.
"""

import argparse
import asyncio
import shutil
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from metasrv.host.toolchain import checkout
from metasrv_base.clock import SystemClock
from tests.process.harness import ddl_loop, members
from tests.process.harness.copies.copy_cuts import copies_cut
from tests.process.harness.copies.copy_disks import copies_on_bad_disks
from tests.process.harness.copies.copy_outages import copies_killed, stopped_leader_read
from tests.process.harness.failover_stages import LEADER_STAGES, SPARK, blow_at
from tests.process.harness.faults import FAULTS
from tests.process.harness.leader_kills import Plan, leader_kills
from tests.process.harness.node_outages import node_killed, node_stopped
from tests.process.harness.pauses import leader_stopped
from tests.process.harness.rig import running, table_spec

DEFAULTS: dict[str, str] = {}
"""No flags: the default times."""
KILLS, EVERY_S = 24, 5.0
QUICK_KILLS = 12
PAUSE_S = 30.0
QUICK_HOLD_MS = 3_000  # of a fault under three members; the quick leases last two seconds

Scenario = Callable[[Path], Awaitable[tuple[str, Sequence[str]]]]
"""Returns a summary of the run and the faults it found."""


async def leaders_killed(folder: Path) -> tuple[str, Sequence[str]]:
    report = await leader_kills(folder, Plan(KILLS, EVERY_S, DEFAULTS))
    return str(report), report.wrong


async def leaders_killed_quickly(folder: Path) -> tuple[str, Sequence[str]]:
    """With short leases: more terms, and more work in each."""
    report = await leader_kills(folder, Plan(QUICK_KILLS, EVERY_S))
    return str(report), report.wrong


async def failover_stages(folder: Path) -> tuple[str, Sequence[str]]:
    async with running(folder, metasrvs=2) as rig:
        async with rig.client() as db:
            await db.tables.create(table_spec("t", regions=1))
        blows = [await blow_at(rig, "t", stage) for stage in (*LEADER_STAGES, SPARK)]
        agreement = await rig.agreement()
    wrong = [text for blow in blows for text in blow.wrong]
    return "; ".join(map(str, blows)), [*wrong, *agreement.wrong]


async def node_is_killed(folder: Path) -> tuple[str, Sequence[str]]:
    seen = await node_killed(folder, DEFAULTS)
    return str(seen), seen.wrong


async def node_is_stopped(folder: Path) -> tuple[str, Sequence[str]]:
    seen = await node_stopped(folder, DEFAULTS, PAUSE_S)
    return str(seen), seen.wrong


async def leader_is_stopped(folder: Path) -> tuple[str, Sequence[str]]:
    seen = await leader_stopped(folder, DEFAULTS, PAUSE_S)
    return str(seen), seen.wrong


async def members_fail(folder: Path) -> tuple[str, Sequence[str]]:
    """Each fault once, with short leases: every process of three times three is hit in turn."""
    seen = await members.members_fail(folder, members.Plan(list(FAULTS), QUICK_HOLD_MS))
    return str(seen), seen.wrong


async def changes_under_load(folder: Path) -> tuple[str, Sequence[str]]:
    """Columns and indexes come and go, Spark fills; each process is killed, then stopped."""
    seen = await ddl_loop.changed_under_load(folder, ddl_loop.LONG)
    return str(seen), seen.wrong


async def copies_are_killed(folder: Path) -> tuple[str, Sequence[str]]:
    seen = await copies_killed(folder)
    return str(seen), seen.wrong


async def copies_are_stopped(folder: Path) -> tuple[str, Sequence[str]]:
    seen = await stopped_leader_read(folder)
    return str(seen), seen.wrong


async def copies_are_cut_off(folder: Path) -> tuple[str, Sequence[str]]:
    seen = await copies_cut(folder)
    return str(seen), seen.wrong


async def disks_of_copies_fail(folder: Path) -> tuple[str, Sequence[str]]:
    seen = await copies_on_bad_disks(folder)
    return str(seen), seen.wrong


SCENARIOS: dict[str, Scenario] = {
    "leaders-killed": leaders_killed,
    "leaders-killed-quickly": leaders_killed_quickly,
    "node-killed": node_is_killed,
    "node-stopped": node_is_stopped,
    "leader-stopped": leader_is_stopped,
    "failover-stages": failover_stages,
    "members-fail": members_fail,
    "changes-under-load": changes_under_load,
    "copies-killed": copies_are_killed,
    "copies-stopped": copies_are_stopped,
    "copies-cut-off": copies_are_cut_off,
    "copies-disks": disks_of_copies_fail,
}


async def cycle(names: Sequence[str], number: int, above: Path) -> int:
    """Runs the scenarios *names* once; returns the number of those that failed."""
    clock, broken = SystemClock(), 0
    for name in names:
        folder = Path(tempfile.mkdtemp(prefix=f"{number}-{name}-", dir=above))
        begun_ms = clock.mono_ms()
        told, wrong = await SCENARIOS[name](folder)
        took_s = (clock.mono_ms() - begun_ms) / 1000
        print(f"cycle {number}, {name}, {took_s:.0f} s: {told}", flush=True)
        if wrong:
            broken += 1
            print(*(f"WRONG: {text}" for text in wrong), f"kept: {folder}", sep="\n", flush=True)
        else:
            shutil.rmtree(folder)
    return broken


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="chaos", description=__doc__)
    parser.add_argument("--cycles", type=int, default=1)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SCENARIOS))
    asked = parser.parse_args(argv)
    if strange := sorted(set(asked.names) - set(SCENARIOS)):
        parser.error(f"no such scenario: {', '.join(strange)}")
    above = checkout() / ".run" / "chaos"
    above.mkdir(parents=True, exist_ok=True)
    broken = 0
    for number in range(1, asked.cycles + 1):
        broken += asyncio.run(cycle(asked.names or list(SCENARIOS), number, above))
    print(f"{broken} scenarios went wrong")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
