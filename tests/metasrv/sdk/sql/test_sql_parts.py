"""SQL by the SDK: statements about the catalog go to metasrv, those about rows to frontends."""

import httpx
import orjson
import pytest

from dataplane.frontend.sql.run import RUN_MS_MAX
from metasrv.sdk.client import AsyncClient
from metasrv.sdk.sql import sql_parts
from metasrv.sdk.sql.sql_parts import parts_of
from metasrv_base.errors import Conflict, NotFound, Refused
from metasrv_base.sql.faults import excerpt
from metasrv_base.sql.rows.statement_kinds import is_of_rows
from metasrv_base.sql.split import StatementText
from metasrv_base.wire.http.strict_json import BODY_BYTES_MAX
from metasrv_base.wire.language.sql import StatementResult, with_results
from metasrv_base.wire.problem.problems import problem_of
from tests.metasrv.sdk.catalog import URL, answer
from tests.metasrv.sdk.scene import Frontends, scene
from tests.metasrv.sdk.shapes import procedure

FILL = "insert into t values (1, 10, 'x'), (2, 20, 'y')"


def _client(frontends: Frontends) -> AsyncClient:
    client = AsyncClient([URL], transport=frontends, patience_ms=10_000)
    assert frontends.bench is not None
    client.clock = frontends.bench.clock
    return client


def _divided(text: str) -> list[tuple[str, bool]]:
    return [(part.text.strip(), part.of_rows) for part in parts_of(text)]


def test_given_a_text_then_it_is_divided_by_who_carries_it_out() -> None:
    text = (
        "/* all */ create table t (id int primary key); INSERT into t values (1); explain\n select"
        " * from t; explain drop table t; begin; insert into t values (2); commit; select * from"
        " information_schema.tables; with x as (select 1) select 1"
    )

    assert _divided(text) == [
        ("/* all */ create table t (id int primary key)", False),
        ("INSERT into t values (1); explain\n select * from t", True),
        (
            "explain drop table t; begin; insert into t values (2); commit; select * from"
            " information_schema.tables",
            False,
        ),
        ("with x as (select 1) select 1", True),
    ]
    assert _divided("  ") == [("", False)]


def test_given_a_row_whose_text_names_a_view_then_it_is_a_frontends() -> None:
    text = "insert into t values (1, 1, 'select * from information_schema.tables')"

    assert _divided(text) == [(text, True)]


@pytest.mark.parametrize(
    ("text", "of_rows"),
    [
        ("select * from t where b = 'x from information_schema.tables'", True),
        ("select * from t where b = 'it''s from information_schema.x", True),
        ('select "a from information_schema.b" from t', True),
        ("select * from t /* from information_schema.tables */", True),
        ("explain/**/select a from t", True),
        ('select * from main . "Information_Schema".tables', False),
        ("select a from/**/information_schema.tables where a = 'from t'", False),
    ],
)
def test_given_a_query_then_words_in_quotes_and_comments_do_not_say_whose_it_is(
    text: str, of_rows: bool
) -> None:
    assert is_of_rows(StatementText(text, 0, len(text))) is of_rows


def test_given_many_statements_about_rows_then_each_request_takes_some(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sql_parts, "ROWS_CHARS_MAX", 100)
    text = ";".join([FILL] * 5)

    parts = list(parts_of(text))

    assert [part.number for part in parts] == [0, 2, 4]
    assert all(part.of_rows and len(part.text) <= 100 for part in parts)
    monkeypatch.setattr(sql_parts, "ROWS_STATEMENTS_MAX", 1)
    assert len(list(parts_of(text))) == 5
    assert sql_parts.SqlPart(text, 0, 100, True, 0).text == text[:100]


async def test_given_rows_then_they_are_written_and_read_at_frontends_alone() -> None:
    async with scene() as (frontends, table), _client(frontends) as client:
        frontends.asked.clear()
        written, read = await client.sql(f"{FILL}; select b, id from t order by id")
        by_arrow = await table.get(2)

    assert written.rows_written == 2
    assert read.rows == (("x", 1), ("y", 2))
    assert by_arrow == {"id": 2, "a": 20, "b": "y"}
    assert not [request for request in frontends.asked if request.url.path == "/v1/sql"]


async def test_given_both_then_they_run_in_order_and_a_frontend_knows_what_was_changed() -> None:
    result = {"offset": 0, "applied": True, "catalog_version": 1}
    async with scene() as (frontends, _), _client(frontends) as client:
        frontends.script += [answer(200, {"results": [result]})] * 2
        text = f"{FILL};\ntruncate u;\nselect id from t order by id;drop table u"
        done = await client.sql(text, idempotency_key="k")

    assert [each.applied for each in done] == [None, True, None, True]
    assert [each.offset for each in done] == [
        text.index(word) for word in ("insert", "truncate", "select", "drop")
    ]
    sent = [orjson.loads(each.content) for each in frontends.asked if each.method == "POST"]
    assert [each["text"] for each in sent] == ["truncate u", "drop table u"]
    keys = {each.headers["idempotency-key"] for each in frontends.asked if each.method == "POST"}
    assert len(keys) == 2


@pytest.mark.parametrize("when", ["before", "after"])
async def test_given_a_lost_answer_then_an_insert_is_done_once(when: str) -> None:
    async with scene() as (frontends, table), _client(frontends) as client:
        frontends.faults.append((when, httpx.ReadError("lost")))
        written = await client.sql(FILL, idempotency_key="k")
        again = await client.sql(FILL, idempotency_key="k")
        rows = await table.count()

    assert (written[0].rows_written, rows) == (2, 2)
    assert again == written


async def test_given_a_fault_then_its_place_is_that_in_the_whole_text() -> None:
    result = {"offset": 0, "applied": True, "catalog_version": 1}
    async with scene() as (frontends, _), _client(frontends) as client:
        frontends.script += [answer(200, {"results": [result]})] * 2
        with pytest.raises(Refused) as unread:
            await client.sql("truncate u;\n  select nam from t")
        with pytest.raises(Conflict) as there:
            await client.sql(f"truncate u; {FILL}; {FILL}")
        with pytest.raises(Refused) as open_text:
            await client.sql(f"{FILL}; truncate u; insert into t values ('x")
        frontends.script.append(NotFound("table-not-found", name="u", line=1, column=12))
        with pytest.raises(NotFound) as missing:
            await client.sql("delete from t where id = 7;\n\n drop  table u")

    assert (unread.value.facts["line"], unread.value.facts["column"]) == (2, 10)
    assert unread.value.facts["statement"] == 2
    assert "ine 2, column 10" in str(problem_of(unread.value, "", "")[2]["detail"])
    assert (there.value.code, there.value.facts["statement"]) == ("already-exists", 3)
    assert there.value.facts["column"] == len(f"truncate u; {FILL}; ") + 1
    assert (open_text.value.code, open_text.value.facts["column"]) == (
        "invalid-sql",
        35 + len(f"{FILL}; "),
    )
    assert (missing.value.facts["line"], missing.value.facts["column"]) == (3, 13)


def test_given_the_bounds_then_a_part_of_ascii_fits_into_a_body() -> None:
    assert sql_parts.ROWS_CHARS_MAX * 2 < BODY_BYTES_MAX


async def test_given_a_fault_then_the_results_of_all_statements_before_it_are_told() -> None:
    before = StatementResult(offset=0, applied=True, catalog_version=1)
    results: list[StatementResult] = []
    async with scene() as (frontends, _), _client(frontends) as client:
        text = f"{FILL}; select id from t where id = 2; drop table u; drop table v"
        fault = NotFound("table-not-found", name="v", line=1, column=15, statement=2)
        frontends.script.append(with_results(fault, [before]))
        with pytest.raises(NotFound) as missing:
            await client.sql(text, on_result=results.append)
        with pytest.raises(Conflict):
            await client.sql(f"select id from t; {FILL}", on_result=results.append)

    assert "results" not in missing.value.facts
    assert missing.value.facts["statement"] == 4
    assert [(each.offset, each.rows, each.rows_written, each.applied) for each in results] == [
        (0, (), 2, None),
        (text.index("select"), ((2,),), None, None),
        (text.index("drop"), (), None, True),
        (0, ((1,), (2,)), None, None),
    ]


@pytest.mark.parametrize(
    ("last", "code"), [(FILL, "already-exists"), ("select nam from t", "invalid-sql")]
)
def test_given_the_rest_of_a_text_when_it_fails_then_its_number_is_that_in_the_whole_text(
    last: str, code: str
) -> None:
    """The rest of `insert ..; insert ..; bad` is `bad` alone: statement 1 of what was sent."""
    (whole,) = parts_of(f"{FILL}; insert into t values (5, 1, ';'); {last}")
    rest = whole.rest(whole.source.rindex(last))
    of_sent = {"line": 1, "column": whole.source.rindex(last) + 1}
    numbered = {"statement": 1} if code == "already-exists" else {}

    placed = rest.placed(Refused(code, **of_sent, **numbered))

    done = {"statements_done": 2} if code == "invalid-sql" else {}
    shown = excerpt(whole.source, whole.source.rindex(last))
    assert placed.facts == {**of_sent, "excerpt": shown, "statement": 3, **done}
    assert "statement" not in whole.placed(Refused("invalid-sql", **of_sent)).facts
    assert rest.text == " " * whole.source.rindex(last) + last


async def test_given_rows_whose_time_is_over_when_one_fails_then_its_number_is_its_own() -> None:
    async with scene() as (frontends, table), _client(frontends) as client:
        bench = frontends.bench
        assert bench is not None

        async def later(request: httpx.Request) -> None:
            bench.way.done = None
            bench.clock.advance(RUN_MS_MAX)

        bench.way.done = later
        with pytest.raises(Conflict) as there:
            await client.sql(f"{FILL}; {FILL}")
        rows = await table.count()

    assert (there.value.facts["statement"], rows) == (2, 2)


@pytest.mark.parametrize("between", [" ", "\n", "\n  -- a; b\n"])
def test_given_a_text_of_both_when_a_later_row_is_unreadable_then_its_own_number_is_told(
    between: str,
) -> None:
    """A frontend refuses all of its part for it: the statements before the part alone are done."""
    text = f"truncate u;{between}{FILL};{between}{FILL};{between}select nam from t; {FILL}"
    _, rows = parts_of(text)
    before = rows.text[: rows.text.index("nam")]
    line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1

    facts = rows.placed(Refused("invalid-sql", line=line, column=column, excerpt="")).facts

    assert (facts["statement"], facts["statements_done"]) == (4, 1)
    lines = text.splitlines()
    shown, mark = str(facts["excerpt"]).splitlines()
    assert isinstance(facts["line"], int)
    assert shown.removeprefix("...").removesuffix("...") in lines[facts["line"] - 1]
    assert shown[mark.index("^") :].startswith("nam from t")


async def test_given_a_procedure_that_fails_while_it_is_followed_then_its_statement_is_told() -> (
    None
):
    made = {"offset": 0, "applied": True, "catalog_version": 1}
    failed = procedure(
        state="failed", done=True, error={"code": "unique-violation", "detail": "two", "facts": {}}
    )
    text = f"{FILL};\ntruncate u; create unique index i on t (a); drop table u"
    offset = text.index("create") - text.index("truncate")
    results: list[StatementResult] = []
    async with scene() as (frontends, _), _client(frontends) as client:
        begun = {"offset": offset, "procedure_id": failed["id"], "procedure": procedure()}
        body = {"results": [made, begun], "rest": offset + 35}
        frontends.script += [answer(200, body), answer(200, failed)]
        with pytest.raises(Refused) as violated:
            await client.sql(text, on_result=results.append)

    facts = violated.value.facts
    assert (violated.value.code, facts["statement"]) == ("unique-violation", 3)
    assert (facts["line"], facts["column"], facts["detail"]) == (2, 13, "two")
    assert str(facts["excerpt"]).splitlines()[1] == f"{' ' * 12}^"
    assert len(results) == 2  # the INSERT and the TRUNCATE
