"""The values that the store has held under one key."""

from typing import Any

from keys.key import Key
from tests.fakes.cluster import Cluster
from tests.keys.model.plain import plain


def puts_of(cluster: Cluster, key: Key[Any]) -> list[dict[str, Any]]:
    """Every value that *key* was given, oldest first."""
    return [
        plain(event.key, event.value)
        for entry in cluster.kv._store.log_from(1)
        for event in entry.events
        if event.key == bytes(key) and event.value is not None
    ]
