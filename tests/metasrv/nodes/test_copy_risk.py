"""Regions that the loss of one more disk endangers."""

from metasrv.nodes.copy_risk import CopyRisk
from tests.keys.model.copied_routes import FIRST, LEARNER
from tests.metasrv.nodes.samples import info

OF_TWO = info().model_copy(update={"replicas": 2})


def test_given_a_leader_that_is_alone_then_a_copy_that_may_lead_is_another_disk() -> None:
    left = LEARNER.model_copy(update={"eligible_epoch": FIRST.epoch})
    counts = []
    for copy, lost in ((LEARNER, set[str]()), (left, set[str]()), (left, {left.node})):
        risk = CopyRisk()
        risk.count(OF_TWO, FIRST.with_copies((copy,)), lost.__contains__)
        counts.append((risk.below_minimum, risk.on_one_disk))

    assert counts == [(1, 1), (1, 0), (1, 1)]
