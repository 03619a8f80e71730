"""Specs: the usual ones pass, and each way to be wrong is named with its place."""

from typing import Any

import pytest
from pydantic import ValidationError

from metasrv_base.elements.states import ElementState
from metasrv_base.schema.partition import HashRule
from metasrv_base.wire.api.changes import AlterRequest, RenameRequest, UndropRequest
from metasrv_base.wire.api.table_rules import (
    name_errors,
    partition_of,
    rule_of,
    validate_alter,
    validate_rename,
    validate_schema,
    validate_spec,
    validate_undrop,
)
from metasrv_base.wire.api.tables import CatalogSpec, ColumnBody, SchemaSpec, TableBody, TableSpec
from metasrv_base.wire.problem.problems import field_errors

FLIGHTS: dict[str, Any] = {
    "name": "flights",
    "if_not_exists": False,
    "columns": [
        {"name": "id", "type": "int64", "nullable": False},
        {"name": "carrier", "type": "string", "nullable": True, "default": None},
        {"name": "at", "type": "timestamp(ms)", "nullable": False},
    ],
    "primary_key": ["id"],
    "partition": {"by": "hash", "columns": ["id"], "count": 4},
    "replicas": 1,
    "options": {"comment": "flown", "app.owner": "ada"},
}
BY_MONTH = {
    "by": "range",
    "columns": ["at"],
    "bounds": [["2013-04-01T00:00:00Z"], ["2013-07-01T00:00:00Z"]],
}


def faults(**changes: Any) -> set[tuple[str, str]]:
    """(pointer, code) of everything wrong with flights so changed, whoever finds it."""
    body = {**FLIGHTS, **changes}
    try:
        spec = TableSpec.model_validate(body)
    except ValidationError as refused:
        found = field_errors(refused.errors(), body)
    else:
        found = validate_spec(spec)
    return {(error.pointer, error.code) for error in found}


def column(**changes: Any) -> list[dict[str, Any]]:
    return [FLIGHTS["columns"][0], {"name": "x", "type": "int32", **changes}]


def test_given_the_spec_of_the_api_document_then_nothing_is_wrong() -> None:
    assert faults() == set()
    assert faults(primary_key=["at", "id"], partition=BY_MONTH) == set()
    assert faults(partition=None) == set()


@pytest.mark.badinput
@pytest.mark.parametrize(
    "name",
    [
        "",
        "a" * 129,
        "1abc",
        "a b",
        " a",
        "a ",
        "a/b",
        "..",
        ".",
        "a\0",
        "a\n",
        "a\u202eb",
        "ä",
        "e\u0301",
        "İ",
        "a.b",
        "%2e",
    ],
)
def test_given_what_is_no_name_then_it_is_an_invalid_identifier(name: str) -> None:
    assert faults(name=name) == {("/name", "invalid-identifier")}
    assert ("/columns/1/name", "invalid-identifier") in faults(columns=column(name=name))
    (error,) = validate_schema(SchemaSpec(name=name))
    assert (error.pointer, error.code) == ("/name", "invalid-identifier")


@pytest.mark.badinput
@pytest.mark.parametrize("name", ["__meta", "__", "information_schema", "INFORMATION_SCHEMA"])
def test_given_a_name_of_the_system_then_it_is_reserved(name: str) -> None:
    assert faults(name=name) == {("/name", "reserved-name")}


@pytest.mark.badinput
@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"columns": []}, "/columns"),
        ({"columns": [{"name": f"c{n}", "type": "int8"} for n in range(1025)]}, "/columns"),
        ({"columns": column(name="ID")}, "/columns/1/name"),
        ({"columns": column(type="varchar(-1)")}, "/columns/1/type"),
        ({"columns": column(type="decimal(0,5)")}, "/columns/1/type"),
        ({"columns": column(default=2**31)}, "/columns/1/default"),
        ({"columns": column(default="7")}, "/columns/1/default"),
        ({"columns": column(nullable="yes")}, "/columns/1/nullable"),
        ({"columns": column(extra=1)}, "/columns/1/extra"),
        ({"primary_key": []}, "/primary_key"),
        ({"primary_key": ["missing"], "partition": None}, "/primary_key/0"),
        ({"primary_key": ["id", "carrier"]}, "/primary_key/1"),
        ({"primary_key": ["id", "id"]}, "/primary_key/1"),
        ({"partition": {"by": "hash", "columns": ["at"], "count": 4}}, "/partition/columns/0"),
        ({"partition": {"by": "hash", "columns": [], "count": 4}}, "/partition/columns"),
        (
            {"partition": {"by": "hash", "columns": ["id", "id"], "count": 4}},
            "/partition/columns/1",
        ),
        ({"partition": {"by": "hash", "columns": ["id"], "count": 0}}, "/partition/count"),
        ({"partition": {"by": "hash", "columns": ["id"], "count": -1}}, "/partition/count"),
        ({"partition": {"by": "hash", "columns": ["id"], "count": 10**6}}, "/partition/count"),
        ({"partition": {"by": "hash", "columns": ["id"], "count": True}}, "/partition/count"),
        ({"partition": {"by": "hash", "columns": ["id"], "count": 4.0}}, "/partition/count"),
        ({"partition": {"by": "list", "columns": ["id"]}}, "/partition"),
        ({"partition": {"by": "range", "columns": ["id"], "bounds": []}}, "/partition/bounds"),
        (
            {"partition": {"by": "range", "columns": ["id"], "bounds": [[2], [1]]}},
            "/partition/bounds/1",
        ),
        (
            {"partition": {"by": "range", "columns": ["id"], "bounds": [["x"]]}},
            "/partition/bounds/0/0",
        ),
        (
            {"partition": {"by": "range", "columns": ["id"], "bounds": [[1, 2]]}},
            "/partition/bounds/0",
        ),
        ({"replicas": 0}, "/replicas"),
        ({"options": {"TTL": "1d"}}, "/options"),
        ({"options": {"comment": "x" * 1025}}, "/options/comment"),
        ({"options": {f"o.{n}": "" for n in range(65)}}, "/options"),
        ({"name": None}, "/name"),
        ({"table_id": 7}, "/table_id"),
        ({"version": 7}, "/version"),
        ({"if_not_exists": 1}, "/if_not_exists"),
    ],
)
def test_given_a_spec_with_one_fault_then_that_place_is_named(
    changes: dict[str, Any], pointer: str
) -> None:
    assert faults(**changes) == {(pointer, "invalid-request")}


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"colocation_columns": ["id", "carrier"]}, "/colocation_columns/1"),
        ({"colocation_columns": ["id", "nothing"]}, "/colocation_columns/1"),
        ({"colocation_columns": ["id", "id"]}, "/colocation_columns/1"),
    ],
)
@pytest.mark.case("catalog 72")
def test_given_colocation_columns_then_they_are_some_of_the_primary_key(
    changes: dict[str, Any], pointer: str
) -> None:
    assert faults(**changes) == {(pointer, "invalid-request")}
    assert faults(colocation_columns=["id"]) == set()


def test_given_colocation_columns_then_the_partition_columns_are_among_them() -> None:
    key = {
        "columns": [
            {"name": "id", "type": "int64", "nullable": False},
            {"name": "at", "type": "date", "nullable": False},
        ],
        "primary_key": ["id", "at"],
        "colocation_columns": ["at"],
    }
    by_id = {"by": "hash", "columns": ["id"], "count": 4}

    assert faults(**key, partition=by_id) == {("/partition/columns/0", "invalid-request")}
    assert faults(**key, partition={**by_id, "columns": ["at"]}) == set()


@pytest.mark.parametrize("field", ["placement", "storage_profile", "tablespace"])
def test_given_a_name_that_nothing_can_bear_then_it_is_no_identifier(field: str) -> None:
    assert faults(**{field: "a b"}) == {(f"/{field}", "invalid-identifier")}
    assert faults(**{field: "fast"}) == set()


@pytest.mark.parametrize("name", ["ttl", "retention", "x", "replicas", "a.", "comments"])
def test_given_an_option_that_nothing_acts_upon_then_it_is_unsupported(name: str) -> None:
    wanted = {(f"/options/{name}", "unsupported")}

    assert faults(options={name: "30d"}) == wanted
    for spec in (SchemaSpec, CatalogSpec):
        errors = validate_schema(spec(name="a", options={name: "30d"}))
        assert {(error.pointer, error.code) for error in errors} == wanted


def test_given_many_faults_then_all_are_told() -> None:
    assert faults(name="1", primary_key=["x"], options={"app.x": "-" * 1025}) == {
        ("/name", "invalid-identifier"),
        ("/primary_key/0", "invalid-request"),
        ("/partition/columns/0", "invalid-request"),
        ("/options/app.x", "invalid-request"),
    }


@pytest.mark.parametrize("partition", [FLIGHTS["partition"], BY_MONTH], ids=["hash", "range"])
def test_given_a_partition_when_stored_by_id_then_it_comes_back(partition: object) -> None:
    spec = TableSpec.model_validate({**FLIGHTS, "partition": partition})
    rule = rule_of(spec.partition, spec.primary_key, {"id": 1, "at": 3})

    assert partition_of(rule, {1: "id", 3: "at"}) == spec.partition


def test_given_no_partition_then_there_is_one_region() -> None:
    assert rule_of(None, ["id"], {"id": 1}) == HashRule(columns=(1,), count=1)


@pytest.mark.parametrize(
    ("operation", "wanted"),
    [
        ({"op": "set_options", "options": {"ttl": None}}, set()),
        ({"op": "rename_column", "name": "a", "new_name": "b"}, set()),
        (
            {"op": "set_options", "options": {"ttl": "x"}},
            {("/operations/0/options/ttl", "unsupported")},
        ),
        (
            {"op": "rename_column", "name": "a", "new_name": "b c"},
            {("/operations/0/new_name", "invalid-identifier")},
        ),
        (
            {"op": "add_column", "column": {"name": "x", "type": "int8"}, "after": "a"},
            set(),
        ),
        (
            {
                "op": "add_column",
                "column": {"name": "x y", "type": "int7", "nullable": False, "default": 1},
            },
            {
                ("/operations/0/column/name", "invalid-identifier"),
                ("/operations/0/column/type", "invalid-request"),
            },
        ),
        (
            {"op": "add_column", "column": {"name": "x", "type": "int8", "nullable": False}},
            {("/operations/0/column/default", "invalid-request")},
        ),
        (
            {"op": "add_column", "column": {"name": "x", "type": "int8", "default": 128}},
            {("/operations/0/column/default", "invalid-request")},
        ),
        (
            {
                "op": "add_column",
                "column": {
                    "name": "x",
                    "type": "timestamp(s)",
                    "nullable": False,
                    "default": {"expression": "now()"},
                },
            },
            set(),
        ),
        (
            {
                "op": "add_column",
                "column": {"name": "x", "type": "int8", "default": {"expression": "now()"}},
            },
            {("/operations/0/column/default", "invalid-request")},
        ),
        (
            {
                "op": "add_column",
                "column": {"name": "x", "type": "date", "default": {"expression": "rm()"}},
            },
            {("/operations/0/column/default", "invalid-request")},
        ),
        ({"op": "drop_column", "name": "x"}, set()),
        ({"op": "drop_column", "name": "x y"}, {("/operations/0/name", "invalid-identifier")}),
        ({"op": "alter_type", "name": "x", "type": "int64"}, set()),
        (
            {"op": "alter_type", "name": "x y", "type": "int7"},
            {
                ("/operations/0/name", "invalid-identifier"),
                ("/operations/0/type", "invalid-request"),
            },
        ),
        ({"op": "set_default", "name": "x", "default": 1}, set()),
        ({"op": "set_nullable", "name": "x", "nullable": True}, set()),
        (
            {"op": "add_constraint", "name": "x", "unique": ["a"]},
            {("/operations/0/unique", "unsupported")},
        ),
        (
            {"op": "add_constraint", "name": "x", "check": "a > 1", "not_null": "a"},
            {("/operations/0", "invalid-request")},
        ),
        ({"op": "add_constraint", "name": "x"}, {("/operations/0", "invalid-request")}),
        (
            {"op": "add_constraint", "name": "x y", "not_null": "a b"},
            {
                ("/operations/0/name", "invalid-identifier"),
                ("/operations/0/not_null", "invalid-identifier"),
            },
        ),
        ({"op": "add_constraint", "name": "x", "check": "a > 1", "not_valid": True}, set()),
        ({"op": "validate_constraint", "name": "x"}, set()),
        ({"op": "set_nullable", "name": "x", "nullable": False}, set()),
        ({"op": "drop_constraint", "name": "x"}, set()),
    ],
    ids=lambda value: value.get("op") if isinstance(value, dict) else "",
)
def test_given_an_operation_then_it_is_built_or_unsupported(
    operation: dict[str, Any], wanted: set[tuple[str, str]]
) -> None:
    request = AlterRequest.model_validate({"operations": [operation]})

    assert {(error.pointer, error.code) for error in validate_alter(request)} == wanted


@pytest.mark.parametrize(
    "operations",
    [[], [{"op": "explode"}], [{"op": "drop_column", "name": "x"}] * 33, [{"op": "set_options"}]],
    ids=["none", "unknown", "too-many", "incomplete"],
)
def test_given_operations_that_do_not_parse_then_they_are_refused(operations: object) -> None:
    with pytest.raises(ValidationError):
        AlterRequest.model_validate({"operations": operations})


def test_given_other_requests_then_their_names_are_judged() -> None:
    assert validate_rename(RenameRequest(new_name="b", new_schema="s")) == ()
    assert [e.pointer for e in validate_rename(RenameRequest(new_name="b", new_schema="__s"))] == [
        "/new_schema"
    ]
    assert [e.pointer for e in validate_undrop(UndropRequest(new_name="."))] == ["/new_name"]
    assert validate_undrop(UndropRequest(table_id=1024)) == ()
    assert [e.pointer for e in validate_schema(SchemaSpec(name="a b"))] == ["/name"]
    assert name_errors("a-b", "/x") == ()


def test_given_a_table_when_sent_then_a_client_reads_the_same() -> None:
    spec = TableSpec.model_validate(FLIGHTS)
    columns = tuple(
        ColumnBody(**one.model_dump(), id=place, state=ElementState.PUBLIC)
        for place, one in enumerate(spec.columns, 1)
    )
    body = TableBody(
        **spec.model_dump(exclude={"columns", "if_not_exists", "partition", "min_in_sync"}),
        partition=spec.partition,
        columns=columns,
        id=1024,
        catalog="main",
        schema_name="public",
        version=1,
        schema_version=1,
        catalog_version=7,
        created_at="2013-04-01T00:00:00Z",
        regions=(),
    )

    assert '"schema":"public"' in body.model_dump_json()
    assert TableBody.model_validate_json(body.model_dump_json()) == body


def test_given_the_models_then_every_field_with_a_secret_meaning_is_described() -> None:
    described = TableSpec.model_json_schema()["properties"]

    assert "app.owner" in described["options"]["description"]
    assert "copies" in described["replicas"]["description"].lower()
