"""Stored values as JSON, without the models: tests compare what stands with what they expect."""

from typing import Any

import orjson

from keys.model.records import IdempotencyKey, ProcedureHistoryKey

PACKED = (ProcedureHistoryKey, IdempotencyKey)


def plain(key: bytes, raw: bytes) -> Any:
    """*key*: without the cluster's prefix."""
    for family in PACKED:
        if key.startswith(family.under().start):
            raw = family.value_type.unpack(raw)
    return orjson.loads(raw)
