"""Done when (c): clients change the catalog while its leader is killed again and again.

Kills are counted, not timed: a slow machine makes them come later, and not fewer.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx

from tests.process.harness.ddl_clients import Client, clients_of
from tests.process.harness.rig import Rig, running
from tests.process.harness.verdict import judged

CLIENTS = 6
OK_BETWEEN = 4  # changes that are made before each kill and after the last
CONVERGE_S = 120.0
FOR_EVER_MS = 1 << 50
LIMITS = httpx.Limits(max_connections=64, keepalive_expiry=1.0)


@dataclass(frozen=True, slots=True)
class Plan:
    kills: int
    every_s: float
    """At least so long after the last one."""
    flags: Mapping[str, str] | None = None
    """Flags of the metasrvs; None: the quick ones."""
    datanodes: int = 2


@dataclass(slots=True)
class Report:
    """The results of a run. `wrong` must be empty."""

    wrong: list[str]
    kills: int
    terms: int
    attempts: int
    told: Counter[str]
    statuses: Counter[str]
    versions: int
    procedures: int
    resumed: int
    """Procedures that a later leader took up."""
    converged_s: float

    def __str__(self) -> str:
        return (
            f"{self.kills} kills, {self.terms} terms: {self.attempts} changes asked for "
            f"{dict(self.told)}; answers {dict(self.statuses)}; {self.versions} catalog versions, "
            f"{self.procedures} procedures, {self.resumed} resumed; converged after "
            f"{self.converged_s:.1f} s; {len(self.wrong)} wrong"
        )


async def leader_kills(folder: Path, plan: Plan) -> Report:
    async with (
        running(folder, metasrvs=3, datanodes=plan.datanodes, flags=plan.flags) as rig,
        httpx.AsyncClient(trust_env=False, limits=LIMITS, timeout=60) as http,
    ):
        await rig.leader()
        clients = clients_of(rig.urls, count=CLIENTS, until_ms=FOR_EVER_MS, http=http)
        async with asyncio.TaskGroup() as tasks:
            for client in clients:
                tasks.create_task(client.run())
            await _kill_leaders(rig, clients, plan)
            for client in clients:
                client.until_ms = 0
        before = rig.clock.mono_ms()
        await rig.converged(CONVERGE_S)
        return await _report(rig, clients, plan.kills, (rig.clock.mono_ms() - before) / 1000)


async def _kill_leaders(rig: Rig, clients: Sequence[Client], plan: Plan) -> None:
    """SIGKILL to whoever sits in the seat; it is started again at once."""
    async with asyncio.TaskGroup() as tasks:
        for _ in range(plan.kills):
            await rig.clock.sleep_ms(int(plan.every_s * 1000))
            await _changes_are_made(rig, clients)
            leader = await rig.until(partial(_living_leader, rig))
            await rig.kill(leader)
            tasks.create_task(rig.restart(leader))
        await _changes_are_made(rig, clients)


async def _changes_are_made(rig: Rig, clients: Sequence[Client]) -> None:
    before = _told(clients)["ok"]

    async def some_more() -> bool:
        return _told(clients)["ok"] >= before + OK_BETWEEN

    await rig.until(some_more)


async def _living_leader(rig: Rig) -> str | None:
    leader = await rig.leader_of_etcd()
    if leader is None or rig.playground.children[leader].returncode is not None:
        return None
    return leader


def _told(clients: Sequence[Client]) -> Counter[str]:
    return Counter(attempt.told for client in clients for attempt in client.attempts)


async def _report(rig: Rig, clients: Sequence[Client], kills: int, converged_s: float) -> Report:
    verdict = await judged(rig, clients)
    return Report(
        wrong=verdict.wrong,
        kills=kills,
        terms=await _terms(rig),
        attempts=sum(len(client.attempts) for client in clients),
        told=_told(clients),
        statuses=sum((client.statuses for client in clients), Counter()),
        versions=verdict.versions,
        procedures=verdict.procedures,
        resumed=verdict.resumed,
        converged_s=converged_s,
    )


async def _terms(rig: Rig) -> int:
    return sum(
        event.key == b"__election/leader" and event.value is not None
        for watched in await rig.history()
        for event in watched.events
    )
