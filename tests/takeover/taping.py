"""Lives every scenario once, and keeps it on tape: `python -m tests.takeover.taping VERSION`.

A version is a word for what its records look like. Its tapes are never made anew: they are what
servers of it have left in stores (docs/decisions/0106).
"""

import sys
from collections.abc import Sequence
from dataclasses import replace

from keys.store.kv import Compare, Delete, Put
from keys.store.memory import MemoryKv
from tests.crash.enumeration import Harness, life
from tests.fakes.cluster import Cluster
from tests.fakes.datanodes.picture import Picture, changes, picture_of
from tests.fakes.datanodes.plane import Plane
from tests.procedures.harness.scenario import Scenario
from tests.procedures.harness.scenarios import SCENARIOS
from tests.takeover.tapes import (
    FOLDER,
    Commit,
    Line,
    Nodes,
    Tape,
    Write,
    path_of,
    unfinished,
    value_bytes,
    value_of,
    written,
)


class Taped(MemoryKv):
    """It keeps every commit, and looks at the nodes before it and behind each of their answers."""

    def meet(self, plane: Plane, tape: list[Line]) -> None:
        self.plane, self.tape = plane, tape
        self.seen: Picture = {}
        plane.watch = self.look
        for revision in self._store.log_from(1):
            events = revision.events
            tape.append(Commit(0, tuple(_line_of(one.key, one.value) for one in events)))

    def look(self) -> None:
        found = picture_of(self.plane)
        changed, self.seen = changes(self.seen, found), found
        if changed:
            self.tape.append(Nodes(self._clock.mono_ms(), changed))

    def _write(self, writes: tuple[Put | Delete, ...]) -> None:
        if not writes or not hasattr(self, "tape"):
            return super()._write(writes)
        self.look()
        self.tape.append(
            Commit(self._clock.mono_ms(), tuple(_line_of(one.key, _value(one)) for one in writes))
        )
        super()._write(writes)


def taped(scenario: Scenario) -> Tape:
    """A sound life of it, as far as there is anything left to be done."""
    lines: list[Line] = []

    async def given(cluster: Cluster, fence: Compare) -> None:
        assert isinstance(cluster.kv, Taped)
        cluster.kv.meet(cluster.plane, lines)
        await scenario.given(cluster, fence)

    run = life(replace(scenario, given=given), None, Harness(make_store=Taped))
    assert run.wrong == (), run.wrong
    return tuple(lines[: unfinished(tuple(lines))[-1]])


def _value(write: Put | Delete) -> bytes | None:
    if isinstance(write, Delete):
        return None
    assert write.lease is None, "a tape knows no leases of the store"
    return write.value


def _line_of(key: bytes, raw: bytes | None) -> Write:
    value = None if raw is None else value_of(raw)
    assert raw is None or value_bytes(value) == raw
    return key.decode(), value


def main(args: Sequence[str]) -> int:
    (version,) = args
    if (FOLDER / version).exists():
        print(f"{version} is on tape, and stays as it is: choose another word")
        return 1
    for scenario in SCENARIOS:
        path = path_of(version, scenario.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(written(taped(scenario)))
        print(f"{path.name}: {path.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
