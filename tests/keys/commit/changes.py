"""Changes for tests: of keys that do not exist yet, and ones that no product code can make."""

from dataclasses import replace
from typing import Any

from keys.commit.txn import Read, Snapshot, Txn
from keys.key import Key
from keys.model.log import Entry
from keys.value import StoredModel, encode


def absent(*keys: Key[Any]) -> Snapshot:
    """A snapshot of keys none of which exists."""
    return Snapshot(0, {bytes(key): Read(None, 0) for key in keys})


def told(txn: Txn, *entries: Entry) -> Txn:
    """*txn* with entries of the log, and without the keys that they write."""
    return replace(txn, entries=(*txn.entries, *entries))


def untold(txn: Txn, key: Key[Any], value: StoredModel) -> Txn:
    """*txn* with a key of which the log should tell, and does not."""
    return replace(txn, writes={**txn.writes, bytes(key): encode(value)})
