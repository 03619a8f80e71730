"""One judgement of a taken name, for catalogs, schemas and tables, at submit and in the step."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keys.model.catalogs import CatalogInfo, CatalogLimits, CatalogSettings, SchemaInfo
from keys.model.tables import Column, TableInfo
from metasrv.host.toolchain import checkout
from metasrv_base.errors import Conflict
from metasrv_base.schema.partition import HashRule
from procedures.steps.existing import NamedObject, alike, must_be_free
from tests.procedures.harness.tables import table_info

CODES = frozenset({"already-exists"})
ELEMENTS = "procedures/kinds/alter/draft.py"
"""Columns and constraints of a table are no objects of the catalog."""


def objects(options: dict[str, str], object_id: int) -> tuple[NamedObject, ...]:
    table: TableInfo = table_info(object_id, "t", 1)
    return (
        CatalogInfo(catalog_id=object_id, name="c", options=options, created_at_ms=object_id),
        SchemaInfo(
            schema_id=object_id, catalog="c", name="s", options=options, created_at_ms=object_id
        ),
        table.model_copy(update={"options": options, "created_at_ms": object_id}),
    )


IDS_AND_PAST = {
    *("format", "created_at_ms", "catalog_id", "schema_id", "table_id", "dropping", "state"),
    *("version", "schema_version", "schema_floor"),
    *("next_column_id", "next_index_id", "next_constraint_id"),
    *("catalog", "schema_name", "name"),
    *("indexes", "constraints"),
}
"""Fields in which two objects of one request may differ: what a create is given by the service, the
name by which the other was found, and what comes only after a create."""
OTHERWISE: dict[str, object] = {
    "columns": table_info(1, "t", 1).columns[:1],
    "primary_key": (2,),
    "partition": HashRule(columns=(1,), count=2),
    "options": {"app.a": "2"},
    "settings": CatalogSettings(drop_retention_ms=60_000),
    "limits": CatalogLimits(tables=2),
    "replicas": 2,
    "engine": "memory",
    "engine_options": {"memtable_bytes": 1 << 20},
    "placement_id": 1040,
    "storage_profile": "hot",
    "tablespace_id": 1040,
    "colocation": (1,),
}
"""Fields of which a request says what they are, each with another value."""
BY_REPLICAS = {"min_in_sync", "own_copies"}
"""They count together with `replicas`: the number that must be in sync is compared."""
COLUMN_IDS_AND_PAST = {
    *("id", "state", "origin_default", "origin_columns", "replaces", "replaced_by"),
}
COLUMN_OTHERWISE: dict[str, object] = {
    "name": "other",
    "type": "int32",
    "nullable": True,
    "default": 7,
}


def test_given_a_field_of_an_object_then_it_is_compared_or_named() -> None:
    """A new field fails here until `existing.py` compares it, or it is named above."""
    fields = {field for info in objects({}, 1025) for field in type(info).model_fields}

    assert fields == OTHERWISE.keys() | IDS_AND_PAST | BY_REPLICAS
    assert set(Column.model_fields) == COLUMN_OTHERWISE.keys() | COLUMN_IDS_AND_PAST


@pytest.mark.parametrize("field", OTHERWISE)
def test_given_a_field_of_a_request_that_differs_then_nothing_satisfies(field: str) -> None:
    for wanted in objects({}, 1025):
        if field in type(wanted).model_fields:
            existing = wanted.model_copy(update={field: OTHERWISE[field]})
            with pytest.raises(Conflict, match="schema-conflict"):
                alike(wanted, existing, if_not_exists=True)


def test_given_another_number_in_sync_then_nothing_satisfies_unless_it_is_the_default() -> None:
    three = table_info(1025, "t", 1).model_copy(update={"replicas": 3})
    majority, all_of_them = (three.model_copy(update={"min_in_sync": n}) for n in (2, 3))

    assert alike(three, majority, if_not_exists=True) is majority
    with pytest.raises(Conflict) as caught:
        alike(three, all_of_them, if_not_exists=True)
    assert caught.value.facts["differs"] == "min in sync"


@pytest.mark.parametrize("field", COLUMN_OTHERWISE)
def test_given_a_field_of_a_column_that_differs_then_nothing_satisfies(field: str) -> None:
    table = table_info(1025, "t", 1)
    first, *rest = table.columns
    column = first.model_copy(update={field: COLUMN_OTHERWISE[field]})

    with pytest.raises(Conflict, match="schema-conflict"):
        alike(table, table.model_copy(update={"columns": (column, *rest)}), if_not_exists=True)


OPTIONS = st.dictionaries(st.sampled_from(["app.a", "app.b"]), st.sampled_from(["1", "2"]))


@given(OPTIONS, OPTIONS, st.booleans())
def test_given_a_taken_name_when_created_then_only_its_like_satisfies(
    options: dict[str, str], others: dict[str, str], if_not_exists: bool
) -> None:
    """Ids and times are those of one create, and do not count."""
    expected = "" if options == others else "schema-conflict"
    for wanted, existing in zip(objects(options, 1025), objects(others, 1026), strict=True):
        code = ""
        try:
            assert alike(wanted, existing, if_not_exists=if_not_exists) is existing
        except Conflict as error:
            code = error.code

        assert code == (expected if if_not_exists else "already-exists")


@pytest.mark.parametrize("if_not_exists", [False, True])
def test_given_a_free_name_when_created_then_nothing_satisfies(if_not_exists: bool) -> None:
    for wanted in objects({}, 1025):
        assert alike(wanted, None, if_not_exists=if_not_exists) is None


def test_given_a_name_when_it_must_be_free_then_the_conflict_names_what_bears_it() -> None:
    must_be_free("table", "c.s.t", None)

    with pytest.raises(Conflict) as caught:
        must_be_free("table", "c.s.t", object())

    assert (caught.value.code, caught.value.facts) == (
        "already-exists",
        {"what": "table", "name": "c.s.t"},
    )


def test_given_the_product_then_one_module_says_that_a_name_is_taken() -> None:
    raised = {
        str(path.relative_to(checkout()))
        for folder in ("metasrv/service", "procedures")
        for path in (checkout() / folder).rglob("*.py")
        for code in _conflicts(path)
        if code in CODES
    }

    assert raised == {"procedures/steps/existing.py", ELEMENTS}


def _conflicts(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Conflict" and node.args:
            yield getattr(node.args[0], "value", "")


@pytest.mark.parametrize(
    ("update", "differs"),
    [
        ({"options": {"app.a": "2"}}, "options"),
        ({"replicas": 2, "engine": "memory"}, "replicas, min in sync, engine"),
        ({"columns": table_info(1, "t", 1).columns[:1]}, "column note"),
        ({"columns": table_info(1, "t", 1).columns[::-1]}, "order of columns"),
    ],
)
def test_given_a_table_that_differs_then_the_conflict_names_what_does(
    update: dict[str, object], differs: str
) -> None:
    table = table_info(1025, "t", 1)

    with pytest.raises(Conflict) as caught:
        alike(table, table.model_copy(update=update), if_not_exists=True)

    assert caught.value.facts["differs"] == differs


def test_given_many_differences_then_the_conflict_names_some_and_counts_the_rest() -> None:
    table = table_info(1025, "t", 1)
    fields = ("options", "replicas", "engine", "engine_options", "placement_id", "tablespace_id")
    existing = table.model_copy(update={field: OTHERWISE[field] for field in fields})

    with pytest.raises(Conflict) as caught:
        alike(table, existing, if_not_exists=True)

    named = "options, replicas, min in sync, engine, engine options and 2 more"
    assert caught.value.facts["differs"] == named
