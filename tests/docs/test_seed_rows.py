"""Rows of the founding documents that no other test shows."""

import re

import pytest
from pydantic import ValidationError

from keys.commit.bootstrap import bootstrap_request
from keys.model.log import CatalogUpdate, CatalogUpdateKey, CatalogVersionKey
from keys.model.records import LockMode
from keys.model.tables import (
    DatanodeTable,
    DatanodeTableKey,
    TableInfo,
    TableInfoKey,
    TableNameKey,
    TableNameRecord,
    TableRoute,
    TableRouteKey,
)
from keys.store.kv import Compare, Put
from keys.value import decode
from metasrv_base.ids import RegionId, number_of, table_of
from metasrv_base.wire.api.table_rules import validate_spec
from metasrv_base.wire.api.tables import TableSpec
from metasrv_base.wire.node.nodes import HeartbeatAnswer, HeartbeatRequest, NodeResources
from procedures.kinds.tables.create_table import CREATE_TABLE, CreateTable
from procedures.kinds.tables.rename_table import RENAME_TABLE, RenameTable
from procedures.locking.locks import name_key
from tests.procedures.harness.tables import NODES, table_info, table_route

FENCE = Compare(b"__election/leader", 7)


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


def test_given_a_create_then_it_holds_its_name_alone() -> None:
    state = CreateTable(info=table_info(1024, "flights", 3), route=table_route(1024, NODES))

    held = {lock.key for lock in CREATE_TABLE.locks(state) if lock.mode is LockMode.EXCLUSIVE}

    assert name_key("main", "public", "flights") in held


def test_given_a_table_info_then_its_key_is_the_table_id_and_it_has_a_version() -> None:
    assert bytes(TableInfoKey(1024)) == b"__table_info/1024"
    assert {"table_id", "version"} <= TableInfo.model_fields.keys()


def test_given_a_table_route_then_its_key_is_the_table_id_and_it_has_every_region() -> None:
    route = table_route(1024, NODES)

    assert bytes(TableRouteKey(1024)) == b"__table_route/1024"
    assert [region.leader for region in route.region_routes] == list(NODES)
    assert {"table_id", "version", "region_routes"} <= TableRoute.model_fields.keys()


def test_given_a_datanode_table_then_it_has_table_regions_and_version() -> None:
    assert bytes(DatanodeTableKey("dn-1", 1024)) == b"__dn_table/dn-1/1024"
    assert {"table_id", "regions", "version"} <= DatanodeTable.model_fields.keys()


def test_given_a_table_name_then_its_key_is_the_full_name_and_it_has_the_id() -> None:
    assert bytes(TableNameKey("main", "public", "flights")) == b"__table_name/main/public/flights"
    assert "table_id" in TableNameRecord.model_fields


def test_given_a_catalog_log_then_an_update_has_its_number_and_the_last_one_a_key() -> None:
    assert re.fullmatch(rb"__catalog/update/0*17", bytes(CatalogUpdateKey(17)))
    assert bytes(CatalogVersionKey()) == b"__catalog/version"
    assert {"version", "entries"} <= CatalogUpdate.model_fields.keys()


def test_given_a_spec_when_it_is_used_then_it_is_unchanged_and_can_be_used_again() -> None:
    column = {"name": "id", "type": "int64", "nullable": False}
    spec = TableSpec.model_validate({"name": "t", "columns": [column], "primary_key": ["id"]})
    before = spec.model_dump_json()

    assert validate_spec(spec) == ()
    with pytest.raises(ValidationError, match="frozen"):
        spec.name = "u"  # type: ignore[misc]

    assert spec.model_dump_json() == before
    assert TableSpec.model_validate_json(before) == spec


def test_given_a_region_then_its_id_is_table_and_number() -> None:
    route = table_route(1024, NODES)

    ids = [RegionId(int(region.region_id)) for region in route.region_routes]

    assert [(table_of(one), number_of(one)) for one in ids] == [(1024, n) for n in range(3)]


def test_given_a_heartbeat_then_it_says_version_cluster_node_address_and_resources() -> None:
    said = {"version", "cluster_id", "node_id", "incarnation", "sequence", "address", "resources"}

    assert said <= HeartbeatRequest.model_fields.keys()
    assert {"cpu", "memory", "disk"} <= {
        name.partition("_")[0] for name in NodeResources.model_fields
    }


def test_given_an_answer_to_a_heartbeat_then_it_says_lease_settings_and_versions() -> None:
    said = {"lease_ms", "settings_version", "catalog_version", "frozen_version"}

    assert said <= HeartbeatAnswer.model_fields.keys()


def test_given_a_bootstrap_then_no_system_table_is_made() -> None:
    written = {write.key.split(b"/")[0] for write in bootstrap_request(FENCE, "c-1", 5).writes}

    assert written.isdisjoint({b"__table_info", b"__table_route", b"__table_name", b"__dn_table"})


def test_given_a_bootstrap_then_main_and_public_are_version_1_of_the_log() -> None:
    writes = {
        w.key: w.value for w in bootstrap_request(FENCE, "c-1", 5).writes if isinstance(w, Put)
    }
    key = CatalogUpdateKey(1)

    update = decode(CatalogUpdate, writes[bytes(key)], key=str(key))

    ops = [entry.op for entry in update.entries]
    assert ops == [
        "placement.created",
        "catalog.created",
        "tablespace.created",
        "schema.created",
    ]
    assert {b"__catalog_name/main", b"__schema_name/main/public"} <= writes.keys()
    assert sum(key.startswith(b"__sequence/") for key in writes) == 3


def test_given_a_bootstrap_then_it_is_one_transaction_that_compares_that_nothing_is_there() -> None:
    request = bootstrap_request(FENCE, "c-1", 5)

    fence, *absent = request.compares
    assert fence == FENCE
    assert {one.mod_revision for one in absent} == {0}
    for write in request.writes:
        assert any(one.end and one.key <= write.key < one.end for one in absent), write.key
    assert not request.on_refusal
