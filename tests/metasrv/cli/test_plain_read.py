"""Lists that are read without the SDK: the same as with it, and left to it in any doubt."""

import json
import socket
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from metasrv.cli.plain_read import ANSWER_BYTES_MAX, listed
from metasrv_base.errors import MetaError, Unavailable
from tests.metasrv.cli.answers import TABLES
from tests.metasrv.cli.conftest import Run
from tests.metasrv.cli.rest import LEARN, Rest

TABLE = {"id": 7, "name": "t", "version": 2, "created_at": "2013-01-01T00:00:00Z"}
WHOLE: dict[str, Any] = {**TABLE, "dropped_at": None}


def page(*tables: dict[str, Any], token: str | None = None) -> tuple[int, Any]:
    return 200, {"tables": list(tables), "catalog_version": 1, "next_page_token": token}


def test_given_pages_when_listed_then_all_items_come_and_the_query_is_repeated(rest: Rest) -> None:
    tokens = {"": "b", "b": "c", "c": None}

    def answer(_method: str, path: str) -> None:
        token = parse_qs(urlsplit(path).query).get("page_token", [""])[0]
        rest.answers["GET", "/v1/x"] = page({"name": token or "a"}, token=tokens[token])

    rest.on_request = answer

    items = listed(rest.url, "/v1/x", "tables", {"prefix": "é&"}, "secret")

    assert [item["name"] for item in items or ()] == ["a", "b", "c"]
    queries = [parse_qs(urlsplit(request.path).query) for request in rest.asked]
    assert [query["prefix"] for query in queries] == [["é&"]] * 3
    assert {request.bearer for request in rest.asked} == {"Bearer secret"}


@pytest.mark.parametrize(
    "answer",
    [
        Unavailable("not-ready"),
        (404, {}),
        (200, []),
        (200, {"tables": 1}),
        (200, {"tables": [1]}),
        (200, "x" * ANSWER_BYTES_MAX),
    ],
    ids=["problem", "no route", "a list", "a number", "of numbers", "too long"],
)
def test_given_another_answer_when_listed_then_there_is_none(
    rest: Rest, answer: tuple[int, Any] | MetaError
) -> None:
    rest.answers["GET", "/v1/x"] = answer

    assert listed(rest.url, "/v1/x", "tables", {}, None) is None


@pytest.mark.parametrize("url", ["http://[", "ftp://127.0.0.1", "http://127.0.0.1:1", "", "h:x"])
def test_given_no_service_when_listed_then_there_is_no_answer(url: str) -> None:
    assert listed(url, "/v1/x", "tables", {}, None) is None


@pytest.mark.usefixtures("impatient")
def test_given_a_server_that_is_silent_when_listed_then_the_command_does_not_hang() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"

        assert listed(url, "/v1/x", "tables", {}, "secret") is None


def test_given_an_address_that_is_not_ours_when_listed_then_nothing_is_sent_there(
    rest: Rest,
) -> None:
    rest.answers["GET", "/v1/x"] = page(WHOLE)
    url = rest.url.replace("127.0.0.1", "[::ffff:127.0.0.1]")

    assert listed(url, "/v1/x", "tables", {}, "secret") is None
    assert rest.asked == []


@pytest.mark.parametrize("words", [["table", "list"], ["table", "list", "--dropped"]], ids=" ".join)
def test_given_tables_when_listed_then_both_ways_show_the_same(
    run: Run, rest: Rest, words: list[str]
) -> None:
    dropped = {**WHOLE, "dropped_at": "2013-01-02T00:00:00Z"}
    rest.answers["GET", TABLES] = page(WHOLE, dropped)
    plainly = run(*words, "--json", METASRV_URL=rest.url)
    fresh = "http://127.0.0.1:1"
    rest.answers["GET", LEARN] = (200, {"metasrvs": [{"url": rest.url}]})

    by_sdk = run(*words, "--json", METASRV_URL=f"{fresh},{rest.url}")

    assert json.loads(plainly.stdout) == json.loads(by_sdk.stdout) == [WHOLE, dropped]
    assert ("include_dropped=true" in rest.asked[0].path) == ("--dropped" in words)


@pytest.mark.usefixtures("impatient")
def test_given_a_refusal_when_tables_are_listed_then_it_is_told_as_ever(
    run: Run, rest: Rest
) -> None:
    rest.answers["GET", TABLES] = Unavailable("no-leader")

    refused = run("table", "list", METASRV_URL=rest.url)
    unnamed = run("table", "list", "a.b.c", METASRV_URL=rest.url)

    assert (refused.exit_code, unnamed.exit_code) == (1, 1)
    assert "(no-leader)" in refused.stderr
    assert "(invalid-identifier)" in unnamed.stderr
