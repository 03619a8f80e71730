"""Stored values as JSON, without the models: tests compare what stands with what they expect."""

from typing import Any

import orjson

from keys.model.families import FAMILIES


def plain(key: bytes, raw: bytes) -> Any:
    """*key*: without the cluster's prefix."""
    for family in FAMILIES:
        if family.claims(key):
            return orjson.loads(family.key.value_type.unpack(raw))
    return orjson.loads(raw)
