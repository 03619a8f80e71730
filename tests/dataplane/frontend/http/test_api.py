"""The routes of a frontend: forms of rows in and out, and what each says of a bad request."""

import asyncio
from collections.abc import Mapping, Sequence

import orjson
import pyarrow as pa
import pytest

from dataplane.frontend.catalog import catalog
from dataplane.frontend.http.app import build_app
from metasrv_base.rows.arrow_parts import ArrowParts
from metasrv_base.wire.http.strict_json import BODY_BYTES_MAX
from tests.dataplane.frontend.bench import LEASE_MS, Bench, running
from tests.dataplane.frontend.http.requests import ARROW, CHECKSUM, ROWS, SCAN, get, post, stream
from tests.dataplane.frontend.tables import feed_table, index
from tests.metasrv.api.raw import JSON, Sent, send

LINES = "application/x-ndjson"
TEN = [{"id": number, "a": number, "b": f"w{number}"} for number in range(10)]


def arrow_parts(*tables: Sequence[Mapping[str, object]]) -> list[bytes]:
    batches = [pa.RecordBatch.from_pylist(list(rows)) for rows in tables]
    made = ArrowParts(batches[0].schema)
    return [*map(made.part, batches), made.end()]


async def test_given_rows_in_each_form_when_written_then_they_are_read_in_each_form() -> None:
    async with running(feed_table(index(1, 2), regions=2)) as bench:
        done = await post(bench, {"op": "insert", "rows": TEN[:4]})
        streamed = await stream(bench, arrow_parts(TEN[4:7], TEN[7:]))
        one = await get(bench, f"{ROWS}?key=3")
        some = await get(bench, f"{ROWS}?index=by_2&from=2&to=5")
        lines = await get(bench, f"{SCAN}?columns=id", LINES)
        arrow = await get(bench, SCAN, ARROW)

    assert (done.status, done.json["rows"], done.json["schema_version"]) == (200, 4, 1)
    assert {region["outcome"] for region in done.json["regions"]} == {"applied"}
    assert (streamed.status, streamed.json["rows"]) == (200, 6)
    assert one.json == {"rows": TEN[3:4], "schema_version": 1}
    assert some.json["rows"] == TEN[2:5]
    ids = [orjson.loads(line)["id"] for line in lines.body.splitlines()]
    assert (sorted(ids), lines.headers["x-schema-version"]) == (list(range(10)), "1")
    with pa.ipc.open_stream(arrow.body) as reader:
        table = reader.read_all().sort_by("id")
    assert table.to_pylist() == TEN
    assert table.schema.metadata == {b"metasrv.schema_version": b"1"}


async def test_given_a_stream_cut_into_bytes_when_it_arrives_then_each_batch_is_whole() -> None:
    whole = b"".join(arrow_parts(TEN[:5], TEN[5:]))

    async with running() as bench:
        got = await stream(bench, [whole[at : at + 7] for at in range(0, len(whole), 7)])
        cut = await stream(bench, [whole[:-20]], f"{ROWS}?op=upsert")

    assert (got.status, got.json["rows"]) == (200, 10)
    assert (cut.status, cut.json["facts"]["rows_applied"]) == (422, 5)


async def test_given_pages_when_the_token_is_shown_then_each_row_comes_once() -> None:
    async with running(feed_table(regions=3)) as bench:
        await post(bench, {"op": "insert", "rows": TEN})
        page = await get(bench, f"{SCAN}?limit=3")
        ids = [row["id"] for row in page.json["rows"]]
        while (token := page.json.get("next_page_token")) is not None:
            page = await get(bench, f"{SCAN}?limit=3&page_token={token}")
            ids += [row["id"] for row in page.json["rows"]]

        assert sorted(ids) == list(range(10))
        assert len(bench.transactions) == 0


async def apart(bench: Bench, path: str) -> list[dict[str, int]]:
    """All pages, each asked of a frontend that knows nothing of the others."""
    page = await get(bench, path)
    rows = page.json["rows"]
    while (token := page.json.get("next_page_token")) is not None:
        page = await get(bench, f"{path}&page_token={token}")
        rows += page.json["rows"]
    return list(rows)


async def test_given_pages_that_stand_apart_then_each_row_comes_once_and_nothing_is_pinned() -> (
    None
):
    async with running(feed_table(index(1, 2), regions=3)) as bench:
        await post(bench, {"op": "insert", "rows": TEN})
        every = await apart(bench, f"{SCAN}?apart=true&limit=3")
        some = await apart(bench, f"{SCAN}?apart=true&limit=1&from=3&to=6&column_ids=1")
        regions = [await apart(bench, f"{SCAN}?apart=true&limit=2&region={n}") for n in range(3)]
        found = await apart(bench, f"{ROWS}?index=by_2&from=2&to=7&limit=2&apart=true")
        pinned = len(bench.transactions)

    assert sorted(row["id"] for row in every) == list(range(10))
    assert sorted(row["id"] for row in some) == [3, 4, 5]
    assert set(some[0]) == {"id"}
    assert sorted(row["id"] for rows in regions for row in rows) == list(range(10))
    assert all(regions)
    assert found == TEN[2:7]
    assert pinned == 0


async def test_given_keys_and_regions_when_asked_for_then_what_is_there() -> None:
    async with running(feed_table(regions=3)) as bench:
        await post(bench, {"op": "insert", "rows": TEN})
        sent = Sent("POST", f"{ROWS}/get", JSON, [orjson.dumps({"keys": [[3], [99], [7], [3]]})])
        some = await send(build_app(bench.service), sent)
        whole = await get(bench, CHECKSUM)
        parts = [await get(bench, f"{CHECKSUM}?region={number}") for number in range(3)]

    assert sorted(row["id"] for row in some.json["rows"]) == [3, 7]
    assert (whole.json["rows"], len(whole.json["regions"])) == (10, 3)
    assert [part.json["rows"] for part in parts] == [one["rows"] for one in whole.json["regions"]]
    total = sum(int(part.json["checksum"], 16) for part in parts) % (1 << 64)
    assert whole.json["checksum"] == f"{total:016x}"


async def test_given_the_id_of_a_table_then_it_is_found_whatever_it_is_called() -> None:
    by_id = "/v1/tables/1024"
    async with running() as bench:
        bench.tell(bench.table.model_copy(update={"name": "renamed"}))
        sent = Sent("POST", f"{by_id}/rows", JSON, [orjson.dumps({"op": "insert", "rows": TEN})])
        done = await send(build_app(bench.service), sent)
        rows = await get(bench, f"{by_id}/scan")
        one = await get(bench, f"{by_id}/rows?key=3")
        bad = await get(bench, "/v1/tables/x/scan")
        metrics = await get(bench, "/metrics")

    assert (done.status, len(rows.json["rows"]), one.json["rows"]) == (200, 10, TEN[3:4])
    assert (bad.status, bad.json["code"]) == (404, "table-not-found")
    assert b'call="/v1/tables/{table}/rows"' in metrics.body


async def test_given_a_column_that_has_gone_when_read_by_its_id_then_stale_at_once() -> None:
    async with running() as bench:
        got = await get(bench, f"{SCAN}?apart=true&column_ids=1,77")

    assert (got.status, got.json["code"]) == (409, "schema-version-stale")


async def test_given_an_idempotency_key_when_sent_again_then_it_is_done_once() -> None:
    async with running() as bench:
        body = {"op": "insert", "rows": TEN[:1]}
        first = await post(bench, body, **{"idempotency-key": "k"})
        again = await post(bench, body, **{"idempotency-key": "k"})
        other = await post(bench, body, **{"idempotency-key": "l"})

    (done,), (repeated,) = first.json["regions"], again.json["regions"]
    assert (first.status, again.status, other.status) == (200, 200, 409)
    assert done == {**repeated, "repeated": False}
    assert repeated["repeated"]


async def test_given_a_lease_that_ended_when_asked_then_every_route_says_503() -> None:
    async with running() as bench:
        ready = await get(bench, "/readyz")
        bench.clock.advance(LEASE_MS)
        asked = [f"{ROWS}?key=1", SCAN, "/readyz", "/livez"]
        statuses = {path: (await get(bench, path)).status for path in asked}
        written = await post(bench, {"op": "delete", "rows": [{"id": 1}]})
        version = await get(bench, "/version")
        metrics = await get(bench, "/metrics")

    assert (ready.status, written.status) == (200, 503)
    assert set(statuses.values()) == {503}
    assert version.json["frontend_id"] == "fe-1"
    assert b"frontend_schema_lease_seconds 0.0" in metrics.body


def op(name: object, *rows: object) -> bytes:
    return orjson.dumps({"op": name, "rows": rows})


DEEP = b"[" * 100 + b"]" * 100
BODIES: list[tuple[bytes, int, str]] = [
    (b"", 400, "malformed-json"),
    (b"{", 400, "malformed-json"),
    (b'{"op":"insert","op":"delete","rows":[{"id":1}]}', 400, "malformed-json"),
    (b'{"op":"insert","rows":[{"id":NaN}]}', 400, "malformed-json"),
    (DEEP, 400, "malformed-json"),
    (b"[]", 422, "invalid-request"),
    (b"{}", 422, "invalid-request"),
    (op("merge", {"id": 1}), 422, "invalid-request"),
    (op("insert"), 422, "invalid-request"),
    (op("insert", 7), 422, "invalid-request"),
    (op("insert", {}), 422, "invalid-request"),
    (op("insert", {"id": None}), 422, "invalid-request"),
    (op("insert", {"id": True}), 422, "invalid-request"),
    (op("insert", {"id": "1"}), 422, "invalid-request"),
    (op("insert", {"id": 2**63}), 422, "invalid-request"),
    (op("insert", {"id": 1.5}), 422, "invalid-request"),
    (op("insert", {"id": 1, "b": ["x"]}), 422, "invalid-request"),
    (op("insert", {"id": 1, "b": {"x": 1}}), 422, "invalid-request"),
    (op("insert", {"id": 1, "nope": 1}), 422, "invalid-request"),
    (op("insert", {"id": 1}, {"id": 1}), 422, "invalid-request"),
    (op("delete", {"id": 1, "a": 1}), 422, "invalid-request"),
    (b'{"op":"insert","rows":[{"id":1}],"more":1}', 422, "invalid-request"),
    (op("insert", {"id": 1, "b": "x" * BODY_BYTES_MAX}), 413, "body-too-large"),
]


@pytest.mark.badinput
@pytest.mark.parametrize(("body", "status", "code"), BODIES, ids=lambda one: str(one)[:40])
async def test_given_a_bad_body_when_sent_then_a_problem_and_nothing_is_written(
    body: bytes, status: int, code: str
) -> None:
    async with running() as bench:
        got = await post(bench, body)
        rows = await get(bench, SCAN)

    assert (got.status, got.json["code"]) == (status, code)
    assert rows.json["rows"] == []
    assert len(bench.transactions) == 0


@pytest.mark.badinput
@pytest.mark.parametrize("keys", [None, [], [1], [[]], [[1, 2]], [[None]], [["x"]]], ids=str)
async def test_given_bad_keys_when_asked_for_then_a_problem(keys: object) -> None:
    async with running() as bench:
        sent = Sent("POST", f"{ROWS}/get", JSON, [orjson.dumps({"keys": keys})])
        got = await send(build_app(bench.service), sent)

    assert (got.status, got.json["code"]) == (422, "invalid-request")


BAD_PATHS: list[tuple[str, int, str]] = [
    (ROWS, 422, "invalid-request"),
    (f"{ROWS}?key=x", 422, "invalid-request"),
    (f"{ROWS}?key=1&key=2", 422, "invalid-request"),
    (f"{ROWS}?key=null", 422, "invalid-request"),
    (f"{ROWS}?key=[1", 400, "malformed-json"),
    (f"{ROWS}?key=%ff", 422, "invalid-request"),
    (f"{ROWS}?key=1&limit=1", 422, "invalid-request"),
    (f"{ROWS}?index=nope&eq=1", 404, "not-found"),
    (f"{ROWS}?index=by_2&eq=x", 422, "invalid-request"),
    (f"{ROWS}?index=by_2&eq=1&eq=2", 422, "invalid-request"),
    (f"{ROWS}?index=by_2&eq=1&from=2", 422, "invalid-request"),
    (f"{ROWS}?index=by_2&index=by_2", 422, "invalid-request"),
    (f"{SCAN}?limit=0", 422, "invalid-request"),
    (f"{SCAN}?limit=10001", 422, "invalid-request"),
    (f"{SCAN}?limit=-1", 422, "invalid-request"),
    (f"{SCAN}?columns=nope", 422, "invalid-request"),
    (f"{SCAN}?what=1", 422, "invalid-request"),
    (f"{SCAN}?page_token=x", 400, "bad-page-token"),
    (f"{SCAN}?page_token=WyJhIiwgMCwgIiJd", 410, "page-token-expired"),
    (f"{SCAN}?page_token=x&columns=id", 422, "invalid-request"),
    (f"{SCAN}?apart=true&page_token=x", 400, "bad-page-token"),
    (f"{SCAN}?apart=maybe", 422, "invalid-request"),
    (f"{SCAN}?apart=true&key=1", 422, "invalid-request"),
    (f"{SCAN}?region=1", 404, "not-found"),
    (f"{SCAN}?region=-1", 422, "invalid-request"),
    (f"{SCAN}?from=null", 422, "invalid-request"),
    (f"{SCAN}?from=1&from=2", 422, "invalid-request"),
    (f"{SCAN}?columns=id&column_ids=1", 422, "invalid-request"),
    (f"{SCAN}?max_lag=0", 422, "invalid-request"),
    (f"{SCAN}?max_lag=3600001", 422, "invalid-request"),
    (f"{SCAN}?max_lag=5s", 422, "invalid-request"),
    (f"{ROWS}?key=1&max_lag=-1", 422, "invalid-request"),
    (f"{SCAN}?page_token=x&max_lag=1", 422, "invalid-request"),
    (f"{CHECKSUM}?region=1", 404, "not-found"),
    (f"{CHECKSUM}?limit=1", 422, "invalid-request"),
    ("/v1/tables/main/public/t/../x", 400, "bad-path"),
    ("/v1/tables/main/public/t", 404, "not-found"),
]


@pytest.mark.badinput
@pytest.mark.parametrize(("path", "status", "code"), BAD_PATHS, ids=lambda one: str(one)[:60])
async def test_given_a_bad_path_or_query_when_asked_then_a_problem_and_nothing_stays_open(
    path: str, status: int, code: str
) -> None:
    async with running(feed_table(index(1, 2))) as bench:
        got = await get(bench, path)

        assert (got.status, got.json["code"]) == (status, code)
        assert len(bench.transactions) == 0


@pytest.mark.badinput
async def test_given_a_table_that_is_not_there_when_the_leader_was_heard_then_404() -> None:
    async with running() as bench, asyncio.TaskGroup() as group:
        holding = group.create_task(bench.holder.run())
        got = await get(bench, "/v1/tables/main/public/nope/rows?key=1")
        holding.cancel()

    assert (got.status, got.json["code"]) == (404, "table-not-found")


WHOLE = b"".join(arrow_parts(TEN[:2]))
STREAMS: list[tuple[bytes, str, int, str]] = [
    (b"", ROWS + "?op=insert", 422, "invalid-request"),
    (b"not arrow at all", ROWS + "?op=insert", 422, "invalid-request"),
    (WHOLE[:100], ROWS + "?op=insert", 422, "invalid-request"),
    (b"\xff\xff\xff\xff\xff\xff\xff\x7f", ROWS + "?op=insert", 422, "invalid-request"),
    (
        b"\xff\xff\xff\xff\x08\x00\x00\x00" + b"\xff" * 8,
        ROWS + "?op=insert",
        422,
        "invalid-request",
    ),
    (WHOLE, ROWS, 422, "invalid-request"),
    (WHOLE, ROWS + "?op=merge", 422, "invalid-request"),
    (WHOLE, ROWS + "?op=insert&op=insert", 422, "invalid-request"),
    (b"".join(arrow_parts([{"id": "x"}])), ROWS + "?op=insert", 422, "invalid-request"),
    (b"".join(arrow_parts([{"id": 1, "c": 1}])), ROWS + "?op=insert", 422, "invalid-request"),
    (b"".join(arrow_parts([{"a": 1}])), ROWS + "?op=insert", 422, "invalid-request"),
]


@pytest.mark.badinput
@pytest.mark.parametrize(("body", "path", "status", "code"), STREAMS, ids=range(len(STREAMS)))
async def test_given_a_bad_stream_when_sent_then_a_problem_and_nothing_is_written(
    body: bytes, path: str, status: int, code: str
) -> None:
    async with running() as bench:
        got = await stream(bench, [body], path)
        rows = await get(bench, SCAN)

    assert (got.status, got.json["code"]) == (status, code)
    assert rows.json["rows"] == []


@pytest.mark.badinput
async def test_given_another_kind_of_body_or_method_when_sent_then_it_is_refused() -> None:
    async with running() as bench:
        text = await post(bench, b"id=1", **{"content-type": "text/plain"})
        put = await send(build_app(bench.service), Sent("PUT", ROWS))
        long = await post(bench, {}, **{"idempotency-key": "k" * 256})

    assert (text.status, put.status, long.status) == (415, 405, 400)


@pytest.mark.case("catalog 135")
async def test_given_a_version_that_is_on_its_way_when_it_must_be_known_then_it_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(catalog, "CATCH_UP_S_MAX", 60.0)
    async with running() as bench, asyncio.TaskGroup() as group:
        app = build_app(bench.service)
        asked = Sent("GET", f"{ROWS}?key=3", {"x-min-schema-version": "2"})
        late = group.create_task(send(app, asked))
        await asyncio.sleep(0)
        await bench.publish(feed_table(schema_version=2))
        newer = await late
        wrong = [
            await send(app, Sent("GET", f"{ROWS}?key=3", {"x-min-schema-version": text}))
            for text in ("", "0", "-1", "two", "1e3", "9" * 20)
        ]

    assert newer.json == {"rows": [], "schema_version": 2}
    assert {one.status for one in wrong} == {422}


async def test_given_a_version_that_never_comes_then_another_frontend_is_to_be_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(catalog, "CATCH_UP_S_MAX", 0.01)
    async with running() as bench:
        asked = Sent("GET", f"{ROWS}?key=3", {"x-min-schema-version": "7"})
        late = await send(build_app(bench.service), asked)

    assert (late.status, late.json["code"]) == (503, "not-ready")
