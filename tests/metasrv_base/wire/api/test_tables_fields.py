"""A field that a table may have reaches all that carries tables: SQL, the store, declarations.

The tests name what lacks a new field; "To change X, touch Y" of AGENTS.md says where it is.
"""

from typing import Any

import pytest

from metasrv.service.declared.difference import difference
from metasrv_base.sql.commands import CreateTableStatement, QualifiedTable
from metasrv_base.sql.grammar.statements import statements
from metasrv_base.sql.printing.print_command import text_of
from metasrv_base.wire.api.tables import TableShape, TableSpec
from metasrv_base.wire.language.declared import DesiredState
from tests.metasrv.api.rig import TABLES, Server, leader, spec

WAIT = {"prefer": "wait=10"}
FIELDS: dict[str, tuple[Any, Any]] = {
    "partition": ({"by": "hash", "columns": ["id"], "count": 2}, None),
    "options": ({"app.owner": "ada"}, {"app.owner": "bob"}),
    "colocation_columns": (["id"], None),
    "storage_profile": ("cold", "hot"),
    "tablespace": ("orders", None),
    "placement": ("fast", "slow"),
}
"""Field -> a value of it, and another one."""
OTHERS = {"name", "primary_key", "replicas", "min_in_sync"}
"""Fields without which there is no table, or of which only one value is taken."""
CHOSEN = {field: value for field, (value, _) in FIELDS.items()}
each_field = pytest.mark.parametrize("field", FIELDS)


def test_given_the_fields_of_a_table_then_each_is_tested_here() -> None:
    assert TableShape.model_fields.keys() == FIELDS.keys() | OTHERS


@each_field
def test_given_a_field_when_printed_as_sql_then_it_is_read_back(field: str) -> None:
    table = TableSpec.model_validate(spec(**{field: CHOSEN[field]}))
    command = CreateTableStatement(QualifiedTable("t"), table)

    (read,) = statements(text_of(command), lambda _table, _column: None)

    assert read.command == command


@each_field
def test_given_a_field_that_is_declared_otherwise_then_it_is_a_difference(field: str) -> None:
    current = _desired(CHOSEN)
    same = difference(current, _desired(CHOSEN), prune=False)

    changed = difference(current, _desired({**CHOSEN, field: FIELDS[field][1]}), prune=False)

    assert not same.operations
    assert not same.refusals
    assert changed.operations or changed.refusals


async def test_given_all_fields_when_created_then_the_table_and_its_export_have_them() -> None:
    async with leader(nodes=3) as one:
        await _prepare(one)

        created = await _post(one, TABLES, spec("t", **CHOSEN))

        assert created.status_code == 201, created.text
        assert CHOSEN.items() <= (await one.client.get(f"{TABLES}/t")).json().items()
        exported = (await one.client.get("/v1/export", params={"schema": "public"})).json()
        (table,) = exported["catalogs"][0]["schemas"][0]["tables"]
        assert CHOSEN.items() <= table.items()


@each_field
async def test_given_another_value_when_created_again_then_it_is_not_the_same(field: str) -> None:
    other = {**CHOSEN, field: FIELDS[field][1]}
    async with leader(nodes=3) as one:
        await _prepare(one)
        await _post(one, TABLES, spec("t", **CHOSEN))

        same = await _post(one, TABLES, spec("t", **CHOSEN, if_not_exists=True))
        another = await _post(one, TABLES, spec("t", **other, if_not_exists=True))

        assert same.status_code == 200, same.text
        assert another.json()["code"] == "schema-conflict"


def _desired(fields: dict[str, Any]) -> DesiredState:
    schema = {"name": "public", "tables": [spec("t", **fields)]}
    return DesiredState.model_validate({"catalogs": [{"name": "main", "schemas": [schema]}]})


async def _post(one: Server, path: str, body: dict[str, Any]) -> Any:
    return await one.client.post(path, json=body, headers=WAIT)


async def _prepare(one: Server) -> None:
    """Two placements with two profiles each, and a tablespace."""
    profiles = [{"name": name, "engine": "lsm"} for name in ("hot", "cold")]
    for name in ("fast", "slow"):
        placement = {"name": name, "storage_profiles": profiles}
        assert (await _post(one, "/v1/placements", placement)).status_code == 201
    space = await _post(one, "/v1/catalogs/main/tablespaces", {"name": "orders"})
    assert space.status_code == 201
