"""A region against a dict, through any sequence of writes, flushes, openings and failovers."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine import group
from dataplane.region.engine.region import Region
from tests.dataplane.region.model_world import SMALL, World
from tests.dataplane.region.rig import (
    SPEC,
    Row,
    place,
)
from tests.fakes.clock import FakeClock

Action = tuple[str, dict[bytes, Row | None]]
KEYS = st.sampled_from([bytes([at]) * length for at in (0, 1, 97, 255) for length in (1, 2)])
ROWS = st.one_of(st.none(), st.tuples(st.integers(-5, 5), st.one_of(st.none(), st.text("ab"))))
ACTIONS: st.SearchStrategy[Action] = st.one_of(
    st.tuples(st.just("write"), st.dictionaries(KEYS, ROWS, min_size=1, max_size=4)),
    st.tuples(st.just("expect"), st.dictionaries(KEYS, ROWS, min_size=1, max_size=3)),
    st.tuples(st.sampled_from(["flush", "reopen", "move", "adopt", "power loss"]), st.just({})),
)


@pytest.mark.slow
@settings(max_examples=60)
@given(st.lists(ACTIONS, max_size=25), st.sampled_from([1, 2, group.TOMBSTONES_MIN]))
def test_given_any_history_when_read_then_the_region_holds_what_a_dict_would(
    history: list[Action], tombstones_min: int
) -> None:
    """*tombstones_min*: so many deletes are logged without values."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(group, "TOMBSTONES_MIN", tombstones_min)
        live(history)


def live(history: list[Action]) -> None:
    disk, clock = MemoryDisk(MemoryStore()), FakeClock()
    region = Region.create(place(disk, "/disk/0", clock, SMALL), SPEC, epoch=1)
    world = World(disk, region, clock)

    for action, rows in history:
        world.act(action, rows)
        clock.advance(1)
        world.check()
