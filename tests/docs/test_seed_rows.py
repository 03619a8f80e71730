"""Rows of the founding documents that no other test shows."""

from keys.records import LockMode
from procedures.kinds.rename_table import RENAME_TABLE, RenameTable
from procedures.locks import name_key


def test_given_a_rename_then_it_holds_the_old_and_the_new_name_alone() -> None:
    state = RenameTable.model_validate(
        {
            "catalog": "main",
            "schema_name": "public",
            "name": "flights",
            "new_schema": "books",
            "new_name": "trips",
            "table_id": 1024,
        }
    )

    held = {lock.key for lock in RENAME_TABLE.locks(state) if lock.mode is LockMode.EXCLUSIVE}

    assert held >= {name_key("main", "public", "flights"), name_key("main", "books", "trips")}
