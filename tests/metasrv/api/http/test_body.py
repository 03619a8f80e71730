"""Every bad request is refused as the catalogue says, changes nothing, and harms nobody."""

import ast
from pathlib import Path

import pytest

from metasrv.api.http.body import BodyLimits
from metasrv_base.wire.problem.problems import Problem
from scripts.documents.conformance import marked
from tests.metasrv.api import bad_nodes
from tests.metasrv.api.bad_requests import Row, rows
from tests.metasrv.api.raw import Sent, send
from tests.metasrv.api.rig import TABLES, Server, leader, spec

pytestmark = pytest.mark.badinput
ROWS = [*rows(), *bad_nodes.rows(), *bad_nodes.of_holders()]
ANSWER_BYTES_MAX = 20_000  # 50 faults of 200 characters, twice


@pytest.mark.case(
    "input 1-24",
    "input 30-52",
    "input 54-57",
    "input 62-65",
    "input 67",
    "input 71",
    "input 81",
    "input 84",
    "input 86",
    "input 89",
    "input 92-93",
    "input 95-96",
    "input 98",
    "input 103",
)
@pytest.mark.parametrize("number", sorted({row.number for row in ROWS}))
async def test_given_bad_requests_then_each_is_refused_and_nothing_changed(number: int) -> None:
    """The cases of one row share a server: none of them leaves a trace."""
    async with leader() as one:
        await one.make("held")
        await one.make("also")
        for row in (row for row in ROWS if row.number == number):
            await refused(one, row)


async def refused(one: Server, row: Row) -> None:
    version, revision = one.version, one.kv.revision

    got = await send(one.app, row.sent)

    assert (got.status, got.json["code"]) == (row.status, row.code), (row.what, got.json)
    assert got.headers["content-type"] == "application/problem+json"
    assert got.headers["x-request-id"] == got.json["request_id"]
    assert Problem.model_validate(got.json).status == row.status
    assert len(got.body) < ANSWER_BYTES_MAX
    assert (one.version, one.kv.revision) == (version, revision), row.what
    await is_alive(one)


async def is_alive(one: Server) -> None:
    assert (await one.client.get("/livez")).status_code == 200
    assert (await one.client.get(f"{TABLES}/held")).status_code == 200


def test_given_the_table_then_its_rows_are_those_that_are_marked() -> None:
    test = test_given_bad_requests_then_each_is_refused_and_nothing_changed.__name__
    marks = marked(ast.parse(Path(__file__).read_text()))

    assert {number for name, _, number in marks if name == test} == {row.number for row in ROWS}


async def test_given_a_wrong_method_then_every_right_one_is_named() -> None:
    async with leader() as one:
        got = await send(one.app, Sent("PATCH", TABLES, {}, ()))

        assert got.headers["allow"] == "GET, HEAD, POST"


@pytest.mark.case("input 25")
async def test_given_a_body_that_does_not_arrive_then_the_request_ends() -> None:
    async with leader(limits=BodyLimits(body_timeout_ms=20)) as one:
        got = await send(one.app, Sent(parts=(b"{",), chunked=True, stalls=True))

        assert (got.status, got.json["code"]) == (408, "request-timeout")


@pytest.mark.case("input 27")
async def test_given_headers_of_200_kb_then_they_are_refused() -> None:
    """Where the HTTP server lets them through."""
    async with leader() as one:
        got = await send(one.app, Sent("GET", "/v1/cluster", {"x-large": "x" * 200_000}, ()))

        assert (got.status, got.json["code"]) == (431, "headers-too-large")


@pytest.mark.case("input 104")
async def test_given_headers_that_ask_for_something_else_then_they_are_not_heard() -> None:
    asking = {
        "accept": "text/xml",
        "x-http-method-override": "DELETE",
        "x-forwarded-for": "10.0.0.1",
        "x-original-url": "/v1/cluster",
    }
    async with leader() as one:
        await one.make()

        got = await send(one.app, Sent("GET", f"{TABLES}/t", asking, ()))

        assert (got.status, got.headers["content-type"]) == (200, "application/json")
        assert got.json["name"] == "t"
        assert (await one.client.get(f"{TABLES}/t")).status_code == 200


async def test_given_a_request_id_then_it_is_echoed_unless_a_log_must_not_hold_it() -> None:
    async with leader() as one:
        for given, is_kept in (("job-7.step_2", True), ("a b", False), ("x" * 65, False)):
            got = await send(one.app, Sent("GET", "/v1/nothing", {"x-request-id": given}, ()))

            assert (got.headers["x-request-id"] == given) is is_kept
            assert got.json["request_id"] == got.headers["x-request-id"]


async def test_given_many_faults_then_each_is_named_with_its_pointer() -> None:
    async with leader() as one:
        answer = await one.client.post(
            TABLES, json=spec("1", primary_key=["nope"], replicas=16, options={"ttl": "soon"})
        )

        pointers = {error["pointer"] for error in answer.json()["errors"]}
        assert pointers == {"/name", "/primary_key/0", "/replicas", "/options/ttl"}


async def test_given_an_invalid_body_then_its_place_is_a_json_pointer() -> None:
    async with leader() as one:
        wrong = spec()
        wrong["columns"][1]["typ"] = wrong["columns"][1].pop("type")

        answer = await one.client.post(TABLES, json=wrong)

        pointers = {error["pointer"] for error in answer.json()["errors"]}
        assert pointers == {"/columns/1/type", "/columns/1/typ"}
