"""Done when (e): a leader stopped beyond its lease with changes in flight, then woken."""

import asyncio
import signal
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

from tests.process.harness.probes import Seen, must
from tests.process.harness.rig import Rig, running, table_spec

TABLES = "/v1/catalogs/main/schemas/public/tables"
IN_FLIGHT = 12
# What a woken leader may say: done by it or its successor; accepted; never begun; not known.
HONEST = frozenset({201, 202, 408, 503, 504})


async def leader_stopped(
    folder: Path, flags: Mapping[str, str] | None = None, pause_s: float = 0.0
) -> Seen:
    """At least *pause_s*, and until another leads and has made a change."""
    async with (
        running(folder, metasrvs=3, flags=flags) as rig,
        rig.client() as db,
        asyncio.TaskGroup() as tasks,
    ):
        await db.tables.create(table_spec("t"))
        old = await rig.leader()
        others = [id for id in rig.servers if id != old]
        cluster = await rig.told(rig.url(old) + "/v1/cluster")
        asked = [tasks.create_task(_create(rig, old, number)) for number in range(IN_FLIGHT)]
        await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
        await rig.kill(old, signal.SIGSTOP)
        stopped_ms = rig.clock.mono_ms()
        read = [await _reads(rig, id, cluster["catalog_version"]) for id in others]
        await rig.leader(other_than=old)
        elected_ms = rig.clock.mono_ms() - stopped_ms
        async with rig.client(*(rig.url(id) for id in others)) as elsewhere:
            await elsewhere.tables.rename("t", "after")
            await elsewhere.tables.create(table_spec("more"))  # so every node hears the new term
        changed_ms = rig.clock.mono_ms() - stopped_ms
        await rig.clock.sleep_ms(max(0, int(pause_s * 1000 - changed_ms)))
        await rig.kill(old, signal.SIGCONT)
        woken_ms = rig.clock.mono_ms()
        refused = await _late_order(rig, cluster)
        await rig.until(lambda: _follows(rig, old))
        follows_ms = rig.clock.mono_ms() - woken_ms
        answers = await asyncio.gather(*asked)
        again = [await _settled(rig, others[0], number) for number in range(IN_FLIGHT)]
        await rig.converged()
        names = {table.name for table in await db.tables.list()}
        agreement = await rig.agreement()
        said = rig.log_of(old)
    numbers = {
        "elected_ms": elected_ms,
        "changed_ms": changed_ms,
        "follows_ms": follows_ms,
        "in flight": dict(Counter(answer.status_code for answer in answers)),
    }
    kept = must(
        followers_read_while_it_was_stopped=all(read),
        its_late_order_was_refused=refused.status_code in (409, 421),
        it_was_honest={answer.status_code for answer in answers} <= HONEST,
        all_is_there_once=names == {"after", "more", *map(_name, range(IN_FLIGHT))},
        it_said_that_it_leads_no_more="leadership_ended" in said,
    )
    return Seen(numbers, (*kept, *_contradictions(answers, again), *agreement.wrong))


def _name(number: int) -> str:
    return f"flight_{number}"


async def _create(rig: Rig, id: str, number: int) -> httpx.Response:
    """With the same key whoever is asked, and however often."""
    headers = {"idempotency-key": _name(number), "prefer": "wait=5"}
    spec = table_spec(_name(number), regions=1)
    return await rig.http.post(rig.url(id) + TABLES, json=spec, headers=headers, timeout=120)


async def _settled(rig: Rig, id: str, number: int) -> httpx.Response:
    """Asked again until the answer is neither "not yet" nor "not known"."""

    async def ask() -> httpx.Response | None:
        answer = await _create(rig, id, number)
        return answer if answer.status_code not in (202, 503, 504) else None

    answer: httpx.Response = await rig.until(ask)
    return answer


def _contradictions(
    answers: Sequence[httpx.Response], again: Sequence[httpx.Response]
) -> list[str]:
    """The same key again must end in the one outcome that was told or promised before."""
    wrong = []
    for number, (first, second) in enumerate(zip(answers, again, strict=True)):
        if second.status_code != 201:
            wrong.append(f"{_name(number)}: {second.status_code} in the end")
        elif first.status_code == 201 and first.json()["id"] != second.json()["id"]:
            wrong.append(f"{_name(number)}: made twice")
    return wrong


async def _reads(rig: Rig, id: str, version: int) -> bool:
    found = await rig.told(f"{rig.url(id)}{TABLES}/t", min_version=str(version))
    return bool(found["name"] == "t")


async def _follows(rig: Rig, id: str) -> bool:
    document = await rig.ask(rig.url(id) + "/v1/cluster")
    return bool(document and document["leader"] and document["leader"]["id"] != id)


async def _late_order(rig: Rig, cluster: Mapping[str, Any]) -> httpx.Response:
    """Sends the request that the deposed leader had been about to send."""
    node, url = next(iter(rig.playground.datanode_urls.items()))
    drop = {"op": "drop", "number": 1 << 40, "region_id": "1", "epoch": 1, "root": "/nowhere"}
    request = {
        "cluster_id": cluster["cluster_id"],
        "node_id": node,
        "term": cluster["leader"]["term"],
        "orders": [drop],
    }
    return await rig.http.post(url + "/node/v1/orders", json=request)
