"""Looks at the log of a store: the bytes that procedures wrote there."""

from keys.model.records import ProcedureHistoryKey, ProcedureKey
from tests.fakes.cluster import Cluster


def sizes_of(cluster: Cluster, procedure: str) -> list[int]:
    """Bytes of each value of its record, then of its history."""
    keys = (bytes(ProcedureKey(procedure)), bytes(ProcedureHistoryKey(procedure)))
    return [
        len(event.value)
        for revision in cluster.kv._store.log_from(1)
        for event in revision.events
        if event.key in keys and event.value is not None
    ]
