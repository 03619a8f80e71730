"""Any server takes any request: what only the leader can answer is passed on, once."""

import asyncio

import httpx
import pytest

from keys.model.cluster import LeaderRecord
from tests.metasrv.api.rig import CLUSTER, TABLES, beat, follower_of, leader, registration, spec

WAIT = {"Prefer": "wait=10"}


@pytest.mark.case("input 77")
@pytest.mark.case("catalog 137", "catalog 147")
async def test_given_a_follower_when_it_is_asked_to_write_then_its_own_reads_show_it() -> None:
    async with leader() as led, follower_of(led) as other:
        made = await other.client.post(TABLES, json=spec(), headers=WAIT)

        assert made.status_code == 201, made.text
        assert made.json()["regions"][0]["address"] == "http://dn-1:9000"
        assert other.version == int(made.headers["catalog-version"])
        read = await other.client.get(f"{TABLES}/t")
        assert read.json()["id"] == made.json()["id"]
        assert made.headers["x-request-id"] != read.headers["x-request-id"]
        assert len(made.headers.get_list("x-request-id")) == 1


async def test_given_a_follower_when_asked_for_what_the_leader_knows_then_it_answers() -> None:
    async with leader() as led, follower_of(led) as other:
        await led.make()

        nodes = (await other.client.get("/v1/nodes")).json()["nodes"]
        procedures = (await other.client.get("/v1/procedures")).json()["procedures"]
        regions = (await other.client.get("/v1/regions")).json()["regions"]
        refused = await other.client.delete(f"{TABLES}/nope", headers=WAIT)

        assert [node["id"] for node in nodes] == ["dn-1", "dn-2"]
        assert [body["kind"] for body in procedures] == ["create_table"]
        assert [region["table"] for region in regions] == ["main.public.t"]
        assert (refused.status_code, refused.json()["code"]) == (404, "table-not-found")


async def test_given_a_marked_request_when_the_server_does_not_lead_then_no_second_hop() -> None:
    async with leader() as led, follower_of(led) as other:
        answer = await other.client.post(TABLES, json=spec(), headers={"Metasrv-Forwarded": "ms-3"})

        assert (answer.status_code, answer.json()["code"]) == (503, "no-leader")
        assert led.version == 1


@pytest.mark.case("input 78")
async def test_given_no_leader_then_reads_go_on_and_writes_are_not_attempted() -> None:
    async with leader() as led, follower_of(led) as other:
        await led.make()
        await other.state.follower.wait_for(led.version, deadline_ms=2_000)
        other.state.heard(None)

        read = await other.client.get(f"{TABLES}/t")
        write = await other.client.delete(f"{TABLES}/t")
        nodes = await other.client.get("/v1/nodes")
        cluster = await other.client.get("/v1/cluster")

        assert read.status_code == 200
        for answer in (write, nodes):
            assert (answer.status_code, answer.json()["code"]) == (503, "no-leader")
            assert answer.headers["retry-after"] == "1"
        assert cluster.status_code == 200
        assert cluster.json()["leader"]["id"] == "ms-1"


@pytest.mark.parametrize(
    ("error", "method", "status", "code"),
    [
        (httpx.ConnectError("refused"), "POST", 503, "no-leader"),
        (httpx.ReadError("reset"), "POST", 504, "outcome-unknown"),
        (httpx.ReadTimeout("silent"), "POST", 504, "outcome-unknown"),
        (httpx.ReadError("reset"), "GET", 503, "no-leader"),
    ],
)
@pytest.mark.case("input 80")
async def test_given_a_leader_that_does_not_answer_then_only_lost_writes_are_unknown(
    error: httpx.RequestError, method: str, status: int, code: str
) -> None:
    def fail(request: httpx.Request) -> httpx.Response:
        raise error

    async with leader() as led, follower_of(led) as other:
        other.transport = httpx.MockTransport(fail)
        other.__post_init__()
        path = TABLES if method == "POST" else "/v1/nodes"
        body = spec() if method == "POST" else None

        answer = await other.client.request(method, path, json=body)

        assert (answer.status_code, answer.json()["code"]) == (status, code)


async def test_given_a_long_poll_passed_on_when_the_follower_ends_then_it_may_be_asked_again() -> (
    None
):
    async def silent(_: httpx.Request) -> httpx.Response:
        other.state.stop()
        await asyncio.Event().wait()
        raise AssertionError

    async with leader() as led, follower_of(led) as other, asyncio.timeout(120):
        other.transport = httpx.MockTransport(silent)
        other.__post_init__()
        path = "/v1/procedures/018f3c0a-0000-7000-8000-000000000000"

        answer = await other.client.get(path, headers={"Prefer": "wait=60"})

        assert (answer.status_code, answer.json()["code"]) == (503, "no-leader")


@pytest.mark.parametrize(
    ("method", "status", "code"), [("POST", 504, "outcome-unknown"), ("GET", 503, "no-leader")]
)
async def test_given_a_silent_leader_when_another_leads_then_it_is_not_waited_for(
    method: str, status: int, code: str
) -> None:
    async def stopped(_: httpx.Request) -> httpx.Response:
        for server in ("ms-1", "ms-3", "ms-4"):
            other.state.heard(LeaderRecord(server=server, url=f"http://{server}", lease="1"))
        await asyncio.Event().wait()
        raise AssertionError

    async with leader() as led, follower_of(led) as other:
        other.transport = httpx.MockTransport(stopped)
        other.__post_init__()
        path = TABLES if method == "POST" else "/v1/nodes"
        body = spec() if method == "POST" else None

        answer = await other.client.request(method, path, json=body)

        assert (answer.status_code, answer.json()["code"]) == (status, code)


@pytest.mark.case("input 77")
async def test_given_a_follower_when_a_node_speaks_to_it_then_421_with_the_leader() -> None:
    async with leader() as led, follower_of(led) as other:
        said = beat("dn-1", 2).model_dump(mode="json")

        away = await other.client.put("/internal/v1/nodes/dn-1/heartbeat", json=said)
        heard = await led.client.put("/internal/v1/nodes/dn-1/heartbeat", json=said)

        assert (away.status_code, away.json()["code"]) == (421, "not-leader")
        assert away.json()["facts"]["leader_url"] == "http://ms-1"
        assert heard.status_code == 200, heard.text
        assert heard.json()["catalog_version"] == led.version


async def test_given_registrations_that_make_no_sense_then_they_are_refused() -> None:
    async with leader() as one:
        path = "/internal/v1/nodes/{}/register"
        cases = [
            ("dn-3", {"address": "http://evil@host:1"}, 422),
            ("dn-3", {"address": "ftp://host:1"}, 422),
            ("dn-3", {"address": "http://host:0"}, 422),
            ("dn-3", {"role": "frontend"}, 422),
            ("dn-4", {}, 422),
            ("dn-3", {"cluster_id": "other"}, 409),
            ("dn-3", {}, 200),
        ]
        for node, changes, status in cases:
            body = registration("dn-3", **changes).model_dump(mode="json")
            answer = await one.client.post(path.format(node), json=body)
            assert answer.status_code == status, (changes, answer.text)

        known = (await one.client.get("/v1/nodes/dn-3")).json()
        assert (known["state"], known["heard_ms_ago"]) == ("alive", None)


async def test_given_the_cluster_then_it_says_who_leads_and_who_is_up() -> None:
    async with leader() as led, follower_of(led) as other:
        body = (await other.client.get("/v1/cluster")).json()

        assert (body["cluster_id"], body["server_id"]) == (CLUSTER, "ms-2")
        assert body["leader"] == {"id": "ms-1", "url": "http://ms-1", "term": led.term.number}
        assert [(one["id"], one["leads"]) for one in body["metasrvs"]] == [("ms-1", True)]


async def test_given_a_leader_whose_lease_may_have_ended_then_it_acts_no_more() -> None:
    async with leader() as one:
        one.state.is_valid = lambda: False

        answer = await one.client.post(TABLES, json=spec())
        beaten = await one.client.put(
            "/internal/v1/nodes/dn-1/heartbeat", json=beat("dn-1", 2).model_dump(mode="json")
        )
        one.state.heard(LeaderRecord(server="ms-9", url="http://ms-9", lease="9"))
        redirected = await one.client.put(
            "/internal/v1/nodes/dn-1/heartbeat", json=beat("dn-1", 2).model_dump(mode="json")
        )

        assert (answer.status_code, beaten.status_code) == (503, 503)
        assert redirected.json()["facts"]["leader_url"] == "http://ms-9"
