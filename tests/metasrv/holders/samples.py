"""Holders as tests of schema leases need them."""

from typing import Any

from keys.model.holders import HolderRecord
from metasrv_base.wire.frontend.holders import AcknowledgeRequest, HolderRegisterRequest, Pin

CLUSTER = "11111111-2222-7333-8444-555555555555"


def holder(holder_id: str, incarnation: str = "i-1") -> HolderRecord:
    return HolderRecord(
        holder_id=holder_id,
        incarnation=incarnation,
        address=f"http://{holder_id}:4400",
        version="0",
        registered_at_ms=0,
    )


def pin(table_id: int, schema_version: int, transaction: str = "t-1", age_ms: int = 5) -> Pin:
    return Pin(
        table_id=table_id, schema_version=schema_version, transaction=transaction, age_ms=age_ms
    )


def registration(holder_id: str, **more: Any) -> HolderRegisterRequest:
    facts: dict[str, Any] = {
        "cluster_id": CLUSTER,
        "holder_id": holder_id,
        "incarnation": "i-1",
        "address": f"http://{holder_id}:4400",
        "version": "0",
    }
    return HolderRegisterRequest(**{**facts, **more})


def acknowledgement(
    holder_id: str, sequence: int, version: int, *pinned: Pin, **more: Any
) -> AcknowledgeRequest:
    facts: dict[str, Any] = {
        "cluster_id": CLUSTER,
        "holder_id": holder_id,
        "incarnation": "i-1",
        "sequence": sequence,
        "version": version,
        "pinned": pinned,
    }
    return AcknowledgeRequest(**{**facts, **more})
