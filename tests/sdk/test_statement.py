"""Statements over a route that moves: the same id to the newest leader, and honest ends."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import httpx
import orjson
import pyarrow as pa
import pytest

from base.elements.states import ElementState
from base.errors import Conflict, MetaError, NotFound, Refused, Unavailable, Unknown
from base.rows.nodes import Nodes
from base.wire.batches import HEADER_KEY, BatchHeader
from base.wire.problems import problem_of
from base.wire.tables import ColumnBody, ConstraintBody
from metasrv.sdk.binding import Bound
from metasrv.sdk.client import AsyncClient
from metasrv.sdk.statement import Statement
from tests.fakes.chance import SeededRng
from tests.sdk.catalog import TABLE_ID, URL, FakeCatalog, answer, region
from tests.sdk.samples import small

OLD, NEW = "http://dn-1.test", "http://dn-2.test"
Said = httpx.Response | MetaError | Exception | Callable[[], None]


@dataclass
class Regions:
    """Batches are answered by `script` in turn, then by success. Headers are kept."""

    script: list[Said] = field(default_factory=list)
    seen: list[tuple[str, BatchHeader]] = field(default_factory=list)
    columns: list[list[str]] = field(default_factory=list)
    """Of each batch: the values it has."""

    def __call__(self, request: httpx.Request) -> httpx.Response:
        with pa.ipc.open_stream(request.content) as reader:
            header = BatchHeader.model_validate_json(reader.schema.metadata[HEADER_KEY])
            rows = reader.read_all().num_rows
            self.columns.append([name for name in reader.schema.names if name.startswith("c")])
        self.seen.append((f"{request.url.scheme}://{request.url.host}", header))
        said = self.script.pop(0) if self.script else None
        if isinstance(said, MetaError):
            status, headers, body = problem_of(said, request.url.path, "test")
            return httpx.Response(status, headers=headers, content=orjson.dumps(body))
        if isinstance(said, Exception):
            raise said
        region_id = request.url.path.split("/")[4]
        return answer(200, {"region_id": region_id, "version": 5, "rows": rows})


@dataclass
class Rig:
    nodes: Regions
    catalog: FakeCatalog
    client: AsyncClient

    async def insert(self, deadline_ms: int = 10_000) -> None:
        await self.client.table("t").insert([{"id": 1}], deadline_ms=deadline_ms)


def rig(*script: Said) -> Rig:
    nodes = Regions(list(script))
    catalog = FakeCatalog(nodes=nodes)
    catalog.make(small(), [region(0, OLD)])
    return Rig(nodes, catalog, AsyncClient([URL], transport=catalog, patience_ms=300))


def moved(rig: Rig) -> None:
    """The route names another leader from the second reading on."""
    table = rig.catalog.table
    assert table is not None
    rig.catalog.script = [answer(200, table.model_dump(mode="json"))]
    rig.catalog.move(0, address=NEW, epoch=2)


@pytest.mark.parametrize(
    "error",
    [
        Conflict("stale-epoch", epoch=2, found=1),
        Conflict("epoch-mismatch"),
        NotFound(what="region", name="x"),
        Unavailable(what="region", reason="this node holds no lease of it now"),
        httpx.ConnectError("refused"),
        httpx.ReadTimeout("silent"),
        httpx.RemoteProtocolError("hung up"),
        Unknown(reason="the lease ended"),
    ],
    ids=repr,
)
async def test_given_a_moved_region_when_writing_then_the_same_statement_goes_to_the_new_leader(
    error: Said,
) -> None:
    given = rig(error)
    moved(given)

    async with given.client:
        await given.insert()

    (old, first), (new, second) = given.nodes.seen
    assert (old, first.epoch, new, second.epoch) == (OLD, 1, NEW, 2)
    assert first.statement_id == second.statement_id


async def test_given_nobody_who_knows_the_frontends_then_what_nodes_alone_can_do_is_done() -> None:
    given = rig()
    given.catalog.holders = None

    async with given.client:
        await given.insert()
        with pytest.raises(Unavailable, match="list of frontends"):
            await given.client.table("t").update([{"id": 1}])

    assert len(given.nodes.seen) == 1


async def test_given_a_newer_version_of_equal_columns_then_it_is_sent_under_that() -> None:
    given = rig(Conflict("schema-version-stale", found=1, current=2))
    table = given.catalog.table
    assert table is not None
    given.catalog.script = [answer(200, table.model_dump(mode="json"))]
    given.catalog.change(schema_version=2, version=2)

    async with given.client:
        await given.insert()

    assert [header.schema_version for _, header in given.nodes.seen] == [1, 2]


async def test_given_other_columns_at_the_newer_version_then_it_is_finished_under_those() -> None:
    """One has gone, one has come with a default; nothing was done under the old ones."""
    given = rig(Conflict("schema-version-stale", found=1, current=2))
    table = given.catalog.table
    assert table is not None
    given.catalog.script = [answer(200, table.model_dump(mode="json"))]
    seats = ColumnBody(
        id=3, name="seats", type="int32", nullable=False, default=7, state=ElementState.PUBLIC
    )
    given.catalog.change(schema_version=2, columns=(table.columns[0], seats))

    async with given.client:
        await given.insert()

    (_, first), (_, second) = given.nodes.seen
    assert given.nodes.columns == [["c1", "c2"], ["c1", "c3"]]
    assert (first.schema_version, second.schema_version) == (1, 2)
    assert first.statement_id == second.statement_id


async def test_given_columns_that_the_rows_do_not_fit_any_more_then_nothing_is_sent_again() -> None:
    given = rig(Conflict("schema-version-stale", found=1, current=2))
    table = given.catalog.table
    assert table is not None
    given.catalog.script = [answer(200, table.model_dump(mode="json"))]
    wider = [one.model_copy(update={"nullable": False}) for one in table.columns]
    given.catalog.change(schema_version=2, columns=tuple(wider))

    async with given.client:
        with pytest.raises(Refused, match="note is not nullable"):
            await given.insert()

    assert len(given.nodes.seen) == 1


CHECK = ConstraintBody.model_validate(
    {
        "id": 1,
        "name": "c",
        "kind": "check",
        "columns": ("note",),
        "holds": False,
        "state": ElementState.WRITE_ONLY,
    }
)


def type_changes(columns: Sequence[ColumnBody], old_is_public: bool) -> tuple[ColumnBody, ...]:
    """`note` becomes binary: at the version that still shows the old one, or the next."""
    key, old = columns
    public, hidden = ElementState.PUBLIC, ElementState.WRITE_ONLY
    states = (public, hidden) if old_is_public else (hidden, public)
    new = old.model_copy(update={"id": 3, "type": "binary", "replaces": old.id, "state": states[1]})
    return key, old.model_copy(update={"state": states[0]}), new


@pytest.mark.parametrize("old_is_public", [True, False])
async def test_given_a_type_that_changes_then_nodes_alone_take_no_row_for_so_long(
    old_is_public: bool,
) -> None:
    """Who reads the other of the two columns would see null, or what has no form in it."""
    given = rig()
    table = given.catalog.table
    assert table is not None
    given.catalog.change(columns=type_changes(table.columns, old_is_public), schema_version=2)

    async with given.client:
        with pytest.raises(Unavailable, match="type"):
            await given.insert()
        with pytest.raises(Unavailable, match="type"):
            await given.client.table("t").load(pa.table({"id": [1]}))
        await given.client.table("t").delete([1])

    assert len(given.nodes.seen) == 1


@pytest.mark.parametrize("comes", ["type", "constraint"])
async def test_given_a_part_that_was_applied_when_the_rest_may_not_be_then_regions_say_so(
    comes: str,
) -> None:
    given = rig(Conflict("schema-version-stale", found=1, current=2))
    given.catalog.make(small(2), [region(0, OLD), region(1, OLD)])
    table = given.catalog.table
    assert table is not None
    given.catalog.script = [answer(200, table.model_dump(mode="json"))]
    given.catalog.change(schema_version=2)
    if comes == "type":
        given.catalog.change(columns=type_changes(table.columns, True))
    else:
        given.catalog.change(constraints=(CHECK,))

    async with given.client:
        with pytest.raises(Conflict) as raised:
            await given.client.table("t").insert([{"id": id} for id in range(9)])

    regions = raised.value.facts["regions"]
    assert isinstance(regions, list)
    assert sorted(one["outcome"] for one in regions) == ["applied", "not-applied"]


async def test_given_a_region_that_is_lost_when_writing_then_it_is_said_at_once() -> None:
    given = rig()
    given.catalog.move(0, state="lost")

    async with given.client:
        with pytest.raises(Unavailable, match="region-lost"):
            await given.insert()

    assert given.nodes.seen == []


async def test_given_a_dropped_table_when_its_region_is_gone_then_the_table_is_not_found() -> None:
    given = rig(NotFound(what="region", name="x"))

    async with given.client:
        table = given.client.table("t")
        await table.schema()
        given.catalog.change(dropped_at="2026-01-01T00:00:00Z")
        with pytest.raises(NotFound, match="table-not-found"):
            await table.insert([{"id": 1}])


async def test_given_a_region_that_no_node_has_when_time_is_up_then_it_is_not_there_yet() -> None:
    given = rig()

    async def nowhere(bound: Bound) -> None:
        raise NotFound(what="region", name="x")

    async with given.client:
        binding = given.client.table("t").binding
        until = asyncio.get_running_loop().time()
        statement = Statement(binding, Nodes(), SeededRng(), until)
        with pytest.raises(Unavailable, match="not-ready"):
            await statement.until_final(await binding.get(), nowhere)


async def test_given_a_silent_node_until_the_deadline_then_the_outcome_is_unknown() -> None:
    given = rig(*[httpx.ReadTimeout("silent")] * 50)

    async with given.client:
        with pytest.raises(Unknown) as raised:
            await given.insert(deadline_ms=300)

    regions = raised.value.facts["regions"]
    assert regions == [
        {"region_id": str(TABLE_ID << 32), "outcome": "unknown", "code": "outcome-unknown"}
    ]
    assert len(given.nodes.seen) > 1


async def test_given_nobody_there_until_the_deadline_then_it_was_not_applied() -> None:
    given = rig(*[httpx.ConnectError("refused")] * 50)

    async with given.client:
        with pytest.raises(Unavailable) as raised:
            await given.insert(deadline_ms=300)

    assert raised.value.facts["regions"] == [
        {"region_id": str(TABLE_ID << 32), "outcome": "not-applied", "code": "not-ready"}
    ]


async def test_given_a_lost_answer_when_the_same_leader_then_refuses_then_it_is_not_known() -> None:
    given = rig(httpx.ReadTimeout("silent"), Conflict("already-exists", keys=["80" + "00" * 7]))

    async with given.client:
        with pytest.raises(Unknown):
            await given.insert()


async def test_given_a_lost_answer_when_the_next_leader_refuses_then_it_was_not_applied() -> None:
    key = "8000000000000001"
    given = rig(httpx.ReadTimeout("silent"), Conflict("already-exists", keys=[key]))
    moved(given)

    async with given.client:
        with pytest.raises(Conflict) as raised:
            await given.insert()

    assert raised.value.facts["keys"] == [{"id": 1}]


async def test_given_metasrv_is_silent_when_a_region_is_late_then_the_old_route_serves() -> None:
    given = rig(httpx.ReadTimeout("silent"))

    async with given.client:
        table = given.client.table("t")
        await table.schema()
        given.catalog.script = [Unavailable()] * 20
        result = await table.upsert([{"id": 1}])

    assert result.rows == 1


async def test_given_a_renamed_column_when_it_is_used_then_the_table_is_read_again_first() -> None:
    given = rig()

    async with given.client:
        table = given.client.table("t")
        await table.schema()
        body = given.catalog.table
        assert body is not None
        columns = [
            one.model_copy(update={"name": "remark"}) if one.name == "note" else one
            for one in body.columns
        ]
        given.catalog.change(columns=tuple(columns), version=2)
        result = await table.insert([{"id": 1, "remark": "x"}])

    assert result.rows == 1


@pytest.mark.parametrize("error", [httpx.ReadTimeout("silent"), Unavailable("region-lost")])
async def test_given_a_statement_without_time_to_look_again_then_the_next_one_does(
    error: MetaError | Exception,
) -> None:
    given = rig(error)
    moved(given)

    async with given.client:
        table = given.client.table("t")
        with pytest.raises((Unknown, Unavailable)):
            await table.upsert([{"id": 1}], deadline_ms=1)
        await table.upsert([{"id": 1}])

    assert [url for url, _ in given.nodes.seen] == [OLD, NEW]
