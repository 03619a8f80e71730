"""N acknowledged groups cost N fdatasync of the log and N looks: counted at the disk."""

from collections import Counter

from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.region import Region
from tests.dataplane.region.rig import SPEC, batch, header, place, write

GROUPS = 50


def test_given_groups_when_acknowledged_then_each_had_one_append_one_sync_and_one_look() -> None:
    counted: Counter[str] = Counter()

    def count(operation: str, path: str) -> None:
        kind = path.rsplit("/", 1)[-1].split("-")[0]
        counted[f"{operation} {kind}"] += 1

    region = Region.create(place(MemoryDisk(MemoryStore(), count)), SPEC, epoch=1)
    write(region, "first", {b"first": (0, None)})
    counted.clear()

    for number in range(GROUPS):
        group = [
            (header(f"s-{number}-{at}"), batch({f"{number}-{at}".encode(): (at, None)}))
            for at in range(7)
        ]
        region.writer.apply(group)

    assert counted == {"append wal": GROUPS, "sync wal": GROUPS, "list region": GROUPS}
