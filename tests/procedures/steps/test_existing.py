"""One judgement of a taken name, for catalogs, schemas and tables, at submit and in the step."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keys.model.catalogs import CatalogInfo, SchemaInfo
from keys.model.tables import TableInfo
from metasrv.host.toolchain import checkout
from metasrv_base.errors import Conflict
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
