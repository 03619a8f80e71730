"""`metasrv events`: a line for each, and where the service was asked to begin."""

import json

from metasrv_base.errors import Refused
from tests.metasrv.cli.conftest import Run
from tests.metasrv.cli.rest import Rest
from tests.metasrv.sdk.control.event_servers import position, reset, version

EVENTS = ("GET", "/v1/events")
CLUSTER: dict[str, object] = {
    "cluster_id": "c",
    "server_id": "ms-1",
    "leader": None,
    "metasrvs": [],
    "catalog_version": 42,
    "stale": False,
    "version": "0",
}


def served(rest: Rest, *parts: bytes) -> None:
    rest.answers[EVENTS] = (200, b"".join(parts))
    rest.answers["GET", "/v1/cluster"] = (200, CLUSTER)


def test_given_events_when_listed_then_a_line_for_each_up_to_now(run: Run, rest: Rest) -> None:
    served(rest, version(23), version(24), position(42), version(43))

    found = run("events", METASRV_URL=rest.url)

    assert found.exit_code == 0
    first, second = found.stdout.splitlines()
    assert first.split() == ["23", "2026-01-01T00:00:00Z", "catalog.created", "c23", "(id", "0)"]
    assert second.split()[0] == "24"


def test_given_json_then_a_document_a_line(run: Run, rest: Rest) -> None:
    served(rest, version(23, 2), position(42))

    found = run("events", "--since", "22", "--json", METASRV_URL=rest.url)

    documents = [json.loads(line) for line in found.stdout.splitlines()]
    assert [each["catalog_id"] for each in documents] == [0, 1]
    assert documents[0]["type"] == "catalog.created"


def test_given_a_reset_then_it_is_said_beside_the_events(run: Run, rest: Rest) -> None:
    served(rest, reset(40), version(41), position(42))

    found = run("events", "--since", "3", "--table", "t", METASRV_URL=rest.url)

    assert found.stderr.split()[:2] == ["40", "reset:"]
    assert found.stdout.split()[0] == "41"
    (asked,) = [one for one in rest.asked if one.path.startswith("/v1/events")]
    assert asked.path == "/v1/events?table=t"


def test_given_names_that_make_no_sense_then_the_refusal_and_exit_1(run: Run, rest: Rest) -> None:
    served(rest)
    rest.answers[EVENTS] = Refused(
        "invalid-request", pointer="/schema", expected="catalog.schema", found="a.b.c"
    )

    found = run("events", "--schema", "a.b.c", METASRV_URL=rest.url)

    assert found.exit_code == 1
    assert "a.b.c" in found.stderr
