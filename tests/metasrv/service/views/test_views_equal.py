"""Rows of views say what the routes of the objects say."""

from typing import Any

from tests.metasrv.api.rig import Server
from tests.metasrv.service.views.everything import all_tables, everything, rows


def of_table(table: dict[str, Any]) -> tuple[object, ...]:
    return table["catalog"], table["schema"], table["name"], table["id"]


def picked(found: list[dict[str, Any]], *names: str) -> list[tuple[object, ...]]:
    named = ("table_catalog", "table_schema", "table_name", "table_id", *names)
    return [tuple(row[name] for name in named) for row in found]


async def listed(one: Server, path: str, items: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await one.client.get(path)).json()[items]
    return found


async def test_given_everything_then_tables_are_those_of_the_routes() -> None:
    async with everything() as one:
        tables = await all_tables(one)
        names = ("table_comment", "column_count", "region_count", "primary_key", "version")
        more = ("schema_version", "created_at", "engine", "placement", "tablespace")
        assert len(tables) == 5
        assert picked(await rows(one, "tables"), *names, *more) == [
            (
                *of_table(table),
                table["options"].get("comment"),
                len(table["columns"]),
                len(table["regions"]),
                ", ".join(table["primary_key"]),
                table["version"],
                table["schema_version"],
                table["created_at"],
                table["engine"],
                table["placement"] or "default",
                table["tablespace"] or "default",
            )
            for table in tables
        ]


async def test_given_everything_then_columns_and_constraints_are_those_of_the_routes() -> None:
    async with everything() as one:
        tables = await all_tables(one)
        columns = await rows(one, "columns")
        constraints = await rows(one, "constraints")

    own = ("column_name", "column_id", "ordinal_position", "is_nullable", "column_type")
    assert picked(columns, *own) == [
        (
            *of_table(table),
            column["name"],
            column["id"],
            ordinal,
            "YES" if column["nullable"] else "NO",
            column["type"],
        )
        for table in tables
        for ordinal, column in enumerate(table["columns"], 1)
    ]
    price = next(row for row in columns if row["column_name"] == "price")
    assert (price["column_default"], price["data_type"]) == ("1.50", "DECIMAL(10, 2)")
    assert (price["numeric_precision"], price["numeric_scale"]) == (10, 2)
    keys = [row for row in constraints if row["constraint_type"] == "PRIMARY KEY"]
    assert picked(keys, "column_names") == [
        (*of_table(table), ", ".join(table["primary_key"])) for table in tables
    ]
    others = [row for row in constraints if row["constraint_name"] is not None]
    assert len(others) == 1
    assert picked(others, "constraint_name", "constraint_type", "check_clause") == [
        (*of_table(table), each["name"], "CHECK", each["expression"])
        for table in tables
        for each in table["constraints"]
    ]


async def test_given_everything_then_partitions_and_regions_are_those_of_the_routes() -> None:
    async with everything() as one:
        tables = await all_tables(one)
        partitions = await rows(one, "partitions")
        regions = await rows(one, "regions")
        by_id = {
            region["region_id"]: region for region in await listed(one, "/v1/regions", "regions")
        }

    assert [row["region_id"] for row in partitions] == [
        region["region_id"] for table in tables for region in table["regions"]
    ]
    ranged = [row for row in partitions if row["table_name"] == "ranged"]
    assert [(row["lower_bound"], row["upper_bound"]) for row in ranged] == [
        (None, "10"),
        ("10", "20"),
        ("20", None),
    ]
    assert len(by_id) == len(regions) == 10
    for row in regions:
        region = by_id[row["region_id"]]
        names = ("leader", "epoch", "state", "root", "table_id")
        assert [row[name] for name in names] == [region[name] for name in names]
        assert row["leader_address"] == region["address"]
        assert row["rows"] == (region["stat"] and region["stat"]["rows"])


async def test_given_everything_then_holders_of_tables_are_those_of_the_routes() -> None:
    async with everything() as one:
        catalogs = await listed(one, "/v1/catalogs", "catalogs")
        schemas = [
            (catalog["name"], schema["name"], schema["id"])
            for catalog in catalogs
            for schema in await listed(one, f"/v1/catalogs/{catalog['name']}/schemas", "schemas")
        ]
        placements = await listed(one, "/v1/placements", "placements")
        spaces = await listed(one, "/v1/catalogs/main/tablespaces", "tablespaces")
        tenants = await rows(one, "tenants")
        schemata = await rows(one, "schemata")
        placed = await rows(one, "placements")
        spaced = await rows(one, "tablespaces", where="catalog_name = 'main'")

    assert [
        (row["catalog_name"], row["table_count"], row["tables_limit"], row["created_at"])
        for row in tenants
    ] == [
        (each["name"], each["usage"]["tables"], each["limits"]["tables"], each["created_at"])
        for each in catalogs
    ]
    assert [
        (row["catalog_name"], row["schema_name"], row["schema_id"]) for row in schemata
    ] == schemas
    assert [(row["placement_name"], row["placement_id"], row["comment"]) for row in placed] == [
        (each["name"], each["id"], each["comment"]) for each in placements
    ]
    assert [(row["tablespace_name"], row["tablespace_id"]) for row in spaced] == [
        (each["name"], each["id"]) for each in spaces
    ]


async def test_given_everything_then_dropped_tables_are_those_of_the_routes() -> None:
    async with everything() as one:
        path = "/v1/catalogs/main/schemas/public/tables?include_dropped=true"
        dropped = [table for table in await listed(one, path, "tables") if table["dropped_at"]]
        found = await rows(one, "dropped_tables")

    assert len(found) == 2
    assert [(row["table_name"], row["table_id"], row["dropped_at"]) for row in found] == [
        (table["name"], table["id"], table["dropped_at"]) for table in dropped
    ]


async def test_given_everything_then_views_of_now_are_those_of_the_routes() -> None:
    async with everything() as one:
        nodes = await listed(one, "/v1/nodes", "nodes")
        procedures = await listed(one, "/v1/procedures", "procedures")
        settings = await listed(one, "/v1/settings", "settings")
        changes = await listed(one, "/v1/catalog/versions", "changes")
        holders = await listed(one, "/v1/schema-leases", "holders")
        found = {
            view: await rows(one, view)
            for view in ("nodes", "procedures", "settings", "versions", "frontends", "locks")
        }

    assert [(row["node_id"], row["state"], row["leads"]) for row in found["nodes"]] == [
        (node["id"], node["state"], node["leads"]) for node in nodes
    ]
    assert [
        (row["procedure_id"], row["kind"], row["state"], row["finished_at"])
        for row in found["procedures"]
    ] == [(each["id"], each["kind"], each["state"], each["finished_at"]) for each in procedures]
    assert len(procedures) > 5
    assert [(row["name"], row["version"]) for row in found["settings"]] == [
        (each["name"], each["version"]) for each in settings
    ]
    assert [
        (row["version"], row["procedure_id"], row["description"]) for row in found["versions"]
    ] == [(each["version"], each["procedure_id"], each["text"]) for each in changes]
    assert [row["frontend_id"] for row in found["frontends"]] == [
        holder["holder_id"] for holder in holders
    ]
    assert found["locks"] == []
