"""A service that is not there, and servers that are not a metasrv: each told apart."""

import json
import socket
from collections.abc import Iterator

import pytest

from metasrv_base.errors import Corrupt
from metasrv_base.wire.problem.problems import error_of, problem_of
from tests.metasrv.cli.answers import TABLES
from tests.metasrv.cli.conftest import Run
from tests.metasrv.cli.rest import Rest

VERSIONS = {
    "an etcd": {"etcdserver": "3.4.23", "etcdcluster": "3.4.0"},
    "a frontend": {"name": "frontend", "frontend_id": "fe-1"},
    "a datanode": {"name": "datanode", "node_id": "dn-1"},
}


@pytest.fixture
def silent() -> Iterator[str]:
    """A port that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize(
    "words",
    [
        ["table", "list"],
        ["count", "t"],
        ["cluster", "get"],
        ["table", "drop", "t"],
        ["events"],
        ["backup", "create", "-"],
    ],
)
def test_given_a_port_without_a_program_then_it_says_so_with_exit_code_2(
    run: Run, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("metasrv.cli.options.PATIENCE_MS", 60_000)

    shown = run(*words, "--metasrv", "http://127.0.0.1:1")

    assert shown.exit_code == 2
    assert "http://127.0.0.1:1 refuses connections" in shown.stderr
    assert "METASRV_PATIENCE=30 waits" in shown.stderr


def test_given_patience_then_a_service_that_is_not_there_is_waited_for(run: Run) -> None:
    asked = ["cluster", "get", "--metasrv", "http://127.0.0.1:1"]

    refused = run(*asked, METASRV_PATIENCE="0.3")
    wrong = run(*asked, METASRV_PATIENCE="soon")

    assert "refuses connections" in refused.stderr
    assert (wrong.exit_code, "METASRV_PATIENCE: soon is no number" in wrong.stderr) == (2, True)


@pytest.mark.usefixtures("impatient")
def test_given_a_host_that_has_no_address_then_the_name_is_what_it_says(run: Run) -> None:
    shown = run("table", "list", "--metasrv", "http://nowhere.invalid:4620")

    assert shown.exit_code == 2
    assert "no host of that name: http://nowhere.invalid:4620" in shown.stderr


@pytest.mark.usefixtures("impatient")
def test_given_a_server_that_is_silent_then_it_says_that_no_answer_came(
    run: Run, silent: str
) -> None:
    shown = run("table", "list", "--metasrv", silent)

    assert shown.exit_code == 2
    assert f"{silent} gave no answer in time" in shown.stderr


@pytest.mark.usefixtures("impatient")
def test_given_https_when_the_server_has_no_tls_then_it_says_tls(run: Run, rest: Rest) -> None:
    shown = run("table", "list", "--metasrv", rest.url.replace("http:", "https:"))

    assert shown.exit_code == 2
    assert "TLS with https://" in shown.stderr
    assert "write http://" in shown.stderr


@pytest.mark.parametrize("kind", VERSIONS)
def test_given_another_server_of_the_cluster_then_it_is_recognised(
    run: Run, rest: Rest, kind: str
) -> None:
    rest.answers[("GET", "/version")] = (200, VERSIONS[kind])

    shown = run("table", "list", "--metasrv", rest.url)

    assert shown.exit_code == 2
    assert f"{rest.url} is {kind}, not a metasrv." in shown.stderr
    assert "--metasrv or METASRV_URL" in shown.stderr


def test_given_a_metasrv_of_another_version_then_its_version_is_said(run: Run, rest: Rest) -> None:
    rest.answers[("GET", "/version")] = (200, {"name": "metasrv", "server_id": "m", "version": "9"})

    shown = run("table", "list", "--metasrv", rest.url)

    assert "is a metasrv of version 9, which does not know this command" in shown.stderr


def test_given_an_address_without_a_scheme_then_http_is_meant(run: Run, rest: Rest) -> None:
    rest.answers[("GET", "/v1/catalogs/main/schemas/public/tables")] = (
        200,
        {"tables": [], "catalog_version": 1, "next_page_token": None},
    )

    shown = run("table", "list", "--json", "--metasrv", rest.url.removeprefix("http://"))

    assert (shown.exit_code, json.loads(shown.stdout)) == (0, [])


@pytest.mark.parametrize("body", [{"a": 1}, [], None, "oops"])
def test_given_a_document_of_something_else_then_the_url_is_named_and_nothing_was_looked_at(
    run: Run, rest: Rest, body: object
) -> None:
    rest.answers["GET", f"{TABLES}/t"] = (200, body)

    shown = run("table", "get", "t", "--metasrv", rest.url)
    as_json = run("table", "get", "t", "--json", "--metasrv", rest.url)

    assert (shown.exit_code, as_json.exit_code) == (2, 2)
    assert f"{rest.url} gave an answer that no metasrv of this version gives." in shown.stderr
    assert "Internal error" not in shown.stderr
    assert "request ." not in shown.stderr
    assert "request ." not in json.loads(as_json.stderr)["detail"]


@pytest.mark.parametrize("status", [301, 401, 418, 500, 502])
def test_given_an_answer_of_a_proxy_then_its_status_is_said(
    run: Run, rest: Rest, status: int
) -> None:
    rest.answers["GET", f"{TABLES}/t"] = (status, {"oops": 1})

    shown = run("table", "get", "t", "--metasrv", rest.url)

    assert shown.exit_code == 2
    assert f"{rest.url} answered with HTTP status {status} and not as a metasrv" in shown.stderr


def test_given_an_internal_error_then_the_id_of_its_request_is_kept() -> None:
    status, _, body = problem_of(Corrupt("internal"), "/v1/x", "52eb3824a5935229")
    error = error_of(status, body)

    assert error.facts["request_id"] == "52eb3824a5935229"
    assert "request 52eb3824a5935229" in str(error.facts["detail"])


def test_given_no_request_then_none_is_named() -> None:
    assert problem_of(Corrupt("internal"), "", "")[2]["detail"] == "Internal error."
