"""A change on its way is no fault; what cannot be read is reported; nothing is modified."""

import shutil
from pathlib import Path

import pytest

from dataplane.region.check.inspect import inspect_root
from dataplane.region.disk.local_disk import LocalDisk
from dataplane.region.disk.read_only import ReadOnlyDisk
from keys.model.cluster import NodeKey, NodeRecord
from keys.model.records import Lock, LockMode, ProcedureKey
from keys.store.memory import MemoryKv
from metasrv.check.check_input import NodeReport
from metasrv.check.collect import check, collect, inspect_request, regions_by_node
from metasrv_base.errors import Unavailable
from tests.fakes.clock import FakeClock
from tests.keys.model.samples import CHILD
from tests.metasrv.check.cluster import CLUSTER_ID, FLIGHTS, Cluster
from tests.metasrv.check.conftest import tables


class CatchingUp(Cluster):
    """Its node dn-1 has what it should have from the second question on."""

    async def report(self, node: NodeRecord) -> NodeReport:
        said = await super().report(node)
        if self.clock.mono_ms() > self.asked_at_ms or node.node_id != "dn-1":
            return said
        return said.model_copy(update={"regions": ()})

    asked_at_ms = 0


async def test_given_a_node_on_its_way_when_looked_at_twice_then_it_is_not_blamed(
    cluster: Cluster,
) -> None:
    late = CatchingUp(cluster.kv, cluster.folder, cluster.clock, reports=cluster.reports)
    late.asked_at_ms = cluster.clock.mono_ms()

    checked = await check(late.kv, late, late.clock)

    assert checked.violations == ()
    assert late.looks == 4, "two nodes, twice"


async def test_given_a_living_procedure_on_a_table_when_its_node_is_behind_then_nobody_is_blamed(
    cluster: Cluster,
) -> None:
    held = Lock(key=f"route:{FLIGHTS}", mode=LockMode.SHARED)
    await cluster.edit(ProcedureKey(CHILD), locks=(held,))
    cluster.reports["dn-1"] = NodeReport(node_id="dn-1", cluster_id=CLUSTER_ID, regions=())
    region = await cluster.route_of(FLIGHTS, 0)
    shutil.rmtree(region.root)

    checked = await check(cluster.kv, cluster, cluster.clock)

    assert checked.violations == ()


async def test_given_a_procedure_of_a_newer_format_when_its_node_is_behind_then_nobody_is_blamed(
    cluster: Cluster,
) -> None:
    key = ProcedureKey(CHILD)
    newer = b'{"format":9,"locks":[{"key":"route:%d","mode":"new"}]}' % FLIGHTS
    await cluster.put_raw(bytes(key), newer)
    cluster.reports["dn-1"] = NodeReport(node_id="dn-1", cluster_id=CLUSTER_ID, regions=())

    checked = await check(cluster.kv, cluster, cluster.clock)

    assert [(one.rule, one.subject) for one in checked.violations] == [("value-newer", str(key))]


async def test_given_an_empty_prefix_when_checked_then_there_is_nothing_to_look_at(
    tmp_path: Path,
) -> None:
    clock = FakeClock()
    nothing = Cluster(MemoryKv(clock), tmp_path, clock)

    with pytest.raises(Unavailable):
        await check(nothing.kv, nothing, clock)


async def test_given_a_node_on_another_host_when_checked_then_only_that_is_said(
    cluster: Cluster,
) -> None:
    cluster.blind = {"dn-2"}

    checked = await check(cluster.kv, cluster, cluster.clock)

    assert [(one.rule, one.subject) for one in checked.violations] == [("unseen", "files of dn-2")]


async def test_given_two_independent_faults_when_checked_then_both_are_named(
    cluster: Cluster,
) -> None:
    await cluster.put_raw(b"__surprise/1", b"{}")
    await cluster.edit(NodeKey("datanode", "dn-2"), root=cluster.root("dn-1"))

    checked = await check(cluster.kv, cluster, cluster.clock)

    assert {one.rule for one in checked.violations} == {"key-family", "node-root"}


async def test_given_regions_when_inspected_then_no_file_is_made_or_changed(
    cluster: Cluster,
) -> None:
    before = _everything_in(cluster.folder)

    await collect(cluster.kv, cluster, deep=True)

    assert _everything_in(cluster.folder) == before


def test_given_an_inspectors_disk_when_it_would_write_then_that_is_a_bug(tmp_path: Path) -> None:
    disk, path = ReadOnlyDisk(LocalDisk()), str(tmp_path / "x")

    for change in (disk.create, disk.remove, disk.make_folder, disk.remove_tree):
        with pytest.raises(AssertionError):
            change(path)
    assert _everything_in(tmp_path) == {}


class Publishing(LocalDisk):
    """A leader writes and flushes while its region is read, once."""

    def __init__(self, cluster: Cluster, region: str) -> None:
        self.cluster, self.region, self.is_due = cluster, region, True

    def size(self, path: str) -> int:
        if self.is_due:
            self.is_due = False
            self.cluster.write(tables()[0], range(300, 330), "meanwhile")
            self.cluster.regions[self.region].maintenance.flush()
        return super().size(path)


async def test_given_a_leader_that_publishes_meanwhile_when_inspected_then_it_looks_again(
    cluster: Cluster,
) -> None:
    facts = await collect(cluster.kv, cluster, deep=True)
    regions = regions_by_node(facts)["dn-1"]
    request = inspect_request(facts, regions, deep=True)
    (region,) = (one for one in request.regions if one.region_id == str(FLIGHTS << 32))

    said = inspect_root(Publishing(cluster, region.region_id), region, deep=True)

    served = cluster.regions[region.region_id].reader.digest()
    assert said.error is None
    assert all(file.found is not None and file.error is None for file in said.files)
    assert all(segment.error is None for segment in said.segments)
    assert said.live is not None
    assert (said.live.rows, said.live.checksum) == (served.rows, served.hex)


def _everything_in(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path): (path.stat().st_mtime_ns, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }
