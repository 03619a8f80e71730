"""`metasrv table` and its siblings: a change that is sent again is done once."""

import json
from pathlib import Path

import pytest

from metasrv_base.errors import NotFound, Refused
from metasrv_base.wire.problem.problems import FieldError
from tests.metasrv.cli.answers import TABLES
from tests.metasrv.cli.conftest import Run
from tests.metasrv.cli.rest import Rest
from tests.metasrv.sdk.samples import small, spec
from tests.metasrv.sdk.shapes import procedure, table_of

SCHEMAS = "/v1/catalogs/main/schemas"
CHANGES = {
    "table create t --column id:int64 --key id": ("POST", TABLES),
    "table rename t u": ("POST", f"{TABLES}/t/rename"),
    "table alter t --rename-column a:b": ("POST", f"{TABLES}/t/alter"),
    "table drop t": ("DELETE", f"{TABLES}/t"),
    "table undrop t": ("POST", f"{TABLES}/t/undrop"),
    "table truncate t --yes": ("POST", f"{TABLES}/t/truncate"),
    "table restore t --to-version 7": ("POST", f"{TABLES}/t/restore"),
    "index create t i --column a": ("POST", f"{TABLES}/t/indexes"),
    "index validate t i": ("POST", f"{TABLES}/t/indexes/i/validate"),
    "index drop t i": ("DELETE", f"{TABLES}/t/indexes/i"),
    "schema create s": ("POST", SCHEMAS),
    "schema drop s": ("DELETE", f"{SCHEMAS}/s"),
    "catalog create c": ("POST", "/v1/catalogs"),
    "catalog drop c": ("DELETE", "/v1/catalogs/c"),
    "node drain dn-1 --reason x": ("POST", "/v1/nodes/dn-1/drain"),
    "failover run dn-1": ("POST", "/v1/failovers"),
}


@pytest.mark.parametrize("words", CHANGES)
def test_given_a_key_when_a_change_is_asked_for_then_it_is_sent_with_it(
    run: Run, rest: Rest, words: str
) -> None:
    rest.answers[CHANGES[words]] = Refused("invalid-request", expected="nothing")

    run(*words.split(), "--idempotency-key", "k-1", "--metasrv", rest.url)
    run(*words.split(), "--metasrv", rest.url)

    sent = [one.key for one in rest.asked if (one.method, one.path) == CHANGES[words]]
    assert sent[0] == "k-1"
    assert sent[1] not in (None, "", "k-1")


@pytest.mark.parametrize(
    ("words", "flags"),
    [
        (["--replicas", "3", "--min-in-sync", "2"], "--replicas, --min-in-sync: write it"),
        (["--column", "id:int64", "--key", "id"], "--column, --key: write it"),
        (["--partitions", "1"], "--partitions: write it"),
        (["--option", "app.a=1"], "--option: write it"),
    ],
)
def test_given_a_file_when_options_describe_its_table_too_then_they_are_named_and_nothing_is_asked(
    run: Run, rest: Rest, tmp_path: Path, words: list[str], flags: str
) -> None:
    file = tmp_path / "t.json"
    file.write_text(small().model_dump_json())

    done = run("table", "create", "--file", str(file), *words, "--metasrv", rest.url)

    assert (done.exit_code, rest.asked) == (2, [])
    assert f"{flags} in the --file" in done.stderr


def test_given_a_table_with_a_name_when_its_schema_is_an_option_then_nothing_is_asked(
    run: Run, rest: Rest
) -> None:
    words = ["t", "--column", "id:int64", "--key", "id", "--schema", "hr"]

    done = run("table", "create", *words, "--metasrv", rest.url)

    assert (done.exit_code, rest.asked) == (2, [])
    assert "--schema: write SCHEMA.TABLE" in done.stderr


INDEX = {"id": 1, "name": "by_b", "columns": ["b"], "unique": False, "state": "public"}
READS = {
    "table get t": f"{TABLES}/t",
    "table list": TABLES,
    "table route t": f"{TABLES}/t/route",
    "index list t": f"{TABLES}/t/indexes",
    "index get t i": f"{TABLES}/t/indexes/i",
    "schema list": SCHEMAS,
    "schema get s": f"{SCHEMAS}/s",
    "catalog list": "/v1/catalogs",
    "catalog get c": "/v1/catalogs/c",
    "region list": "/v1/regions",
}


@pytest.mark.parametrize("words", READS)
def test_given_a_version_when_read_then_the_catalog_as_of_it_is_asked_for(
    run: Run, rest: Rest, words: str
) -> None:
    shown = run(*words.split(), "--as-of", "17", "--metasrv", rest.url)

    asked, *_ = rest.asked
    assert shown.exit_code != 0, "nothing was to be found"
    assert asked.path.partition("?")[0] == READS[words]
    assert "as_of=version%3A17" in asked.path


@pytest.mark.parametrize(
    "words",
    ["rename t u", "alter t --set-option app.a=1", "drop t", "truncate t --yes"],
)
def test_given_a_version_when_a_table_is_changed_then_it_must_be_at_it(
    run: Run, rest: Rest, words: str
) -> None:
    body = table_of(small()).model_dump(mode="json")
    rest.answers["GET", f"{TABLES}/t"] = (200, body)

    run("table", *words.split(), "--if-match", "12", "--metasrv", rest.url)

    (condition,) = {one.if_match for one in rest.asked if one.method != "GET"}
    assert condition == f'"t{body["id"]}-12"'


def test_given_a_column_with_an_index_when_dropped_then_it_is_asked_first(
    run: Run, rest: Rest
) -> None:
    body = {**table_of(small()).model_dump(mode="json"), "indexes": [INDEX]}
    rest.answers["GET", f"{TABLES}/t"] = (200, body)
    rest.answers["POST", f"{TABLES}/t/alter"] = (200, body)
    words = ["table", "alter", "t", "--metasrv", rest.url, "--drop-column"]

    unsure = run(*words, "b")
    sure = run(*words, "b", "--yes")
    free = run(*words, "a")

    assert [one.exit_code for one in (unsure, sure, free)] == [2, 0, 0]
    assert "b takes by_b along" in unsure.stderr
    assert [one.method for one in rest.asked] == ["GET", "GET", "POST", "GET", "POST"]


def test_given_a_name_that_no_table_has_when_read_then_the_near_one_is_named(
    run: Run, rest: Rest
) -> None:
    table = {"id": 1, "name": "flights", "version": 1, "created_at": "2013-01-01T00:00:00Z"}
    rest.answers["GET", f"{TABLES}/fligths"] = NotFound(
        "table-not-found", name="main.public.fligths"
    )
    rest.answers["GET", TABLES] = (200, {"tables": [table], "catalog_version": 1})

    shown = run("table", "get", "fligths", "--metasrv", rest.url)

    assert "did you mean flights?" in shown.stderr


@pytest.mark.parametrize("name", ["t", "1024"])
def test_given_a_table_when_its_history_is_read_then_procedures_of_its_id_are_asked_for(
    run: Run, rest: Rest, name: str
) -> None:
    body = {**table_of(small()).model_dump(mode="json"), "id": 1024}
    rest.answers["GET", f"{TABLES}/t"] = (200, body)
    rest.answers["GET", "/v1/procedures"] = (200, {"procedures": []})

    shown = run("table", "history", name, "--metasrv", rest.url)

    assert shown.exit_code == 0, shown.output
    assert "resource=table%3A1024" in rest.asked[-1].path


def test_given_an_index_that_cannot_be_when_created_then_the_option_is_named(
    run: Run, rest: Rest
) -> None:
    fault = FieldError(pointer="/not_valid", detail="only a unique index can be left not valid")
    rest.answers["POST", f"{TABLES}/t/indexes"] = Refused("invalid-request", errors=(fault,))

    shown = run("index", "create", "t", "i", "--column", "a", "--metasrv", rest.url)

    assert "--not-valid: only a unique index" in shown.stderr


MISSING = {
    "table drop t": ("DELETE", f"{TABLES}/t"),
    "table rename t u": ("POST", f"{TABLES}/t/rename"),
    "table alter t --drop-column a": ("POST", f"{TABLES}/t/alter"),
    "index drop t i": ("DELETE", f"{TABLES}/t/indexes/i"),
    "schema drop s": ("DELETE", f"{SCHEMAS}/s"),
    "catalog drop c": ("DELETE", "/v1/catalogs/c"),
}


@pytest.mark.parametrize("words", MISSING)
def test_given_if_exists_when_nothing_is_there_then_it_is_said_and_the_exit_code_is_0(
    run: Run, rest: Rest, words: str
) -> None:
    result = {"name": "main.public.t", "applied": False}
    rest.answers[MISSING[words]] = (202, procedure(state="succeeded", done=True, result=result))

    shown = run(*words.split(), "--if-exists", "--metasrv", rest.url)
    as_json = run(*words.split(), "--if-exists", "--json", "--metasrv", rest.url)

    assert (shown.exit_code, as_json.exit_code) == (0, 0), shown.output + as_json.output
    assert shown.stdout.endswith("does not exist; nothing changed\n")
    assert json.loads(as_json.stdout) == {"applied": False}
    method, path = MISSING[words]
    (asked, *_) = [one for one in rest.asked if one.method == method]
    expected = path if method == "POST" else f"{path}?if_exists=true"
    assert (asked.path, (asked.body or {}).get("if_exists", True)) == (expected, True)


def test_given_defaults_when_a_table_is_shown_then_text_alone_is_quoted(
    run: Run, rest: Rest
) -> None:
    defaults = {"price": "1.50", "text": "null", "long": 7, "day": "2013-01-31", "flag": False}
    body = table_of(spec(defaults=defaults)).model_dump(mode="json")
    rest.answers["GET", f"{TABLES}/t"] = (200, body)

    shown = run("table", "get", "t", "--metasrv", rest.url)

    rows = [row.split() for row in shown.stdout.splitlines()]
    told = {row[0]: row[2] for row in rows if row and row[0] in defaults and len(row) > 2}
    assert told == {
        "price": "1.50",
        "text": '"null"',
        "long": "7",
        "day": "2013-01-31",
        "flag": "false",
    }
