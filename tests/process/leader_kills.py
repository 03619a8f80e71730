"""Done when (c): clients change the catalog while its leader is killed again and again."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.process.ddl_clients import Client, run_all
from tests.process.rig import Rig, running
from tests.process.verdict import judged

CLIENTS = 6
CONVERGE_S = 120.0
LIMITS = httpx.Limits(max_connections=64, keepalive_expiry=1.0)


@dataclass(frozen=True, slots=True)
class Plan:
    seconds: int
    every_s: float
    flags: Mapping[str, str] | None = None
    """Of the metasrvs; None: the quick ones."""
    datanodes: int = 2


@dataclass(slots=True)
class Report:
    """What was seen. `wrong` must be empty."""

    wrong: list[str]
    kills: int
    terms: int
    wishes: int
    told: Counter[str]
    statuses: Counter[str]
    versions: int
    procedures: int
    resumed: int
    """Procedures that a later leader took up."""
    converged_s: float

    def __str__(self) -> str:
        return (
            f"{self.kills} kills, {self.terms} terms: {self.wishes} changes asked for "
            f"{dict(self.told)}; answers {dict(self.statuses)}; {self.versions} catalog versions, "
            f"{self.procedures} procedures, {self.resumed} resumed; converged after "
            f"{self.converged_s:.1f} s; {len(self.wrong)} wrong"
        )


async def leader_kills(folder: Path, plan: Plan) -> Report:
    async with (
        running(folder, metasrvs=3, datanodes=plan.datanodes, flags=plan.flags) as rig,
        httpx.AsyncClient(trust_env=False, limits=LIMITS) as http,
    ):
        await rig.leader()
        until_ms = rig.clock.mono_ms() + plan.seconds * 1000
        work = run_all(rig.urls, count=CLIENTS, until_ms=until_ms, http=http)
        clients, kills = await asyncio.gather(work, _kill_leaders(rig, until_ms, plan.every_s))
        before = rig.clock.mono_ms()
        await rig.converged(CONVERGE_S)
        return await _report(rig, clients, kills, (rig.clock.mono_ms() - before) / 1000)


async def _kill_leaders(rig: Rig, until_ms: int, every_s: float) -> int:
    """SIGKILL to whoever sits in the seat; it is started again at once."""
    kills, restarts = 0, list[asyncio.Task[None]]()
    async with asyncio.TaskGroup() as tasks:
        while rig.clock.mono_ms() + every_s * 1000 < until_ms:
            await rig.clock.sleep_ms(int(every_s * 1000))
            leader = await rig.leader_of_etcd()
            if leader is None or rig.playground.children[leader].returncode is not None:
                continue
            await rig.kill(leader)
            kills += 1
            restarts.append(tasks.create_task(rig.restart(leader)))
    return kills


async def _report(rig: Rig, clients: list[Client], kills: int, converged_s: float) -> Report:
    verdict = await judged(rig, clients)
    wishes = [wish for client in clients for wish in client.wishes]
    return Report(
        wrong=verdict.wrong,
        kills=kills,
        terms=await _terms(rig),
        wishes=len(wishes),
        told=Counter(wish.told for wish in wishes),
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
