"""Facts of many tables are held as bytes, not decoded."""

import tracemalloc

from keys.model.tables import TableInfoKey
from keys.store.kv import KeyValue
from keys.value import encode
from metasrv.check.check_input import read_facts
from tests.metasrv.check.cluster import FLIGHTS, Cluster

TABLES = 500
TIMES_MAX = 2
"""Memory of the facts beside the stored bytes, as a multiple of these: keys, names and maps of
them. Decoded, these tables take nine times their JSON."""


async def test_given_many_tables_when_read_then_values_are_decoded_where_they_are_asked_for(
    cluster: Cluster,
) -> None:
    info = await cluster.read(TableInfoKey(FLIGHTS))
    stored = [
        KeyValue(
            key=bytes(TableInfoKey(number)),
            value=encode(info.model_copy(update={"table_id": number})),
            create_revision=number,
            mod_revision=number,
        )
        for number in range(FLIGHTS, FLIGHTS + TABLES)
    ]

    tracemalloc.start()
    try:
        facts = read_facts(stored, FLIGHTS + TABLES)
        size_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert size_bytes < TIMES_MAX * sum(len(item.value) for item in stored)
    infos = facts.infos()
    assert len(infos) == TABLES
    assert infos[FLIGHTS + 1] == info.model_copy(update={"table_id": FLIGHTS + 1})
