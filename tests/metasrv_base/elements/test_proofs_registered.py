"""A region that takes writes of registered holders only: what that adds to its floor, and what it
cannot take its place in (docs/decisions/0103)."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from metasrv_base.elements.graphs import INDEX
from metasrv_base.elements.proof import owner
from metasrv_base.elements.proof.database import ProofFault
from metasrv_base.elements.proof.explore import Exploration, explore
from metasrv_base.elements.proof.journey import Direction, JourneyNode, ProofChange
from metasrv_base.elements.proof.protocol import PRODUCT, WAITS_ALONE, Protocol
from metasrv_base.elements.proof.world import NONE, ProofServer, ProofSetting, ProofWorld, Step

pytestmark = pytest.mark.crash

ADD_INDEX = ProofChange((INDEX,), (Direction.ADD,))
OUT = ProofServer(NONE, False, NONE)
"""One whom no region listens to until it registers anew."""
IN_PLACE = replace(PRODUCT, lets_go=False)
NO_FLOOR = replace(WAITS_ALONE, expires=True)
raises = owner._raises


def raises_for_the_registered(
    on: ProofSetting, world: ProofWorld, node: JourneyNode
) -> Iterator[Step]:
    """The order that raises the floor also says whose registration has ended."""
    for event, after in raises(on, world, node):
        known = tuple(server if server.counted else OUT for server in after.servers)
        yield event, after._replace(servers=known)


def explored(
    monkeypatch: pytest.MonkeyPatch, protocol: Protocol, *, registered_only: bool
) -> Exploration:
    if registered_only:
        monkeypatch.setattr(owner, "_raises", raises_for_the_registered)
    return explore(ADD_INDEX, protocol)


def test_given_floors_when_those_whose_registration_ended_write_on_then_no_row_is_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The rule takes states away, in which nothing was wrong."""
    without = explored(monkeypatch, IN_PLACE, registered_only=False)
    within = explored(monkeypatch, IN_PLACE, registered_only=True)

    assert (without.fault, within.fault) == (None, None)
    assert within.states < without.states


def test_given_no_floor_when_nothing_is_late_then_the_rule_does_what_a_floor_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert explored(monkeypatch, NO_FLOOR, registered_only=False).fault is ProofFault.ORPHAN
    assert explored(monkeypatch, NO_FLOOR, registered_only=True).fault is None


def test_given_no_floor_when_a_registered_holder_lets_a_write_go_then_the_rule_is_too_weak(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    late = replace(NO_FLOOR, lets_go=True)

    assert explored(monkeypatch, late, registered_only=True).fault is not None
