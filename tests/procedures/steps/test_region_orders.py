"""A field of a table's options goes all the way: no order and no answer leaves it out.

Each set names what one model has on purpose and the others have not. A new field fails here until
it is carried everywhere, or named.
"""

from keys.model.tables import TableInfo
from metasrv_base.wire.api.tables import TableBody, TableSpec
from metasrv_base.wire.node.orders import CreateRegion, OpenRegion, SetSchema

BEFORE = {"replaces", "borrows", "unannounced"}
"""Roots that a region leaves or reads: known when it is made or opened, and not later."""
FIXED = {"root", "table_id", "key_columns", "engine", "engine_options"}
"""They never change, so no order of a schema brings them."""
GONE = {"dead_indexes"}
"""A region that is made has none."""
MARKS = {"mark", "reserves_version", "close_marks"}
LEASE = {"lease"}
STORED = {
    *("format", "table_id", "state", "created_at_ms", "schema_floor", "dropping"),
    *("next_column_id", "next_index_id", "next_constraint_id"),
}
"""Shown under another name, or of no use to clients."""


def test_given_a_field_of_a_table_then_each_order_of_a_region_carries_it() -> None:
    create, opened, schema = (
        set(order.model_fields) for order in (CreateRegion, OpenRegion, SetSchema)
    )

    assert create ^ opened == BEFORE | GONE
    assert create ^ schema == {"replaces"} | FIXED | LEASE | GONE | MARKS


def test_given_a_field_of_a_table_then_its_body_shows_it() -> None:
    shown = set(TableBody.model_fields)

    assert set(TableSpec.model_fields) - shown == {"if_not_exists"}
    assert set(TableInfo.model_fields) - shown == STORED
