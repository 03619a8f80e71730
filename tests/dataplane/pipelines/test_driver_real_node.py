"""An index of a real node's region is filled, and its rows are judged, by a real Spark session."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event

import httpx
import pytest

from metasrv_base.expressions.check import asked
from metasrv_base.schema.entrycodec import encode_values
from metasrv_base.schema.types import parse_type
from metasrv_base.wire.node.inputs import Snapshot
from metasrv_base.wire.node.jobs import BackfillJob, BackfillResult, JobIndex, RowCheck, ValidateJob
from metasrv_base.wire.node.offenders import Duplicate, Offenders
from metasrv_base.wire.node.orders import IngestFiles, OrderResult
from tests.dataplane.datanode.process.program import DatanodeProcess
from tests.dataplane.pipelines.conftest import Warm
from tests.dataplane.pipelines.rig import Seen
from tests.node_conformance.entries import INDEX, post_entries
from tests.node_conformance.metasrv import FakeMetasrv
from tests.node_conformance.node import COLUMNS, Node, Write

pytestmark = [pytest.mark.spark, pytest.mark.asyncio(loop_scope="session")]

TYPES = {column.id: parse_type(column.type) for column in COLUMNS}
ATTEMPT = "attempts/one"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with FakeMetasrv(port=0) as metasrv:
        process = DatanodeProcess("dn-1", tmp_path, metasrv.url).start()
        with Node(process.url, process.node_id, process.root, metasrv) as found:
            yield found
        process.close()


def patient(ask: Callable[[], httpx.Response]) -> httpx.Response:
    """The first answer that is not 503: a node that is slow may be without a lease for a while."""
    for _ in range(600):
        answer = ask()
        if answer.status_code != 503:
            return answer
        Event().wait(0.1)
    raise AssertionError(answer.text)


def snapshot_of(node: Node, region: int) -> Snapshot:
    url = f"{node.url}/node/v1/regions/{region}/snapshot?mark=reorg"
    return Snapshot.model_validate_json(patient(lambda: node.http.get(url)).content)


def ingested(node: Node, region: int, done: BackfillResult) -> OrderResult:
    order = IngestFiles(
        number=node.next_number(),
        region_id=str(region),
        epoch=1,
        procedure="p1",
        attempt=ATTEMPT,
        index=INDEX,
        mark="reorg",
        files=done.files,
        unique_columns=[2],
    )
    return node.order(order).results[0]


def marked(node: Node) -> int:
    """Two of three rows have one value."""
    region = node.created()
    rows = [Write(b"a", 1), Write(b"b", 2), Write(b"c", 1)]
    assert patient(lambda: node.post_batch(region, rows, "s1")).status_code == 200
    told = node.order(node.schema_order(region, version=2, indexes=[INDEX], mark="reorg"))
    assert told.results[0].error is None
    return region


def delete_c(node: Node, region: int) -> None:
    """As a frontend does it that keeps the index."""
    entry = encode_values([TYPES[2]], ["v1"])
    gone = patient(lambda: node.post_batch(region, [Write(b"c")], "s2", schema_version=2))
    freed = patient(lambda: post_entries(node, region, "s3", {}, (entry, None)))
    assert (gone.status_code, freed.status_code) == (200, 200), freed.text


async def test_given_a_region_of_a_node_when_its_unique_index_is_filled_then_rivals_are_named_first(
    spark: Warm, node: Node
) -> None:
    region = await asyncio.to_thread(marked, node)
    job = BackfillJob(
        job_id="real",
        procedure="p1",
        attempt=ATTEMPT,
        snapshot=await asyncio.to_thread(snapshot_of, node, region),
        index=JobIndex(id=INDEX, columns=[2], unique=True),
    )
    rivals = [Duplicate(values=["v1"], row_keys=["61", "63"])]

    done = await spark.jobs.backfill(job, progress=Seen())
    refused = await asyncio.to_thread(ingested, node, region, done)
    await asyncio.to_thread(delete_c, node, region)
    taken = await asyncio.to_thread(ingested, node, region, done)

    assert (done.duplicates, done.entries) == (rivals, 3)
    assert refused.error is not None
    assert refused.error.code == "unique-violation"
    found = Offenders.model_validate(refused.error.facts)
    assert found == Offenders(index=INDEX, duplicates=rivals, total=1)
    assert taken.error is None
    read = await asyncio.to_thread(
        patient, lambda: node.post(region, "scan", index=INDEX, schema_version=2)
    )
    assert [row["key"] for row in read.json()["rows"]] == ["61", "62"]


async def test_given_a_region_of_a_node_when_validated_then_its_rows_at_the_mark_are_judged(
    spark: Warm, node: Node
) -> None:
    region = await asyncio.to_thread(marked, node)
    await asyncio.to_thread(delete_c, node, region)
    expression = asked("n > 1", {"n": 1}, TYPES)
    job = ValidateJob(
        job_id="real",
        procedure="p1",
        snapshot=await asyncio.to_thread(snapshot_of, node, region),
        checks=[
            RowCheck(constraint=7, kind="not-null", columns=[2]),
            RowCheck(constraint=8, kind="check", columns=[1], expression=expression),
        ],
    )

    done = await spark.jobs.validate(job, progress=Seen())

    assert (done.rows_in, done.violations_total) == (3, 2)
    assert [(one.constraint, one.row_key) for one in done.violations] == [(8, "61"), (8, "63")]
