"""What is said of seeds: of one that went wrong, all that is needed to live it again."""

from collections.abc import Iterator

from tests.sim.plot import Outcome

SHOWN_MAX = 12

SOMETIMES = (
    "a write of a deposed leader was refused",
    "a write in doubt had been done",
    "a write in doubt had not been done",
    "a write that arrives after its leader",
    "a put without space",
    "a watch broke",
    "a node that stopped by its own clock",
    "a node died at its disk",
    "a job that moved a region",
    "a job that died half way",
    "a procedure ended: succeeded",
    "a procedure ended: rolled_back",
    "a statement of which nobody knows",
    "asked again with the same key",
    "two servers that believe they lead",
    "twice: node",
)
"""Rare states that a run must reach; one that it never reaches is a run that proves little."""


def shown(outcome: Outcome) -> str:
    return "\n".join(_lines(outcome))


def _lines(outcome: Outcome) -> Iterator[str]:
    yield f"seed {outcome.seed}, trace {outcome.digest}, {outcome.virtual_s:.0f} s of virtual time"
    yield f"faults: {', '.join(outcome.faults)}"
    yield from outcome.violations[:SHOWN_MAX]
    left = len(outcome.violations) - SHOWN_MAX
    if left > 0:
        yield f"... and {left} more"
