"""The client against real sockets: what is not done, what is perhaps done, and who is asked."""

import json
import socket

import pytest

from metasrv_base.errors import (
    Conflict,
    Corrupt,
    MetaError,
    NotLeader,
    Refused,
    Unavailable,
    Unknown,
)
from metasrv_base.wire.api.changes import RenameRequest
from metasrv_base.wire.api.tables import TableList
from metasrv_base.wire.http.client import ANSWER_WITHIN_MS, HttpClient, has_no_server
from metasrv_base.wire.problem.problems import problem_of
from tests.metasrv_base.wire.http.http_server import HANG_UP, SILENCE, Reply, serving

KEY = {"Idempotency-Key": "k-1"}
LONG_MS = 60_000
"""Enough for an answer, on a machine of any load."""
SHORT_MS = 1_000
"""Waited for in vain; a request is sent within it, on a machine of any load."""
TRY_MS = {True: SHORT_MS, False: LONG_MS}
"""The limit of one try, by whether the server is silent."""


def nobody() -> str:
    """A URL where nothing listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{held.getsockname()[1]}"


def problem(error: MetaError) -> Reply:
    status, headers, body = problem_of(error, "/x", "r-1")
    return Reply(status, body, headers)


async def test_given_a_server_when_asked_then_the_request_arrives_as_said() -> None:
    async with (
        serving(Reply(201, {"ok": 1}, {"ETag": "7"})) as one,
        HttpClient([one.url + "/"], token="secret") as client,
    ):
        answer = await client.request(
            "POST",
            "/v1/x",
            json=RenameRequest(new_name="b"),
            headers=KEY,
            params={"dry_run": True, "n": 7},
            deadline_ms=LONG_MS,
        )

    assert (answer.status, answer.json(), answer.headers["etag"]) == (201, {"ok": 1}, "7")
    (asked,) = one.asked
    assert (asked.method, asked.target) == ("POST", "/v1/x?dry_run=true&n=7")
    assert json.loads(asked.body) == RenameRequest(new_name="b").model_dump()
    assert asked.headers["content-type"] == "application/json"
    assert asked.headers["idempotency-key"] == "k-1"
    assert asked.headers["authorization"] == "Bearer secret"


async def test_given_nobody_listening_when_asked_then_the_next_server_answers_and_is_kept() -> None:
    async with serving(Reply()) as one, HttpClient([nobody(), one.url]) as client:
        await client.request("POST", "/x", deadline_ms=LONG_MS)

        assert client.urls[0] == one.url
    assert len(one.asked) == 1


async def test_given_nobody_at_all_when_asked_then_it_was_never_attempted() -> None:
    async with HttpClient([nobody(), nobody()]) as client:
        with pytest.raises(Unavailable):
            await client.request("POST", "/x", deadline_ms=LONG_MS)


async def test_given_no_server_of_ours_at_an_address_then_the_error_shows_it() -> None:
    for url in (nobody(), "http://nowhere.invalid:1"):
        async with HttpClient([url]) as client:
            with pytest.raises(Unavailable) as error:
                await client.request("GET", "/x", deadline_ms=LONG_MS)

        assert has_no_server(error.value), url
        assert str(error.value).startswith(f"Not ready: no connection to {url} could be made."), url
        assert not client.has_answered


@pytest.mark.parametrize(
    ("reply", "answers"),
    [(HANG_UP, False), (SILENCE, False), (problem(Unavailable("no-leader")), True)],
)
@pytest.mark.parametrize("is_first", [True, False])
async def test_given_a_server_at_one_address_when_it_fails_then_its_error_is_raised(
    reply: Reply | str, answers: bool, is_first: bool
) -> None:
    async with serving(reply) as one:
        urls = [one.url, nobody()] if is_first else [nobody(), one.url]
        async with HttpClient(urls) as client:
            with pytest.raises(Unavailable) as error:
                await client.request(
                    "GET", "/x", deadline_ms=2 * LONG_MS, try_ms=TRY_MS[reply == SILENCE]
                )

    assert not has_no_server(error.value)
    assert client.has_answered == answers


@pytest.mark.parametrize("fault", [HANG_UP, SILENCE])
async def test_given_a_lost_answer_when_writing_then_it_is_unknown_and_no_other_is_asked(
    fault: str,
) -> None:
    async with (
        serving(fault) as one,
        serving(Reply()) as other,
        HttpClient([one.url, other.url]) as client,
    ):
        with pytest.raises(Unknown):
            await client.request(
                "POST", "/x", deadline_ms=2 * LONG_MS, try_ms=TRY_MS[fault == SILENCE]
            )

    assert (len(one.asked), len(other.asked)) == (1, 0)


@pytest.mark.parametrize("fault", [HANG_UP, SILENCE])
@pytest.mark.parametrize(
    ("method", "headers"), [("GET", {}), ("PUT", {}), ("POST", KEY)], ids=["get", "put", "keyed"]
)
async def test_given_a_lost_answer_when_it_may_be_repeated_then_another_answers(
    fault: str, method: str, headers: dict[str, str]
) -> None:
    async with (
        serving(fault) as one,
        serving(Reply(200, "yes")) as other,
        HttpClient([one.url, other.url]) as client,
    ):
        answer = await client.request(
            method,
            "/x",
            headers=headers,
            deadline_ms=2 * LONG_MS,
            try_ms=TRY_MS[fault == SILENCE],
        )

    assert answer.json() == "yes"
    assert answer.url == other.url


async def test_given_a_lost_answer_when_all_are_silent_then_a_read_is_unavailable() -> None:
    async with serving(SILENCE) as one, HttpClient([one.url]) as client:
        with pytest.raises(Unavailable):
            await client.request("GET", "/x", deadline_ms=100)
        with pytest.raises(Unknown):
            await client.request("POST", "/x", headers=KEY, deadline_ms=SHORT_MS)


async def test_given_a_lost_answer_when_the_next_refuses_then_it_is_still_unknown() -> None:
    async with (
        serving(HANG_UP) as one,
        serving(problem(Refused("unsupported"))) as other,
        HttpClient([one.url, other.url]) as client,
    ):
        with pytest.raises(Unknown):
            await client.request("POST", "/x", headers=KEY, deadline_ms=LONG_MS)

    assert len(other.asked) == 1


async def test_given_a_silent_server_when_the_call_failed_then_the_next_call_asks_another() -> None:
    async with (
        serving(SILENCE) as one,
        serving(Reply()) as other,
        HttpClient([one.url, other.url]) as client,
    ):
        with pytest.raises(Unknown):
            await client.request("POST", "/x", deadline_ms=SHORT_MS)

        await client.request("POST", "/x", deadline_ms=LONG_MS)

    assert (len(one.asked), len(other.asked)) == (1, 1)


async def test_given_a_follower_when_it_names_the_leader_then_the_leader_is_asked() -> None:
    async with serving(Reply(200, "led")) as leader:
        moved = problem(NotLeader(leader_url=leader.url))
        async with serving(moved) as follower, HttpClient([follower.url]) as client:
            first = await client.request("POST", "/x", json={}, deadline_ms=LONG_MS)
            second = await client.request("POST", "/x", json={}, deadline_ms=LONG_MS)

    assert (first.json(), second.json()) == ("led", "led")
    assert (len(follower.asked), len(leader.asked)) == (1, 2)


async def test_given_followers_that_name_each_other_when_asked_then_it_ends() -> None:
    async with serving() as one, serving() as other:
        one.script = [problem(NotLeader(leader_url=other.url))]
        other.script = [problem(NotLeader(leader_url=one.url))]
        async with HttpClient([one.url, other.url]) as client:
            with pytest.raises(NotLeader):
                await client.request("POST", "/x", deadline_ms=LONG_MS)

    assert len(one.asked) + len(other.asked) <= 4


async def test_given_a_leader_url_of_another_scheme_when_named_then_it_is_not_followed() -> None:
    moved = problem(NotLeader(leader_url="https://127.0.0.1:1"))
    async with serving(moved) as one, HttpClient([one.url], token="secret") as client:
        with pytest.raises(NotLeader):
            await client.request("POST", "/x", deadline_ms=LONG_MS)


async def test_given_a_server_without_a_leader_when_asked_then_the_next_is() -> None:
    async with (
        serving(problem(Unavailable("no-leader"))) as one,
        serving(Reply()) as other,
        HttpClient([one.url, other.url]) as client,
    ):
        await client.request("POST", "/x", deadline_ms=LONG_MS)

    assert len(other.asked) == 1


async def test_given_a_problem_when_answered_then_its_error_is_raised_at_once() -> None:
    async with (
        serving(problem(Conflict("already-exists", name="t"))) as one,
        serving(Reply()) as other,
        HttpClient([one.url, other.url]) as client,
    ):
        with pytest.raises(Conflict, match="already-exists") as refused:
            await client.request("POST", "/x", headers=KEY, deadline_ms=LONG_MS)

    assert refused.value.facts["name"] == "t"
    assert other.asked == []


async def test_given_504_when_keyed_then_it_stays_unknown() -> None:
    async with (
        serving(problem(Unknown(procedure_id="p-1"))) as one,
        HttpClient([one.url]) as client,
    ):
        with pytest.raises(Unknown) as unknown:
            await client.request("POST", "/x", headers=KEY, deadline_ms=LONG_MS)

    assert unknown.value.facts["procedure_id"] == "p-1"


async def test_given_a_redirect_when_answered_then_it_is_not_followed() -> None:
    async with (
        serving(Reply(307, None, {"location": "/y"})) as one,
        HttpClient([one.url]) as client,
    ):
        with pytest.raises(Refused):
            await client.request("GET", "/x", deadline_ms=LONG_MS)

    assert [asked.target for asked in one.asked] == ["/x"]


async def test_given_304_when_answered_then_it_is_an_answer() -> None:
    async with serving(Reply(304, b"", {"etag": "7"})) as one, HttpClient([one.url]) as client:
        answer = await client.request("GET", "/x", deadline_ms=LONG_MS)

    assert (answer.status, answer.content) == (304, b"")


async def test_given_an_answer_that_is_no_model_when_read_then_it_is_corrupt() -> None:
    async with (
        serving(Reply(200, {"odd": 1}), Reply(200, b"<html>")) as one,
        HttpClient([one.url]) as client,
    ):
        odd = await client.request("GET", "/x", deadline_ms=LONG_MS)
        page = await client.request("GET", "/x", deadline_ms=LONG_MS)

    with pytest.raises(Corrupt):
        odd.body(TableList)
    with pytest.raises(Corrupt):
        page.json()


async def test_given_a_margin_when_asked_then_the_server_is_told_of_less_time() -> None:
    async with serving(Reply()) as one, HttpClient([one.url]) as client:
        await client.request("POST", "/x", deadline_ms=2 * LONG_MS, try_ms=LONG_MS, margin_ms=500)
        await client.request("POST", "/x", deadline_ms=LONG_MS)

    told = [asked.headers.get(ANSWER_WITHIN_MS) for asked in one.asked]
    assert told == [str(LONG_MS - 500), None]


async def test_given_less_time_than_the_margin_when_one_refuses_then_no_other_is_asked() -> None:
    async with (
        serving(problem(Unavailable("not-ready"))) as one,
        serving(Reply()) as other,
        HttpClient([one.url, other.url]) as client,
    ):
        with pytest.raises(Unavailable):
            await client.request("POST", "/x", deadline_ms=LONG_MS, margin_ms=LONG_MS)

    assert (len(one.asked), len(other.asked)) == (1, 0)
    assert one.asked[0].headers[ANSWER_WITHIN_MS] == "1"


async def test_given_no_time_when_asked_then_nothing_is_sent() -> None:
    async with serving(Reply()) as one, HttpClient([one.url]) as client:
        with pytest.raises(Unavailable):
            await client.request("POST", "/x", deadline_ms=0)

    assert one.asked == []


async def test_given_tls_when_servers_without_are_learnt_then_they_are_left_out() -> None:
    async with HttpClient(["https://a:1"], token="secret") as client:
        client.learn(["http://b:1", "https://c:1/"])

        assert client.urls == ("https://a:1", "https://c:1")


async def test_given_no_tls_when_servers_are_learnt_then_all_are_taken() -> None:
    async with HttpClient(["http://a:1"], token="secret") as client:
        client.learn(["http://b:1", "https://c:1"])

        assert client.urls == ("http://a:1", "http://b:1", "https://c:1")


async def test_given_servers_that_are_replaced_one_by_one_then_the_newest_are_known() -> None:
    async with HttpClient(["http://a:1"]) as client:
        for number in range(100):
            client.learn([f"http://m{number + ahead}:1" for ahead in range(3)])
        client.learn([])

        assert client.urls == ("http://a:1", "http://m99:1", "http://m100:1", "http://m101:1")


async def test_given_one_without_tls_that_another_with_named_when_asked_then_no_token_goes() -> (
    None
):
    async with (
        serving(Reply(200, {})) as one,
        HttpClient([one.url], token="secret", named_by=["https://metasrv:1"]) as client,
        HttpClient([one.url], named_by=["https://metasrv:1"]) as without,
    ):
        with pytest.raises(Unavailable, match="TLS"):
            await client.request("GET", "/v1/x", deadline_ms=LONG_MS)
        assert one.asked == []
        await without.request("GET", "/v1/x", deadline_ms=LONG_MS)

    assert [asked.headers.get("authorization") for asked in one.asked] == [None]
