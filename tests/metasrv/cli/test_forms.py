"""`-o`: one list as JSON, YAML, names, and a wider table."""

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from metasrv.cli.forms import yaml_lines
from tests.metasrv.cli.answers import TABLES
from tests.metasrv.cli.conftest import Run
from tests.metasrv.cli.rest import Rest

TABLE = {"id": 7, "name": "flights", "version": 2, "created_at": "2013-01-01T00:00:00Z"}
STAT = {"region_id": "1", "epoch": 1, "state": "open", "wal_bytes": 0, "files": 1, "version": 1}
REGION: dict[str, Any] = {
    "number": 0,
    "region_id": "1",
    "leader": "dn-1",
    "epoch": 1,
    "state": "open",
    "address": "http://dn-1",
    "table_id": 7,
    "table": "main.public.flights",
    "root": "/data",
}
SCALARS = st.none() | st.booleans() | st.integers() | st.text()
DOCUMENTS = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)


@given(DOCUMENTS)
@pytest.mark.slow
def test_given_any_document_when_written_as_yaml_then_a_reader_has_it_again(document: Any) -> None:
    assert yaml.safe_load("\n".join(yaml_lines(document))) == document


@pytest.fixture
def tables(rest: Rest) -> Rest:
    rest.answers["GET", TABLES] = (200, {"tables": [TABLE], "catalog_version": 1})
    regions = [
        {**REGION, "stat": {**STAT, "rows": 3, "bytes": 40}},
        {**REGION, "number": 1, "region_id": "2", "stat": {**STAT, "rows": 4, "bytes": 2}},
    ]
    rest.answers["GET", "/v1/regions"] = (200, {"regions": regions, "catalog_version": 1})
    return rest


def test_given_tables_when_listed_in_a_form_then_they_have_it(run: Run, tables: Rest) -> None:
    words = ["table", "list", "--metasrv", tables.url]

    as_yaml, as_json, names = (run(*words, "-o", form) for form in ("yaml", "json", "name"))
    short = run(*words, "--json")

    assert names.stdout == "flights\n"
    assert yaml.safe_load(as_yaml.stdout) == json.loads(as_json.stdout) == json.loads(short.stdout)


def test_given_a_wide_list_then_rows_and_bytes_of_its_regions_are_summed(
    run: Run, tables: Rest
) -> None:
    shown = run("table", "list", "-o", "wide", "--metasrv", tables.url)

    head, row = shown.stdout.splitlines()
    assert head.split()[-3:] == ["regions", "rows", "bytes"]
    assert row.split()[-3:] == ["2", "7", "42"]


def test_given_a_region_that_was_not_reported_when_listed_wide_then_no_sum_is_shown(
    run: Run, tables: Rest
) -> None:
    regions = [{**REGION, "stat": None}]
    tables.answers["GET", "/v1/regions"] = (200, {"regions": regions, "catalog_version": 1})

    shown = run("table", "list", "-o", "wide", "--metasrv", tables.url)

    assert shown.stdout.split()[-3:] == ["1", "-", "-"]


def test_given_two_forms_then_one_is_to_be_said(run: Run, tables: Rest) -> None:
    shown = run("table", "list", "-o", "name", "--json", "--metasrv", tables.url)

    assert (shown.exit_code, tables.asked) == (2, [])


@pytest.mark.parametrize("form", ["yaml", "name", "wide", "json"])
@pytest.mark.parametrize("words", ["catalog list", "schema list", "node list", "setting list"])
def test_given_an_empty_list_then_every_form_takes_it(
    run: Run, rest: Rest, words: str, form: str
) -> None:
    items = {
        "catalog list": ("/v1/catalogs", "catalogs"),
        "schema list": ("/v1/catalogs/main/schemas", "schemas"),
        "node list": ("/v1/nodes", "nodes"),
        "setting list": ("/v1/settings", "settings"),
    }
    path, field = items[words]
    version = {} if field in ("nodes", "settings") else {"catalog_version": 1}
    rest.answers["GET", path] = (200, {field: [], **version})

    shown = run(*words.split(), "-o", form, "--metasrv", rest.url)

    assert shown.exit_code == 0, shown.output
