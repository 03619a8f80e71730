"""Nodes whose heartbeats come and that answer no orders: from when on, and for how long."""

import pytest

from metasrv.nodes.status import KEPT_MS, SILENT_MS, OrderSilence

SENT_MS = 1_000


@pytest.mark.parametrize(
    ("failed_ms", "now_ms", "lasts"),
    [
        (SENT_MS + SILENT_MS - 1, SENT_MS + SILENT_MS, False),
        (SENT_MS + SILENT_MS, SENT_MS + SILENT_MS, True),
        (SENT_MS + SILENT_MS, SENT_MS + SILENT_MS + KEPT_MS - 1, True),
        (SENT_MS + SILENT_MS, SENT_MS + SILENT_MS + KEPT_MS, False),
    ],
    ids=["a moment", "long", "kept", "tried again"],
)
def test_given_orders_that_fail_then_the_node_answers_none_for_a_bounded_time(
    failed_ms: int, now_ms: int, lasts: bool
) -> None:
    silence = OrderSilence(SENT_MS, SENT_MS).until(failed_ms)

    assert silence.lasts(now_ms) is lasts
