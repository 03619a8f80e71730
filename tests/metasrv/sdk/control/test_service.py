"""Changes: one key however often they are sent, and a 202 followed to its end."""

from typing import Any

import httpx
import pytest

from metasrv.sdk.client import AsyncClient
from metasrv_base.errors import Conflict, MetaError, NotFound, Refused, Unavailable, Unknown
from metasrv_base.wire.api.procedures import ProcedureBody
from metasrv_base.wire.problem.problems import problem_of
from tests.metasrv.sdk.catalog import TABLE_ID, URL, FakeCatalog, answer, region
from tests.metasrv.sdk.samples import small
from tests.metasrv.sdk.shapes import procedure


def service(*script: httpx.Response | MetaError) -> tuple[FakeCatalog, AsyncClient]:
    catalog = FakeCatalog(script=list(script))
    catalog.make(small(), [region(0, None)])
    return catalog, AsyncClient([URL], transport=catalog, patience_ms=1_000)


ENDED = procedure(state="succeeded", done=True, catalog_version=9)


async def test_given_a_created_table_then_its_body_is_the_answer() -> None:
    catalog, client = service()
    assert catalog.table is not None
    catalog.script = [answer(201, catalog.table.model_dump(mode="json"))]

    async with client:
        body = await client.tables.create(small())

    (request,) = catalog.asked
    assert body.id == TABLE_ID
    assert request.headers["prefer"] == "wait=10"
    assert request.headers["idempotency-key"]


async def test_given_lost_answers_when_creating_then_each_copy_has_the_same_key() -> None:
    catalog, client = service(Unknown(), Unavailable(), answer(202, ENDED))

    async with client:
        await client.tables.create(small())

    keys = [one.headers.get("idempotency-key") for one in catalog.asked]
    assert len(set(keys[:3])) == 1


async def test_given_a_202_then_it_is_followed_and_the_table_is_read_at_that_version() -> None:
    waiting = procedure(waiting_for=[{"kind": "lock", "holder": "x", "since": "2026"}])
    catalog, client = service(
        answer(202, procedure()),
        answer(200, waiting, etag='"2"'),
        httpx.Response(304, headers={"etag": '"2"'}),
        answer(200, ENDED),
    )
    seen: list[ProcedureBody] = []

    async with client:
        body = await client.tables.create(small(), on_progress=seen.append)

    assert body.id == TABLE_ID
    assert [one.state for one in seen] == ["running", "running", "running", "succeeded"]
    assert seen[1].waiting_for[0].holder == "x"
    assert catalog.asked[2].headers["if-none-match"] == '"2"'
    assert catalog.asked[-1].url.params["min_version"] == "9"


@pytest.mark.parametrize(
    ("end", "kind", "code"),
    [
        (
            {"state": "failed", "error": {"code": "already-exists", "detail": "d", "facts": {}}},
            Conflict,
            "already-exists",
        ),
        (
            {"state": "rolled_back", "error": {"code": "not-found", "detail": "d", "facts": {}}},
            NotFound,
            "not-found",
        ),
        ({"state": "cancelled"}, Conflict, "action-not-allowed"),
        ({"state": "poisoned", "done": False}, Conflict, "action-not-allowed"),
    ],
)
async def test_given_a_procedure_that_did_not_succeed_then_its_error_is_raised(
    end: dict[str, Any], kind: type[MetaError], code: str
) -> None:
    ended = procedure(**{"done": True, **end})
    _, client = service(answer(202, procedure()), answer(200, ended))

    async with client:
        with pytest.raises(kind) as raised:
            await client.tables.drop("t")

    assert raised.value.code == code
    assert raised.value.facts["procedure_id"] == ended["id"]


async def test_given_a_change_that_somebody_cancelled_then_it_says_who_and_why() -> None:
    asked = {"action": "cancel", "by": "ann", "at": "2026-01-01T00:00:00Z", "reason": "too slow"}
    ended = procedure(done=True, state="cancelled", controls=[asked])
    _, client = service(answer(200, ended))

    async with client:
        with pytest.raises(Conflict) as raised:
            await client.procedures.wait(ended["id"])

    detail = str(problem_of(raised.value, "", "")[2]["detail"])
    assert detail.startswith("create_table of main.public.t is cancelled. Cancelled by ann at")
    assert detail.endswith(": too slow.")


async def test_given_a_procedure_that_goes_on_then_the_outcome_is_unknown_and_named() -> None:
    _, client = service(answer(202, procedure()))

    async with client:
        with pytest.raises(Unknown) as raised:
            await client.tables.drop("t", wait_s=0)

    assert raised.value.facts["procedure_id"] == procedure()["id"]


@pytest.mark.parametrize(
    ("wait_s", "preferred"), [(0, "wait=0"), (0.7, "wait=0"), (3, "wait=3"), (60, "wait=10")]
)
async def test_given_a_wait_when_a_change_is_sent_then_the_server_waits_no_longer(
    wait_s: float, preferred: str
) -> None:
    catalog, client = service(answer(202, procedure()))

    async with client:
        started = await client.nodes.drain("dn-1", "new disks", wait_s=wait_s)

    assert (started.state, len(catalog.asked)) == ("running", 1)
    assert catalog.asked[0].headers["prefer"] == preferred


async def test_given_no_wait_when_nobody_leads_then_a_change_is_sent_again() -> None:
    catalog, client = service(Unavailable("no-leader"), answer(202, procedure()))

    async with client:
        started = await client.nodes.drain("dn-1", "new disks", wait_s=0)

    assert (started.state, len(catalog.asked)) == ("running", 2)


async def test_given_less_than_a_second_when_followed_then_no_server_waits_longer() -> None:
    catalog, client = service(answer(202, procedure()), *[answer(200, procedure())] * 9)

    async with client:
        with pytest.raises(Unknown):
            await client.tables.drop("t", wait_s=0.3)

    assert {one.headers.get("prefer") for one in catalog.asked[1:]} == {None}


async def test_given_a_refusal_then_it_is_not_sent_again() -> None:
    catalog, client = service(Refused("invalid-identifier", name="1"))

    async with client:
        with pytest.raises(Refused, match="invalid-identifier"):
            await client.tables.rename("t", "1")

    assert len(catalog.asked) == 1


async def test_given_a_spec_of_another_shape_then_nothing_is_sent() -> None:
    catalog, client = service()

    async with client:
        with pytest.raises(Refused) as raised:
            await client.tables.create({"name": "t", "colums": []})

    assert catalog.asked == []
    errors = raised.value.facts["errors"]
    assert isinstance(errors, tuple)
    assert {one.pointer for one in errors} == {"/columns", "/primary_key", "/colums"}


@pytest.mark.parametrize("name", ["", ".", "a..b", "a.b.c.d"])
async def test_given_no_name_of_a_table_then_it_is_refused(name: str) -> None:
    _, client = service()

    async with client:
        with pytest.raises(Refused, match="invalid-identifier"):
            await client.tables.get(name)


@pytest.mark.parametrize("path", ["/v1/procedures", "/v1/failovers"])
async def test_given_more_than_a_page_then_the_list_goes_on_as_far_as_it_is_wanted(
    path: str,
) -> None:
    def page(token: str | None) -> httpx.Response:
        return answer(200, {"procedures": [procedure()] * 2, "next_page_token": token})

    catalog, client = service(page("a"), page("b"), page(None))

    async with client:
        lists = client.procedures if path == "/v1/procedures" else client.failovers
        found = await lists.list(limit=3)

    assert len(found) == 3
    assert [dict(one.url.params) for one in catalog.asked] == [
        {"page_size": "3"},
        {"page_size": "3", "page_token": "a"},
    ]


class Scripted(httpx.AsyncBaseTransport):
    """Answers, or fails, as its script says; then answers with a procedure."""

    def __init__(self, *script: httpx.Response | httpx.TransportError) -> None:
        self.script = list(script)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        event = self.script.pop(0) if self.script else answer(200, procedure())
        if isinstance(event, httpx.TransportError):
            raise event
        return event


REFUSED = httpx.ConnectError("refused")
ELECTION = httpx.Response(
    503, json=problem_of(Unavailable("no-leader"), "/v1/procedures/p-1", "test")[2]
)


@pytest.mark.parametrize(
    ("script", "is_answered"),
    [
        ([REFUSED], False),
        ([httpx.RemoteProtocolError("SSH-2.0")], False),
        ([httpx.ConnectTimeout("silent"), httpx.ReadError("reset")], True),
        ([ELECTION, REFUSED, REFUSED], True),
    ],
    ids=["refused", "no HTTP", "silent", "an election, and then a restart"],
)
async def test_given_a_service_that_must_run_then_only_an_address_without_a_server_fails_at_once(
    script: list[httpx.Response | httpx.TransportError], is_answered: bool
) -> None:
    transport = Scripted(*script)
    async with AsyncClient([URL], transport=transport, patience_ms=10_000) as client:
        client.expect_running()
        if is_answered:
            assert (await client.procedures.get("p-1")).state == "running"
            return
        with pytest.raises(Unavailable):
            await client.procedures.get("p-1")
        assert transport.script == []


async def test_given_a_service_that_may_start_later_when_refused_then_it_is_asked_again() -> None:
    transport = Scripted(REFUSED, REFUSED)
    async with AsyncClient([URL], transport=transport, patience_ms=10_000) as client:
        assert (await client.procedures.get("p-1")).state == "running"


async def test_given_events_of_a_service_that_must_run_when_refused_then_it_fails_at_once() -> None:
    async with AsyncClient([URL], transport=Scripted(REFUSED), patience_ms=60_000) as client:
        client.expect_running()
        with pytest.raises(Unavailable):
            await anext(client.events(7))
