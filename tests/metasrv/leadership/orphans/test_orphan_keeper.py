"""The loop that has orphans removed: what it chooses, and when it leaves a node alone."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from keys.model.cluster import Removal, Returned
from metasrv.leadership.orphans.orphan_keeper import EVERY_MS, NODES_MAX, OrphanKeeper
from metasrv.settings.tunables import DEFAULTS
from metasrv_base.errors import Unavailable
from metasrv_base.wire.node.adoption import Inventory, QuarantinedRoot
from procedures.kinds.orphans.remove_orphans import FOLDERS_MAX, REMOVE_ORPHANS, RemoveOrphans
from tests.metasrv.api.listed_disk import ListedDisk, root_of, with_disk
from tests.metasrv.api.rig import Server, beat, leader

GRACE_MS, RETENTION_MS = 20_000, DEFAULTS.orphan_retention_ms
FIRST = 4096 << 32


@dataclass
class Office:
    """A leader, the disk of dn-1, and what the loop has submitted."""

    server: Server
    disk: ListedDisk
    keeper: OrphanKeeper
    submitted: list[RemoveOrphans] = field(default_factory=list)
    asked: int = 0
    beats: int = 1

    async def looked(self, ms: int = EVERY_MS) -> list[RemoveOrphans]:
        """Returns what a look submits, when so much time has passed."""
        self.passes(ms)
        before = len(self.submitted)
        await self.keeper.look()
        return self.submitted[before:]

    def passes(self, ms: int) -> None:
        """The node is heard all the time."""
        for _ in range(0, ms, 2_000):
            self.server.clock.ahead_ms += 2_000
            self.beats += 1
            self.server.term.nodes.heartbeat(beat("dn-1", self.beats))

    def orphan(self, number: int, epoch: int = 1) -> Any:
        return root_of(self.server, f"{FIRST + number}-{epoch}")

    def held(self, number: int, since_ms: int = 0) -> QuarantinedRoot:
        at_ms = self.server.clock.wall_ms() - since_ms
        return QuarantinedRoot(folder=self.orphan(number), path="/q", at_ms=at_ms, bytes=100)


@asynccontextmanager
async def office(
    monkeypatch: pytest.MonkeyPatch, *, has_table: bool = False
) -> AsyncIterator[Office]:
    async with leader(nodes=1) as server:
        if has_table:
            await server.make()
        answer = await server.client.put("/v1/settings/orphan_grace_ms", json={"value": GRACE_MS})
        assert answer.status_code == 200, answer.text
        disk = with_disk(server)
        disk.quarantined = []
        keeper = OrphanKeeper(server.term, server.clock, server.state.ids)
        one = Office(server, disk, keeper)

        async def submit(kind: Any, state: RemoveOrphans, request: object) -> None:
            assert kind is REMOVE_ORPHANS
            one.submitted.append(state)

        async def listed() -> None:
            one.asked += 1

        disk.listed = listed
        monkeypatch.setattr(server.term.manager, "submit", submit)
        one.passes(60_000)
        yield one


def regions(state: RemoveOrphans) -> list[int]:
    return [int(folder.region_id) - FIRST for folder in state.folders]


async def test_given_orphans_when_looked_at_then_each_region_once_and_no_more_than_a_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with office(monkeypatch) as one:
        one.disk.roots = [one.orphan(number // 2, number) for number in range(4 * FOLDERS_MAX)]

        (state,) = await one.looked()

        assert (state.node, state.deletes, state.grace_ms) == ("dn-1", False, GRACE_MS)
        assert regions(state) == [*range(FOLDERS_MAX)]
        assert {folder.at_ms for folder in state.folders} == {None}


async def test_given_folders_in_quarantine_when_the_retention_is_over_then_deleted_before_others_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with office(monkeypatch) as one:
        old, young = one.held(1, RETENTION_MS), one.held(2, RETENTION_MS - EVERY_MS - 60_000)
        one.disk.roots, one.disk.quarantined = [one.orphan(3)], [old, young]

        (first,) = await one.looked()
        (second,) = await one.looked()

        assert (first.deletes, regions(first), first.grace_ms) == (True, [1], RETENTION_MS)
        assert [folder.at_ms for folder in first.folders] == [old.at_ms]
        assert (second.deletes, regions(second)) == (True, [2, 1]), "the first is there still"
        quarantined = one.server.term.quarantined
        assert (quarantined.folders, quarantined.size_bytes) == (2, 200)


async def test_given_folders_that_do_not_go_when_looked_at_then_all_others_come_before_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The node refuses to delete one of them, and nothing is done to the others for long."""
    async with office(monkeypatch) as one:
        one.disk.quarantined = [one.held(1, RETENTION_MS)]
        one.disk.roots = [one.orphan(number) for number in range(2, 2 + 2 * FOLDERS_MAX)]

        looks = [await one.looked() for _ in range(5)]

        chosen = [(state.deletes, regions(state)) for (state,) in looks]
        first, second = [*range(2, 18)], [*range(18, 34)]
        assert chosen == [(True, [1]), (False, first), (False, second), (True, [1]), (False, first)]


async def test_given_a_folder_that_went_and_came_again_when_looked_at_then_it_is_as_new(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with office(monkeypatch) as one:
        one.disk.roots = [one.orphan(1)]
        await one.looked()
        one.disk.roots = []
        await one.looked()
        one.disk.roots = [one.orphan(number) for number in range(1, 2 + FOLDERS_MAX)]

        (state,) = await one.looked()

        assert regions(state) == [*range(1, 1 + FOLDERS_MAX)]


async def test_given_folders_without_a_proof_when_looked_at_then_none_is_chosen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with office(monkeypatch, has_table=True) as one:
        table = one.server.state.follower.catalog.table("main", "public", "t")
        (region,) = table.route.region_routes
        named = root_of(one.server, f"{region.region_id}-1").model_copy(
            update={"root": region.root}
        )
        held = one.held(1, RETENTION_MS).model_copy(update={"folder": named})
        one.disk.roots, one.disk.quarantined = [named], [held]

        assert await one.looked() == []
        assert one.asked == 1


async def test_given_pages_when_looked_at_then_one_at_a_tick_and_all_of_them_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with office(monkeypatch) as one:
        one.disk.quarantined, one.disk.following = [one.held(1)], str(FIRST + 7)

        await one.looked()
        assert (one.asked, one.disk.first) == (1, 0)
        assert one.server.term.quarantined.folders == 0
        one.disk.following = None
        await one.looked(2_000)

        assert (one.asked, one.disk.first) == (2, FIRST + 7)
        assert one.server.term.quarantined.folders == 2
        await one.looked(2_000)
        assert one.asked == 2


async def test_given_a_procedure_of_the_node_when_looked_at_then_no_second_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with office(monkeypatch) as one:
        one.disk.roots = [one.orphan(1)]
        monkeypatch.setattr(
            "metasrv.leadership.orphans.orphan_keeper._removing", lambda term: ["dn-1"]
        )

        assert await one.looked() == []
        assert one.asked == 0


async def test_given_a_node_that_came_back_when_looked_at_then_it_is_left_alone_for_the_grace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with office(monkeypatch) as one:
        one.disk.roots = [one.orphan(1)]
        await one.server.client.put("/v1/settings/orphan_grace_ms", json={"value": 60_000})
        one.server.clock.ahead_ms += 10 * EVERY_MS

        assert await one.looked(2_000) == []
        assert await one.looked(20_000) == []
        assert one.asked == 0
        (state,) = await one.looked(EVERY_MS)
        assert regions(state) == [1]


async def test_given_what_an_operator_has_said_when_looked_at_then_nothing_is_chosen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Maintenance, the setting, a node that was removed and is not released, one of a backup."""
    async with office(monkeypatch) as one:
        one.disk.roots = [one.orphan(1)]
        client, book = one.server.client, one.server.term.nodes
        entry = book.entry("dn-1")
        removal = Removal(at_ms=1, by="anna", reason="test")
        node = entry.node

        await client.put("/v1/cluster/maintenance", json={"enabled": True, "reason": "racks"})
        assert await one.looked() == []
        await client.put("/v1/cluster/maintenance", json={"enabled": False})
        await client.put("/v1/settings/removes_orphans", json={"value": False})
        assert await one.looked() == []
        await client.put("/v1/settings/removes_orphans", json={"value": True})
        for update in ({"returned": Returned(removal=removal)}, {"restored_from": "old"}):
            entry.node = node.model_copy(update=update)
            assert await one.looked() == []
        entry.node = node

        assert one.asked == 0
        assert len(await one.looked()) == 1


async def test_given_a_leader_that_has_just_begun_when_looked_at_then_nothing_is_chosen() -> None:
    async with leader(nodes=1) as server:
        disk = with_disk(server)
        disk.quarantined = []
        asked: list[int] = []

        async def listed() -> None:
            asked.append(1)

        disk.listed = listed
        await OrphanKeeper(server.term, server.clock, server.state.ids).look()

        assert asked == []


async def test_given_a_node_that_is_silent_or_knows_of_no_quarantine_when_asked_then_next_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with office(monkeypatch) as one:
        one.disk.roots, one.disk.quarantined = [one.orphan(1)], None
        assert await one.looked() == []
        one.disk.quarantined, one.disk.is_silent = [], True
        assert await one.looked() == []
        one.disk.is_silent = False

        assert len(await one.looked()) == 1


async def test_given_many_nodes_when_looked_at_then_few_at_a_tick_and_all_in_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nodes = [f"dn-{number}" for number in range(1, 2 * NODES_MAX + 1)]
    asked: list[str] = []

    class Asked(ListedDisk):
        async def inventory(self, address: str, first: int, last: int) -> Inventory:
            asked.append(address)
            raise Unavailable(what=address)

    async with leader(nodes=len(nodes)) as server:
        await server.client.put("/v1/settings/orphan_grace_ms", json={"value": GRACE_MS})
        with_disk(server, Asked())
        keeper = OrphanKeeper(server.term, server.clock, server.state.ids)
        for number in range(2, 32):
            server.clock.ahead_ms += 2_000
            for node in nodes:
                server.term.nodes.heartbeat(beat(node, number))

        await keeper.look()
        assert len(asked) == NODES_MAX
        await keeper.look()

        assert sorted(asked) == [f"http://{node}:9000" for node in nodes]
