"""A learner of a region that has flushed fetches its leader's files, joins, and may lead; files of
jobs in regions with copies need no leader's disk."""

import posixpath
import signal
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pyarrow as pa
import pytest

from dataplane.region.disk.local_disk import LocalDisk
from dataplane.region.files.file_writer import FileTarget, write_rows
from dataplane.region.format.columns import PUT, ColumnDef, file_schema
from dataplane.region.format.families import ENTRY_COLUMNS, ROWS
from dataplane.region.manifests.adoption import data_file
from metasrv_base.wire.node.batches import Rows
from metasrv_base.wire.node.copy_sessions import FetchBody, FetchingRegion
from metasrv_base.wire.node.orders import DataFile, IngestFiles, OrderResult
from tests.dataplane.datanode.conftest import StartNode, heard
from tests.dataplane.datanode.process.copied import CopiedRegion, lost, started, until
from tests.node_conformance.node import Node, Write

pytestmark = pytest.mark.process

FLUSHED = 4_000
"""Rows of a flush; some 100 KB."""
SLOW = {"fetch_bytes_per_s": "150000"}
LOOKS_MAX = 50_000
INDEX, MARK, ATTEMPT = 7, "p", "attempts/p-1"
ROW_COLUMNS = (
    ColumnDef(id=1, type="int64", nullable=False),
    ColumnDef(id=2, type="string", nullable=True),
)


class FlushedRegion(CopiedRegion):
    """A region whose leader has written its rows to files."""

    numbers: int = 0

    def fill(self, files: int) -> None:
        """Flushes so many files, beside a row that stays in the log."""
        for _ in range(files):
            first = self.numbers
            writes = [
                Write(b"%016x" % (n * 0x9E3779B97F4A7C15 % (1 << 64)), n)
                for n in range(first, first + FLUSHED)
            ]
            answer = self.leader.post_batch(self.region, writes, f"f{first}", epoch=self.epoch)
            assert answer.status_code == 200, answer.text
            flushed = self.leader.http.post(
                f"{self.leader.url}/node/v1/regions/{self.region}/flush"
            )
            assert flushed.status_code == 200, flushed.text
            self.numbers += FLUSHED

    @property
    def row_count(self) -> int:
        answers: list[int] = []

        def is_read() -> bool:
            answer = self.leader.post(self.region, "checksum", epoch=self.epoch)
            assert answer.status_code in (200, 503), answer.text
            answers.extend([answer.json()["rows"]] if answer.status_code == 200 else [])
            return answer.status_code == 200

        until(self.leader, is_read)
        return int(answers[-1])

    def add_learner(self, name: str) -> None:
        self.roles[name] = "learner"
        self.version += 1
        self.take(name, self.create_order(name))
        self.tell(*(each for each, role in self.roles.items() if role == "leader"))


def has_joined(region: CopiedRegion, name: str) -> bool:
    """Whether the leader has asked that it joins the set. metasrv is told so."""
    asked = [
        change for request in region.leader.metasrv.changes_asked for change in request.changes
    ]
    return any((change.change, change.node) == ("join", name) for change in asked)


def fetch_of(node: Node, region: int) -> FetchBody | None:
    """As metasrv reads it."""
    answer = node.http.get(f"{node.url}/node/v1/regions/{region}")
    assert answer.status_code == 200, answer.text
    return FetchingRegion.model_validate_json(answer.content).fetch


def until_it_fetches(node: Node, region: int) -> None:
    """Asks again at once: a fetch may be over within a few heartbeats."""
    for _ in range(LOOKS_MAX):
        if (fetch := fetch_of(node, region)) is not None and fetch.bytes > 0:
            return
    raise AssertionError("the node fetched nothing, or was not seen to")


def flushed_region(
    start_node: StartNode, names: Sequence[str] = ("dn-1", "dn-2"), **flags: str
) -> tuple[dict[str, Any], FlushedRegion]:
    processes, nodes = started(lambda name: start_node(name, **flags), names)
    region = FlushedRegion(nodes, {names[0]: "leader"})
    region.create()
    nodes[names[0]].metasrv.told.changes_copies = True
    return processes, region


def test_given_a_learner_of_a_flushed_region_when_the_leaders_disk_is_lost_then_every_row_is_there(
    start_node: StartNode,
) -> None:
    processes, region = flushed_region(start_node)
    region.fill(3)
    region.write(1)
    region.add_learner("dn-2")

    until(region.leader, lambda: has_joined(region, "dn-2"))
    region.write(2)

    region.change(dn_2="in-sync")
    lost(region, processes["dn-1"])
    region.promote("dn-2")
    assert region.row_count == 3 * FLUSHED + 2
    region.write(3)
    assert region.row_count == 3 * FLUSHED + 3


def test_given_a_node_that_is_killed_while_it_fetches_then_it_goes_on_with_the_files_it_lacks(
    start_node: StartNode,
) -> None:
    processes, region = flushed_region(start_node, **SLOW)
    region.fill(8)
    region.add_learner("dn-2")
    node = region.nodes["dn-2"]
    until_it_fetches(node, region.region)
    progress = fetch_of(node, region.region)
    assert progress is None or 0 < progress.bytes <= progress.bytes_total

    processes["dn-2"].kill()
    processes["dn-2"].start()
    node.url = processes["dn-2"].url
    heard(node.metasrv, processes["dn-2"])
    region.version += 1
    region.tell("dn-1", "dn-2")
    region.write(1)

    until(region.leader, lambda: has_joined(region, "dn-2"))
    region.change(dn_2="in-sync")
    lost(region, processes["dn-1"])
    region.promote("dn-2")
    assert region.row_count == 8 * FLUSHED + 1


def test_given_a_leader_that_is_killed_while_it_is_fetched_from_then_the_copy_goes_on_at_the_next(
    start_node: StartNode,
) -> None:
    processes, region = flushed_region(start_node, **SLOW)
    region.fill(8)
    region.add_learner("dn-2")
    node = region.nodes["dn-2"]
    until_it_fetches(node, region.region)

    processes["dn-1"].kill()
    processes["dn-1"].start()
    region.nodes["dn-1"].url = processes["dn-1"].url
    heard(node.metasrv, processes["dn-1"])
    region.epoch, region.version = 2, region.version + 1
    region.tell("dn-1", "dn-2")
    region.write(1)
    region.fill(1)

    until(region.leader, lambda: has_joined(region, "dn-2"))
    region.write(2)
    region.change(dn_2="in-sync")
    lost(region, processes["dn-1"])
    region.promote("dn-2")
    assert region.row_count == 9 * FLUSHED + 2


# -- files of jobs


class IngestingRegion(CopiedRegion):
    """A region whose leader is ordered to take files that this process writes on its disk."""

    def marked(self, *, reserves: bool = False, indexes: tuple[int, ...] = ()) -> int:
        """Opens the mark of a job. Returns its version."""
        self.schema_version += 1
        order = self.leader.schema_order(self.region, self.schema_version, epoch=self.epoch)
        changes = {"mark": MARK, "reserves_version": reserves, "indexes": list(indexes)}
        (result,) = self.leader.order(order.model_copy(update=changes)).results
        assert result.error is None, result.error
        assert result.floor_version is not None
        return result.floor_version

    def entries(self, pairs: Mapping[bytes, bytes], version: int) -> DataFile:
        """A job's file with an entry for each row."""
        keys = sorted(pairs)
        columns = [keys, [version] * len(keys), [PUT] * len(keys), [pairs[key] for key in keys]]
        return self._file(columns, ENTRY_COLUMNS, INDEX)

    def brought(self, numbers: range, version: int) -> DataFile:
        """A job's file with rows from elsewhere."""
        keys = sorted(f"k{number}".encode() for number in numbers)
        values = [int(key[1:]) for key in keys]
        columns = [
            *(keys, [version] * len(keys), [PUT] * len(keys)),
            *(values, [f"v{value}" for value in values]),
        ]
        return self._file(columns, ROW_COLUMNS, ROWS)

    def _file(self, columns: list[object], of: tuple[ColumnDef, ...], family: int) -> DataFile:
        disk, root = LocalDisk(), self.leader.root_of(self.region)
        disk.make_folder(posixpath.join(root, ATTEMPT))
        schema = file_schema(of)
        arrays = [pa.array(c, field.type) for c, field in zip(columns, schema, strict=True)]
        target = FileTarget(disk, root, f"{ATTEMPT}/{family}.parquet", of, family)
        return data_file(write_rows(target, [pa.table(arrays, schema=schema)]))

    def ingest_order(self, *files: DataFile) -> IngestFiles:
        return IngestFiles(
            number=self.leader.next_number(),
            region_id=str(self.region),
            epoch=self.epoch,
            procedure=MARK,
            attempt=ATTEMPT,
            index=files[0].family,
            mark=MARK,
            files=list(files),
        )

    def ingest(self, *files: DataFile) -> OrderResult:
        (result,) = self.leader.order(self.ingest_order(*files)).results
        return result

    def entry_rows(self) -> set[str]:
        """The keys of rows that the index leads to, at the leader once it is ready."""
        answers = list[httpx.Response]()

        def is_read() -> bool:
            head: dict[str, Any] = {"epoch": self.epoch, "schema_version": self.schema_version}
            answers.append(self.leader.post(self.region, "scan", index=INDEX, **head))
            assert answers[-1].status_code in (200, 503), answers[-1].text
            return answers[-1].status_code == 200

        until(self.leader, is_read)
        rows = Rows.model_validate_json(answers[-1].content).rows
        return {str(row.key) for row in rows}


def ingesting(
    start_node: StartNode, *names: str, **roles: str
) -> tuple[dict[str, Any], IngestingRegion]:
    processes, nodes = started(start_node, names)
    named = {name.replace("_", "-"): role for name, role in roles.items()}
    region = IngestingRegion(nodes, named)  # type: ignore[arg-type]
    region.create()
    return processes, region


def test_given_rows_of_a_job_when_the_leaders_disk_is_lost_then_the_copy_has_them(
    start_node: StartNode,
) -> None:
    processes, region = ingesting(start_node, "dn-1", "dn-2", dn_1="leader", dn_2="in-sync")
    region.min_in_sync = 2
    for number in range(3):
        region.write(number)
    version = region.marked(reserves=True)

    assert region.ingest(region.brought(range(2, 40), version)).error is None

    assert region.rows() == set(range(40))
    lost(region, processes["dn-1"])
    region.min_in_sync = 1
    region.promote("dn-2")
    assert region.rows() == set(range(40))
    region.write(40)
    assert region.rows() == set(range(41))


def test_given_entries_of_a_job_when_leaders_are_lost_one_by_one_then_the_last_copy_has_them(
    start_node: StartNode,
) -> None:
    processes, region = ingesting(
        start_node, "dn-1", "dn-2", "dn-3", dn_1="leader", dn_2="in-sync", dn_3="in-sync"
    )
    for number in range(3):
        region.write(number)
    version = region.marked(indexes=(INDEX,))
    pairs = {f"v{number}-k{number}".encode(): f"k{number}".encode() for number in range(3)}

    assert region.ingest(region.entries(pairs, version)).error is None

    keys = region.entry_rows()
    assert len(keys) == 3
    for dead, following in (("dn-1", "dn-2"), ("dn-2", "dn-3")):
        lost(region, processes[dead])
        region.promote(following)
        assert region.entry_rows() == keys


def test_given_a_copy_that_stands_still_when_files_are_taken_then_they_wait_for_it(
    start_node: StartNode,
) -> None:
    processes, region = ingesting(start_node, "dn-1", "dn-2", dn_1="leader", dn_2="in-sync")
    region.write(0)
    version = region.marked(reserves=True)
    file = region.brought(range(1, 5), version)
    processes["dn-2"].send(signal.SIGSTOP)
    before = logged_bytes(region)
    with ThreadPoolExecutor(1) as callers:
        waits = callers.submit(region.ingest, file)
        until(region.leader, lambda: logged_bytes(region) > before)
        assert not waits.done()
        processes["dn-2"].send(signal.SIGCONT)
        assert waits.result(120).error is None

    lost(region, processes["dn-1"])
    region.promote("dn-2")
    assert region.rows() == set(range(5))


@pytest.mark.parametrize("rows", [0, 3])
def test_given_rows_of_a_job_before_there_was_a_copy_when_it_leads_then_it_has_them(
    rows: int, start_node: StartNode
) -> None:
    processes, nodes = started(start_node, ["dn-1", "dn-2"])
    region = IngestingRegion(nodes, {"dn-1": "leader"})
    region.create()
    for number in range(rows):
        region.write(number)
    version = region.marked(reserves=True)
    assert region.ingest(region.brought(range(rows, 9), version)).error is None

    nodes["dn-1"].metasrv.told.changes_copies = True
    region.change(dn_2="learner")
    region.take("dn-2", region.create_order("dn-2"))
    region.tell("dn-1")
    until(region.leader, lambda: has_joined(region, "dn-2"))
    region.change(dn_2="in-sync")
    lost(region, processes["dn-1"])
    region.promote("dn-2")

    assert region.rows() == set(range(9))


def test_given_a_promoted_copy_that_lacks_an_answer_of_another_then_no_job_reads_its_files(
    start_node: StartNode,
) -> None:
    processes, region = ingesting(
        start_node, "dn-1", "dn-2", "dn-3", dn_1="leader", dn_2="in-sync", dn_3="in-sync"
    )
    region.write(0)
    region.marked()
    region.write(1)
    lost(region, processes["dn-1"])
    processes["dn-3"].send(signal.SIGSTOP)
    region.gone.add("dn-3")

    region.promote("dn-2")

    assert snapshot(region).status_code == 503
    processes["dn-3"].send(signal.SIGCONT)
    region.gone.discard("dn-3")
    region.tell("dn-3")
    until(region.leader, lambda: snapshot(region).status_code == 200)
    assert sum(each["file"]["rows"] for each in snapshot(region).json()["files"]) >= 1


def snapshot(region: IngestingRegion) -> httpx.Response:
    path = f"/node/v1/regions/{region.region}/snapshot"
    return region.leader.http.get(f"{region.leader.url}{path}", params={"mark": MARK})


def logged_bytes(region: CopiedRegion) -> int:
    (stat,) = region.leader.stats()
    return int(stat["wal_bytes"])
