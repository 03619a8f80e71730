"""Statements about rows at a frontend, over a real datanode: what they do, and what is refused."""

import asyncio
from dataclasses import replace

import httpx
import pytest

from dataplane.frontend.sql.read_statements import STATEMENTS_MAX
from dataplane.frontend.sql.run import RUN_MS_MAX
from metasrv_base.concurrency.reservations import Reservations
from metasrv_base.wire.http.strict_json import BODY_BYTES_MAX
from tests.dataplane.frontend.bench import running
from tests.dataplane.frontend.http.requests import ROWS, get
from tests.dataplane.frontend.sql.sql_requests import done, refused, rows, sent
from tests.dataplane.frontend.tables import column, feed_table, index, rule

FILL = "insert into t values (1, 10, 'x'), (2, 20, 'y'), (3, null, 'z'), (-4, 20, null)"


async def test_given_statements_then_they_run_in_order_and_say_what_they_did() -> None:
    async with running(feed_table(index(1, 2), regions=3)) as bench:
        body = await done(
            bench,
            f"{FILL}; update t set b = 'w', a = null where id = 1; update t set b = 'w' where"
            " id = 99; delete from t where id = 2; delete from t where id = 2;"
            " insert into t (b, id) values (default, 5); select id, a, b from t order by id",
        )
        over_rest = await get(bench, f"{ROWS}?key=1")

    *written, last = body.results
    assert [result.rows_written for result in written] == [4, 1, 0, 1, 1, 1]
    assert last.rows == ((-4, 20, None), (1, None, "w"), (3, None, "z"), (5, None, None))
    assert (last.columns, last.types) == (("id", "a", "b"), ("int64", "int64", "string"))
    assert last.rows_written is None
    assert over_rest.json["rows"] == [{"id": 1, "a": None, "b": "w"}]


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("id = 2", [2]),
        ("id = 99", []),
        ("id > 1", [2, 3]),
        ("id >= 2 and id < 3", [2]),
        ("id between -4 and 1", [-4, 1]),
        ("id > 9223372036854775807", []),
        ("id <= 9223372036854775807 and id >= 3", [3]),
        ("id > 3 and id < 2", []),
        ("a = 20", [-4, 2]),
        ("a < 20", [1]),
        ("a <= 20 and a > -5", [-4, 1, 2]),
    ],
)
async def test_given_conditions_then_the_rows_are_those_that_satisfy_them(
    query: str, ids: list[int]
) -> None:
    """A null is in no range, though it stands first in an index."""
    async with running(feed_table(index(1, 2), regions=3)) as bench:
        found = await rows(bench, f"{FILL}; select id from t where {query}")

    assert sorted(row[0] for row in found) == ids


async def test_given_an_order_then_it_holds_across_regions_and_with_a_limit() -> None:
    async with running(feed_table(index(1, 2), regions=4)) as bench:
        values = ", ".join(f"({number}, {number % 7}, null)" for number in range(50))
        await done(bench, f"insert into t values {values}")
        by_key = await rows(bench, "select id from t order by id")
        first = await rows(bench, "select id, id from t where id >= 7 order by id limit 5")
        by_index = await rows(bench, "select a, id from t where a > 3 order by a, id")
        of_one = await rows(bench, "select id from t where a = 3 order by id limit 3")
        none = await rows(bench, "select id from t limit 0")

    assert [row[0] for row in by_key] == list(range(50))
    assert first == [(number, number) for number in range(7, 12)]
    assert by_index == sorted((number % 7, number) for number in range(50) if number % 7 > 3)
    assert (of_one, none) == ([(3,), (10,), (17,)], [])


REFUSALS = {
    "select * from t where b = 'x'": (23, "invalid-sql", "primary key (id); index by_2 (a)"),
    "select * from t where id = 1 and a = 2": (23, "invalid-sql", "conditions of one key or index"),
    "select * from t order by b": (26, "invalid-sql", "the order in which rows are read"),
    "select * from t where a = 1 order by b": (38, "invalid-sql", "index by_2 (a)"),
    "select * from t where id = 'x'": (28, "invalid-sql", "an integer from"),
    "select * from t where id = 1 and id = 1": (34, "invalid-sql", "one condition for id"),
    "select * from t where id > 1 and id > 2": (34, "invalid-sql", "one end of each sort for id"),
    "insert into t values (1, 'q', 'r')": (26, "invalid-request", "an integer from"),
    "insert into t values (1, 1, 'a'), (2, 2, 5)": (42, "invalid-request", "a string"),
    "insert into t (a) values (1)": (26, "invalid-request", "part of the primary key"),
    "update t set a = 'x' where id = 1": (18, "invalid-request", "an integer from"),
    "delete from t where id = 1.5": (26, "invalid-request", "an integer from"),
    "insert into t values (1, 1, 'a'), (1, 2, 'b')": (1, "invalid-request", ""),
}


@pytest.mark.parametrize("text", REFUSALS)
async def test_given_what_no_path_answers_or_no_column_holds_then_its_place_is_told(
    text: str,
) -> None:
    column_number, code, expected = REFUSALS[text]
    async with running(feed_table(index(1, 2))) as bench:
        facts = await refused(bench, text)

    assert (facts["line"], facts["column"], facts["code"]) == (1, column_number, code)
    assert expected in str(facts.get("expected", ""))


async def test_given_a_table_that_is_not_there_when_the_leader_was_heard_then_it_is_told() -> None:
    async with running() as bench, asyncio.TaskGroup() as group:
        holding = group.create_task(bench.holder.run())
        facts = await refused(bench, f"{FILL};\nselect * from u")
        left = await rows(bench, "select * from t")
        holding.cancel()

    assert (facts["code"], facts["line"], facts["column"]) == ("table-not-found", 2, 15)
    assert "statement" not in facts  # a number says that the statements before it are done
    assert left == []


async def test_given_a_text_with_a_fault_at_its_end_then_nothing_is_done() -> None:
    async with running() as bench:
        faults = [
            await refused(bench, f"{FILL};\n{bad}")
            for bad in ("selec", "select c from t", "insert into t values (1)")
        ]
        left = await rows(bench, "select * from t")

    assert [(fault["line"], fault["column"]) for fault in faults] == [
        (2, 1),
        (2, 8),
        (2, 22),
    ]
    assert left == []


async def test_given_a_statement_that_fails_then_those_before_it_are_done() -> None:
    """Rows that are there, a broken constraint: the fault has the number of its statement."""
    check = rule("check", 2, expression="c2 > 0")
    async with running(feed_table(column(2, "a"), column(3, "b", "string"), check)) as bench:
        good = "insert into t values (1, 1, 'x')"
        broken = await refused(bench, f"{good};\ninsert into t values (2, -1, 'y')")
        again = await refused(
            bench, "insert into t values (3, 1, 'x'); insert into t values (1, 1, 'x')"
        )
        left = await rows(bench, "select id from t order by id")

    assert (broken["statement"], broken["line"]) == (2, 2)
    assert (again["code"], again["statement"], again["status"]) == ("already-exists", 2, 409)
    assert left == [(1,), (3,)]


async def test_given_the_same_key_when_sent_again_then_nothing_is_done_twice() -> None:
    text = "insert into t values (1, 1, 'x'); insert into t values (2, 1, 'x')"
    async with running(feed_table(regions=2)) as bench:
        key = {"idempotency-key": "k", "x-statement-sent-ms": str(bench.clock.wall_ms())}
        first = await sent(bench, text, key)
        again = await sent(bench, text, key)
        other = await sent(bench, text, {"idempotency-key": "other"})
        changed = await done(bench, "delete from t where id = 1; select id from t")
        late = await sent(bench, text, key)
        left = await rows(bench, "select id from t")

    assert (first.status, again.status, again.body) == (200, 200, first.body)
    assert (other.status, other.json["code"]) == (409, "already-exists")
    assert (changed.results[-1].rows, late.status, left) == (((2,),), 200, [(2,)])


async def test_given_more_rows_than_a_result_holds_then_it_is_refused_and_never_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dataplane.frontend.sql.reading.ROWS_MAX", 3)
    async with running(feed_table(index(1, 2), regions=2)) as bench:
        await done(bench, FILL)
        many = await refused(bench, "select * from t")
        three = await rows(bench, "select * from t limit 3")
        one = await rows(bench, "select * from t where id = 1")

    assert (many["code"], many["column"], many["found"]) == ("invalid-sql", 15, "more than 3 rows")
    assert "LIMIT n" in many["expected"]
    assert (len(three), len(one)) == (3, 1)


async def test_given_results_of_too_many_bytes_then_the_query_that_has_them_is_refused() -> None:
    """All results of a request share one bound: what a frontend has in memory at once."""
    text = "x" * 40_000
    async with running() as bench:
        for number in range(20):
            await done(bench, f"insert into t values ({number}, 1, '{text}')")
        one = await rows(bench, "select * from t limit 20")
        facts = await refused(bench, ";".join(["select * from t limit 20"] * 25))

    assert len(one) == 20
    assert (facts["code"], facts["column"] % 25) == ("invalid-sql", 23)
    assert "bytes" in facts["found"]


async def test_given_a_request_that_takes_its_time_then_the_rest_is_named() -> None:
    text = "insert into t values (1, 1, 'x'); insert into t values (2, 1, 'x'); select id from t"
    async with running() as bench:
        wall = bench.clock

        async def later(request: object) -> None:
            wall.advance(RUN_MS_MAX)

        bench.way.done = later
        body = await done(bench, text)
        bench.way.done = None
        assert body.rest is not None
        rest = await done(bench, " " * body.rest + text[body.rest :])

    assert (len(body.results), body.rest) == (1, text.index("insert", 5))
    assert [result.offset for result in rest.results] == [
        text.index("insert", 5),
        text.index("select"),
    ]
    assert sorted(rest.results[-1].rows) == [(1,), (2,)]


async def test_given_a_version_that_is_not_known_yet_then_the_frontend_waits_for_it() -> None:
    async with running() as bench, asyncio.TaskGroup() as group:
        newer = feed_table(
            column(2, "a"), column(3, "b", "string"), column(4, "c"), schema_version=2
        )
        version = (bench.catalog.version or 0) + 1
        asked = group.create_task(sent(bench, "select c from t", min_catalog_version=version))
        await asyncio.sleep(0)
        await bench.raise_floor(newer, 1)
        bench.tell(newer)
        got = await asked

    assert got.status == 200, got.body


async def test_given_a_body_that_is_too_large_or_not_one_then_it_is_refused() -> None:
    async with running() as bench:
        large = await sent(bench, "x" * BODY_BYTES_MAX)
        many = await refused(bench, ";".join(["select * from t"] * (STATEMENTS_MAX + 1)))
        bad_key = await sent(bench, "select * from t", {"idempotency-key": "x" * 256})
        unknown = await sent(bench, "select * from t", wait=5)

    assert (large.status, many["code"]) == (413, "invalid-sql")
    assert f"more than {STATEMENTS_MAX}" in many["found"]
    assert (bad_key.status, unknown.status) == (400, 422)


async def test_given_explain_then_the_access_path_is_shown_and_nothing_is_read() -> None:
    async with running(feed_table(index(1, 2), index(2, 3, 2), regions=3)) as bench:
        body = await done(
            bench,
            "explain select * from t; explain select * from t where id = 5;"
            "explain select * from t where id between 1 and 9 order by id;"
            "explain select * from t where a >= 5 limit 1;"
            "explain select * from t where b = 'x' and a < 3",
        )

    assert body.results[0].columns == ("access", "range", "regions", "order")
    assert [result.rows[0] for result in body.results] == [
        ("primary key (id)", "all rows", "3 of 3", "as read"),
        ("primary key (id)", "id = 5", "1 of 3", "as read"),
        ("primary key (id)", "id >= 1 AND id <= 9", "3 of 3", "id"),
        ("index by_2 (a)", "a >= 5", "3 of 3", "as read"),
        ("index by_3_2 (b, a)", "b = 'x' AND a < 3", "3 of 3", "as read"),
    ]


async def test_given_explain_of_a_write_then_its_regions_are_shown_and_nothing_is_written() -> None:
    async with running(feed_table(index(1, 2), regions=3)) as bench:
        calls: list[str] = []

        async def meet(request: httpx.Request) -> None:
            calls.append(request.url.path)

        bench.way.meet = meet
        body = await done(
            bench,
            "explain insert into t (id) values (1), (2), (3), (4), (5), (6), (7), (8);"
            "explain update t set b = 'x' where id = 5; explain delete from t where id = 5",
        )
        explained = list(calls)
        bench.way.meet = None
        left = await rows(bench, "select id from t")
        await done(bench, "insert into t (id) values (5)")
        (checksum,) = [
            each
            for each in (await get(bench, f"{ROWS[:-5]}/checksum")).json["regions"]
            if each["rows"]
        ]

    inserted, updated, deleted = body.results
    assert inserted.columns == ("operation", "access", "keys", "rows", "region", "node")
    lines = [dict(zip(inserted.columns, line, strict=True)) for line in inserted.rows]
    assert {(line["operation"], line["access"]) for line in lines} == {
        ("insert", "primary key (id)")
    }
    counts = [int(str(line["rows"])) for line in lines]
    keys = [str(line["keys"]) for line in lines]
    assert sum(counts) == 8
    assert [text.count("id = ") for text in keys] == [min(count, 3) for count in counts]
    assert [text.endswith("; ..") for text in keys] == [count > 3 for count in counts]
    assert max(counts) > 3
    assert {line["region"] for line in lines} <= {each.region_id for each in bench.table.regions}
    assert {line["node"] for line in lines} == {"dn-1"}
    region = checksum["region_id"]
    assert updated.rows == (("update", "primary key (id)", "id = 5", 1, region, "dn-1"),)
    assert deleted.rows == (("delete", "primary key (id)", "id = 5", 1, region, "dn-1"),)
    assert (left, explained) == ([], [])
    assert [result.rows_written for result in body.results] == [None] * 3


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("explain insert into t values (1, 'x', 'y')", 1, 34),
        ("explain insert into t (id) values (1),\n(1)", 1, 1),
        ("explain delete from t where a = 1", 1, 29),
    ],
)
async def test_given_explain_of_a_write_that_means_nothing_then_its_place_is_told(
    text: str, line: int, column: int
) -> None:
    async with running(feed_table(regions=3)) as bench:
        told = await refused(bench, text)

    assert (told["line"], told["column"]) == (line, column)


async def test_given_a_statement_that_fails_then_the_results_of_those_before_it_are_told() -> None:
    async with running(feed_table(regions=3)) as bench:
        await done(bench, FILL)
        unread = await sent(bench, "select id from t; delete from t")
        failed = await sent(bench, f"select id from t where id > 2; {FILL}")

    assert "results" not in unread.json  # nothing was begun
    assert (failed.json["code"], failed.json["facts"]["statement"]) == ("already-exists", 2)
    assert [each["rows"] for each in failed.json["results"]] == [[[3]]]


@pytest.mark.parametrize("end", ["", f"; {FILL}"], ids=["success", "failure"])
async def test_given_large_results_when_answers_have_no_room_then_the_request_is_sent_again(
    end: str,
) -> None:
    """The results of a text that fails take memory as those of one that does not."""
    async with running() as bench:
        await done(bench, f"{FILL}; insert into t values (5, 1, '{'x' * 100_000}')")
        pages = Reservations("pages", 100_000)
        bench.service = replace(bench.service, pages=pages)
        with pages.hold(1):
            full = await sent(bench, f"select * from t{end}")
            small = await sent(bench, f"select id from t{end}")
        free = await sent(bench, f"select * from t{end}")

    status = 409 if end else 200
    assert (full.status, small.status, free.status) == (503, status, status)
    assert "memory for pages is full" in full.json["facts"]["reason"]
    assert len(free.json["results"][0]["rows"]) == 5
    content_type = "application/problem+json" if end else "application/json"
    assert (free.headers["content-type"], pages.bytes) == (content_type, 0)
