"""A procedure as metasrv shows it, and tables as the SDK reads them."""

from typing import Any

from metasrv_base.rows.layout import Layout
from metasrv_base.wire.api.tables import TableBody, TableSpec
from tests.metasrv.sdk.catalog import TABLE_ID, FakeCatalog, region


def table_of(spec: TableSpec) -> TableBody:
    catalog = FakeCatalog()
    catalog.make(spec, [region(0, "http://127.0.0.1:1")])
    assert catalog.table is not None
    return catalog.table


def layout_of(spec: TableSpec) -> Layout:
    return Layout.of(table_of(spec))


def procedure(**changes: Any) -> dict[str, Any]:
    body: dict[str, Any] = {
        "id": "018f3c0a-0000-7000-8000-000000000000",
        "kind": "create_table",
        "state": "running",
        "done": False,
        "resource": {"type": "table", "id": str(TABLE_ID), "name": "main.public.t"},
        "step": "create_regions",
        "progress": None,
        "waiting_for": [],
        "stalled": False,
        "cancelable": True,
        "point_of_no_return": False,
        "allowed_actions": ["cancel"],
        "attempt": 1,
        "resumed": 0,
        "parent_id": None,
        "children": [],
        "submitted_by": "test",
        "submitted_at": "2026-01-01T00:00:00Z",
        "started_at": None,
        "finished_at": None,
        "timeline": [],
        "result": None,
        "error": None,
        "catalog_version": None,
    }
    return {**body, **changes}
