"""Resources of a client: what their calls send, and what the client shows of itself."""

from collections.abc import Callable

import pytest

from metasrv.sdk import Client, Conflict, NotFound, connect
from tests.metasrv.cli.rest import serving

PROCEDURE = "018f0000-0000-7000-8000-000000000000"
STEERING: dict[str, Callable[[Client], object]] = {
    "cancel": lambda client: client.procedures.cancel(PROCEDURE),
    "pause": lambda client: client.procedures.pause(PROCEDURE),
    "resume": lambda client: client.procedures.resume(PROCEDURE),
    "retry": lambda client: client.procedures.retry(PROCEDURE),
    "throttle": lambda client: client.procedures.throttle(PROCEDURE, 50, rows_per_s=2_000),
}
READS: dict[str, Callable[[Client], object]] = {
    "/v1/catalogs": lambda client: client.catalogs.list(as_of="17"),
    "/v1/catalogs/main/schemas": lambda client: client.schemas.list(as_of="17"),
    "/v1/catalogs/main/schemas/public/tables": lambda client: client.tables.list(as_of="17"),
    "/v1/catalogs/main/schemas/public/tables/t": lambda client: client.tables.get("t", "17"),
    "/v1/catalogs/main/schemas/public/tables/t/route": lambda client: client.tables.route(
        "t", as_of="version:17"
    ),
    "/v1/catalogs/main/schemas/public/tables/t/indexes": lambda client: client.indexes.list(
        "t", as_of="17"
    ),
    "/v1/regions": lambda client: client.regions.list("dn-1", 1024, as_of="17"),
}


@pytest.mark.parametrize("action", STEERING)
def test_given_a_procedure_when_steered_then_the_call_has_the_name_of_the_action(
    action: str,
) -> None:
    path = f"/v1/procedures/{PROCEDURE}/{action}"
    with serving() as rest, connect(rest.url) as client:
        rest.answers[("POST", path)] = Conflict("action-not-allowed", action=action)
        with pytest.raises(Conflict, match="action-not-allowed"):
            STEERING[action](client)

    body = {"percent": 50, "rows_per_s": 2_000} if action == "throttle" else None
    assert [(one.path, one.body) for one in rest.asked] == [(path, body)]


@pytest.mark.parametrize("path", READS)
def test_given_a_version_when_read_as_of_it_then_it_is_asked_for(path: str) -> None:
    with serving() as rest, connect(rest.url) as client, pytest.raises(NotFound):
        READS[path](client)

    (asked,) = rest.asked
    assert asked.path.partition("?")[0] == path
    assert "as_of=version%3A17" in asked.path
    assert ("node=dn-1" in asked.path) == (path == "/v1/regions")


def test_given_an_index_when_created_then_it_is_a_spec_as_that_of_a_table() -> None:
    path = "/v1/catalogs/main/schemas/public/tables/t/indexes"
    with serving() as rest, connect(rest.url) as client:
        rest.answers[("POST", path)] = Conflict("already-exists", what="index", name="i")
        with pytest.raises(Conflict):
            client.indexes.create("t", {"name": "i", "columns": ["a"], "unique": True})

    (asked,) = rest.asked
    assert (asked.body["name"], asked.body["columns"], asked.body["unique"]) == ("i", ["a"], True)


def test_given_limits_of_a_catalog_when_altered_then_the_named_ones_alone_are_sent() -> None:
    with serving() as rest, connect(rest.url) as client:
        rest.answers[("PATCH", "/v1/catalogs/acme")] = Conflict("tenant-limit", limit="tables")
        with pytest.raises(Conflict, match="tenant-limit"):
            client.catalogs.alter("acme", limits={"tables": 5, "regions": None})

    (asked,) = rest.asked
    assert asked.body == {"settings": {}, "limits": {"tables": 5, "regions": None}}


def test_given_a_client_and_a_table_when_shown_then_it_is_said_what_they_are_of() -> None:
    with serving() as rest, connect(rest.url) as client:
        assert repr(client) == f"<Client of {rest.url}>"
        assert repr(client.table("t")) == "<table main.public.t>"
