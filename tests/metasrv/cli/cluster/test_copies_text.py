"""Copies of regions, as people read them."""

from typing import Any

import pytest

from metasrv.cli.catalog.table import show_route
from metasrv.cli.cluster.copies_text import copies_text
from metasrv.cli.cluster.event_words import words
from metasrv.service.bodies.shapes import region_location, route_body
from metasrv_base.wire.events.table_events import RouteChangedEvent
from tests.keys.model.copied_routes import COPIED, FIRST, ROUTE

BOTH = "dn-2 in-sync, dn-3 learner"


def test_given_a_route_with_copies_when_shown_then_a_line_names_nodes_and_roles(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_route(route_body(ROUTE.with_regions((COPIED,)), {}))

    assert BOTH in capsys.readouterr().out


def test_given_a_route_without_copies_when_shown_then_it_has_no_column_of_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_route(route_body(ROUTE, {}))

    assert "copies" not in capsys.readouterr().out


def test_given_a_changed_region_with_copies_when_told_then_its_line_names_them() -> None:
    facts: dict[str, Any] = {"catalog": "main", "schema": "public", "table": "t"}
    told = [
        words(RouteChangedEvent.model_construct(**facts, regions=(region_location(region),)))
        for region in (COPIED, FIRST)
    ]

    assert told[0] == f"main.public.t: region 0 open on dn-1, epoch 3, copies {BOTH}"
    assert told[1] == "main.public.t: region 0 open on dn-1, epoch 3"


def test_given_no_copies_then_there_is_a_dash() -> None:
    assert copies_text(()) == "-"


def test_given_a_learner_that_may_lead_then_the_line_says_so() -> None:
    left = COPIED.copies[1].model_copy(update={"eligible_epoch": FIRST.epoch})
    region = FIRST.with_copies((COPIED.copies[0], left))
    later = region.model_copy(update={"epoch": FIRST.epoch + 1})

    texts = [copies_text(region_location(each).copies) for each in (region, later)]

    assert texts == ["dn-2 in-sync, dn-3 learner (eligible)", BOTH]
