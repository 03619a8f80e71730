"""POST /v1/nodes/{node}/adopt: nodes of the old cluster, and the regions of restored tables."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from keys.commit.change import change, route_changed
from keys.commit.txn import snapshot
from keys.model.cluster import Cordon, NodeKey
from keys.model.log import TableAltered
from keys.model.tables import Index, RegionRoute, RegionState, TableInfoKey, TableRouteKey
from metasrv.leadership.supervisor import decide
from metasrv.restore.restored_procedures import BY
from metasrv_base.errors import Unavailable
from metasrv_base.wire.node.adoption import AdoptAnswer, AdoptRequest, FoundRoot, Inventory
from tests.metasrv.api.rig import CLUSTER, DEADLINE_MS, Server, leader, registration

OLD = "00000000-0000-7000-8000-00000000000a"


@dataclass
class FakeDisks:
    """Nodes of the old cluster, by address: what is on their disks, and what they were asked."""

    roots: dict[str, list[FoundRoot]] = field(default_factory=dict)
    dropped: dict[str, list[str]] = field(default_factory=dict)
    log_sequences: dict[str, int] = field(default_factory=dict)
    """The last record of the folders that have one."""
    adopted: list[tuple[str, AdoptRequest]] = field(default_factory=list)
    silent: set[str] = field(default_factory=set)
    named: dict[str, str] = field(default_factory=dict)
    """Nodes that are at the address of another one."""
    unheard: int = 0
    """Adoptions that are done from here on, and whose answers are lost."""
    unread: int = 0
    """Inventories that are asked for in vain from here on."""

    async def adopt(self, address: str, request: AdoptRequest) -> AdoptAnswer:
        self._must_answer(address)
        self.adopted.append((address, request))
        if self.unheard:
            self.unheard -= 1
            raise Unavailable(what=address)
        return AdoptAnswer(
            node_id=request.node_id,
            cluster_id=request.cluster_id,
            incarnation="i",
            root="/",
            dropped=0,
        )

    async def log_ends(self, address: str, region_id: int) -> Inventory:
        ends = self.log_sequences
        page = await self.inventory(address, region_id, region_id)
        told = [
            root.model_copy(update={"log_epoch": 1, "log_sequence": ends.get(root.root, 0)})
            for root in page.roots
        ]
        return page.model_copy(update={"roots": told})

    async def inventory(self, address: str, first: int, last: int) -> Inventory:
        self._must_answer(address)
        if self.unread:
            self.unread -= 1
            raise Unavailable(what=address)
        return Inventory(
            node_id=self.named.get(address, address.removeprefix("http://").split(":")[0]),
            cluster_id=CLUSTER,
            roots=[
                root for root in self.roots.get(address, ()) if first <= int(root.region_id) <= last
            ],
            dropped=self.dropped.get(address, []),
        )

    def _must_answer(self, address: str) -> None:
        if address in self.silent:
            raise Unavailable(what=address)


@dataclass
class Restored:
    one: Server
    disks: FakeDisks
    region: RegionRoute

    async def adopt(self, node: str, query: str = "", **request: Any) -> dict[str, Any]:
        answer = await self.one.client.post(f"/v1/nodes/{node}/adopt{query}", json=request)
        assert answer.status_code == 200, answer.text
        body: dict[str, Any] = answer.json()
        return body

    async def stored(self) -> RegionRoute:
        read = await snapshot(self.one.kv, self.key, deadline_ms=DEADLINE_MS)
        return read.must(self.key).region_routes[0]

    @property
    def key(self) -> TableRouteKey:
        return TableRouteKey(int(self.region.region_id) >> 32)


def root_of(region: RegionRoute, path: str, epoch: int, **more: Any) -> FoundRoot:
    root = FoundRoot(
        region_id=region.region_id,
        root=path,
        fence_epoch=epoch,
        fence_opening=1,
        opener=path,
        manifest_epoch=epoch,
        manifest_opening=1,
    )
    return root.model_copy(update=more)


@asynccontextmanager
async def restored() -> AsyncIterator[Restored]:
    """A table with one region on dn-1, and both nodes, as a restore leaves them."""
    async with leader() as one:
        await one.make()
        table = one.state.follower.catalog.table("main", "public", "t")
        key = TableRouteKey(table.info.table_id)
        read = await snapshot(one.kv, key, deadline_ms=DEADLINE_MS)
        (region,) = read.must(key).region_routes
        update = {"state": RegionState.LOST, "unverified": True, "leader": "dn-1"}
        lost = region.model_copy(update=update)
        await one.term.committer.commit(change(read, route_changed(read.must(key), (lost,))))
        cordon = Cordon(reason="restored", by=BY, at_ms=1)
        for node in ("dn-1", "dn-2"):
            await one.term.nodes._change(node, {"restored_from": OLD, "cordon": cordon})
        one.term.nodes.restored_from = OLD
        disks = FakeDisks()
        one.state.term = replace(one.term, adopter=disks)
        yield Restored(one, disks, lost)


async def test_given_nodes_when_all_are_adopted_then_the_region_opens_above_its_fence() -> None:
    async with restored() as at:
        at.disks.roots["http://dn-1:9000"] = [root_of(at.region, at.region.root, 4)]

        first = await at.adopt("dn-2")
        waiting = await at.stored()
        last = await at.adopt("dn-1")
        stored = await at.stored()
        node = (
            await snapshot(at.one.kv, NodeKey("datanode", "dn-1"), deadline_ms=DEADLINE_MS)
        ).must(NodeKey("datanode", "dn-1"))

        assert (first["awaited"], first["opened"]) == (["dn-1"], 0)
        assert waiting.unverified
        assert (last["awaited"], last["opened"], last["findings"]) == ([], 1, [])
        assert (stored.state, stored.epoch, stored.unverified) == (RegionState.OPEN, 5, False)
        assert (node.restored_from, node.cordon) == (None, None)
        assert [request.from_cluster_id for _, request in at.disks.adopted] == [OLD, OLD]
        assert {request.cluster_id for _, request in at.disks.adopted} == {CLUSTER}


async def test_given_a_region_that_moved_when_adopted_then_it_is_told_before_and_opens_there() -> (
    None
):
    async with restored() as at:
        newer = root_of(at.region, "/data/dn-2/regions/x-2", 2)
        old = {"fence_epoch": 2, "opener": newer.root}
        at.disks.roots["http://dn-1:9000"] = [root_of(at.region, at.region.root, 1, **old)]
        at.disks.roots["http://dn-2:9000"] = [newer]

        planned = await at.adopt("dn-1", "?dry_run=true")
        unchanged = await at.stored()
        await at.adopt("dn-1")
        done = await at.adopt("dn-2")
        stored = await at.stored()

        assert [finding["fate"] for finding in planned["findings"]] == ["moved"]
        assert unchanged == at.region
        assert [finding["fate"] for finding in done["findings"]] == ["moved"]
        assert (stored.leader, stored.root, stored.epoch) == ("dn-2", newer.root, 3)


async def test_given_copies_of_one_epoch_when_adopted_then_their_logs_say_which_one_leads() -> None:
    async with restored() as at:
        own, other = at.region.root, "/data/dn-2/regions/x-1"
        at.disks.roots["http://dn-1:9000"] = [root_of(at.region, own, 1)]
        at.disks.roots["http://dn-2:9000"] = [root_of(at.region, other, 1, manifest_opening=3)]
        at.disks.log_sequences = {own: 12, other: 9}

        planned = await at.adopt("dn-1", "?dry_run=true")
        await at.adopt("dn-1")
        done = await at.adopt("dn-2")
        stored = await at.stored()

        assert planned["findings"] == done["findings"] == []
        assert (stored.leader, stored.root, stored.epoch) == ("dn-1", own, 2)


async def test_given_a_region_that_was_dropped_or_is_missing_then_it_stays_lost_and_is_told() -> (
    None
):
    async with restored() as at:
        missing = await at.adopt("dn-1", without=["dn-2"])
        at.disks.roots["http://dn-1:9000"] = [root_of(at.region, at.region.root, 4)]
        at.disks.dropped["http://dn-1:9000"] = [at.region.region_id]
        dropped = await at.adopt("dn-1", without=["dn-2"])

        assert [finding["fate"] for finding in missing["findings"]] == ["missing"]
        assert [finding["fate"] for finding in dropped["findings"]] == ["dropped"]
        assert await at.stored() == at.region


async def test_given_a_disk_that_cannot_be_read_then_no_region_opens() -> None:
    async with restored() as at:
        at.disks.roots["http://dn-1:9000"] = [root_of(at.region, at.region.root, 4)]
        await at.adopt("dn-2")
        at.disks.named = {"http://dn-2:9000": "dn-7"}
        other = await at.one.client.post("/v1/nodes/dn-1/adopt", json={})
        at.disks.named = {}
        at.disks.silent = {"http://dn-2:9000"}

        refused = await at.one.client.post("/v1/nodes/dn-1/adopt", json={})

        assert (other.status_code, other.json()["code"]) == (409, "wrong-cluster")
        assert refused.status_code == 503
        assert (await at.stored()).unverified
        at.disks.silent = set()
        assert (await at.adopt("dn-1"))["opened"] == 1


async def test_given_a_folder_that_cannot_be_read_then_its_region_stays_lost_until_it_can() -> None:
    async with restored() as at:
        sound = root_of(at.region, at.region.root, 4)
        broken = FoundRoot(region_id=at.region.region_id, root=f"{at.region.root}-9", error="EIO")
        at.disks.roots["http://dn-1:9000"] = [sound, broken]

        first = await at.adopt("dn-1", without=["dn-2"])
        at.disks.roots["http://dn-1:9000"] = [sound]
        second = await at.adopt("dn-1", without=["dn-2"])

        assert [finding["fate"] for finding in first["findings"]] == ["unreadable"]
        assert (first["opened"], second["opened"]) == (0, 1)


async def test_given_files_that_name_later_elements_then_the_table_goes_on_above_them() -> None:
    async with restored() as at:
        later = {"column_max": 900, "index_max": 70, "schema_version": 5_000}
        at.disks.roots["http://dn-1:9000"] = [root_of(at.region, at.region.root, 4, **later)]
        await at.adopt("dn-2")
        await at.adopt("dn-1")

        key = TableInfoKey(at.key.table_id)
        info = (await snapshot(at.one.kv, key, deadline_ms=DEADLINE_MS)).must(key)

        assert (info.next_column_id, info.next_index_id) == (901, 71)
        assert info.schema_version == info.schema_floor == 5_001


async def test_given_files_without_an_index_then_the_table_goes_on_without_it() -> None:
    async with restored() as at:
        key = TableInfoKey(at.key.table_id)
        read = await snapshot(at.one.kv, key, deadline_ms=DEADLINE_MS)
        indexes = tuple(Index(id=id, name=f"i{id}", columns=(1,), unique=False) for id in (1, 2))
        table = read.must(key).model_copy(
            update={"indexes": indexes, "next_index_id": 3, "version": read.must(key).version + 1}
        )
        await at.one.term.committer.commit(change(read, TableAltered(info=table)))
        at.disks.roots["http://dn-1:9000"] = [root_of(at.region, at.region.root, 4, indexes=[2])]

        planned = await at.adopt("dn-1", "?dry_run=true")
        await at.adopt("dn-2")
        done = await at.adopt("dn-1")
        info = (await snapshot(at.one.kv, key, deadline_ms=DEADLINE_MS)).must(key)

        for answer in (planned, done):
            assert [each["fate"] for each in answer["findings"]] == ["index-dropped"]
            assert "i1 was dropped" in answer["findings"][0]["reason"]
        assert [index.id for index in info.indexes] == [2]
        assert info.next_index_id == 3
        assert info.schema_floor == info.schema_version == table.schema_version + 1


async def test_given_an_adoption_that_is_cut_off_when_repeated_then_it_goes_on() -> None:
    """First the node is adopted and the record not written; then that is, and no route."""
    async with restored() as at:
        at.disks.roots["http://dn-1:9000"] = [root_of(at.region, at.region.root, 4)]
        await at.adopt("dn-2")
        at.disks.unheard = 1
        first = await at.one.client.post("/v1/nodes/dn-1/adopt", json={})
        at.disks.unread = 1
        second = await at.one.client.post("/v1/nodes/dn-1/adopt", json={})
        between = await at.stored()
        third = await at.adopt("dn-1")
        fourth = await at.adopt("dn-1")
        stored = await at.stored()

        assert (first.status_code, second.status_code) == (503, 503)
        assert between.unverified
        assert (third["opened"], fourth["opened"]) == (1, 0)
        assert (stored.state, stored.epoch) == (RegionState.OPEN, 5)
        assert [request.node_id for _, request in at.disks.adopted] == ["dn-2", "dn-1", "dn-1"]


async def test_given_a_node_to_adopt_then_it_waits_and_is_neither_chosen_nor_failed_over() -> None:
    async with restored() as at:
        nodes = at.one.term.nodes
        for attempt in (registration("dn-1", cluster_id=OLD), registration("dn-9", cluster_id=OLD)):
            with pytest.raises(Unavailable, match="metasrv node adopt"):
                await nodes.register(attempt)
        at.one.clock.ahead_ms = 10_000_000

        decision = decide(nodes.statuses(), {"dn-1"}, (), None)
        manual = await at.one.client.post(
            "/v1/failovers",
            json={"region_ids": [at.region.region_id], "reason": "now", "force": True},
        )

        assert decision.start == ()
        assert not any(view.alive for view in nodes.nodes())
        assert manual.json()["code"] == "node-not-eligible"


async def test_given_a_cluster_that_was_not_restored_then_there_is_nothing_to_adopt() -> None:
    async with leader() as one:
        refused = await one.client.post("/v1/nodes/dn-1/adopt", json={})

        assert (refused.status_code, refused.json()["code"]) == (409, "action-not-allowed")


async def test_given_a_node_that_the_backup_does_not_have_then_its_address_is_needed() -> None:
    async with restored() as at:
        nowhere = await at.one.client.post("/v1/nodes/dn-9/adopt", json={})
        await at.adopt("dn-9", address="http://dn-9:9000")

        assert nowhere.status_code == 404
        assert at.disks.adopted[-1][0] == "http://dn-9:9000"
