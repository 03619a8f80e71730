"""The plot of a life, by the name of its length: each length that is not of all things has a plot
of its own."""

from collections.abc import Mapping

from tests.sim.clients.logs import LOG, SHORT_LOG, Log
from tests.sim.clients.queues import LONG_QUEUE, QUEUE, SHORT_QUEUE, Queue
from tests.sim.cluster.outage import OUTAGE, Outage
from tests.sim.length import LONG, SHORT, Length, Life
from tests.sim.planted.mistakes import Bugs
from tests.sim.plots.compacted import COMPACTED, Compacted
from tests.sim.plots.copies.drained import DRAINED, Drained
from tests.sim.plots.copies.moved_copies import MOVED_COPIES, MovedCopies
from tests.sim.plots.copies.preferred import PREFERRED, Preferred
from tests.sim.plots.copies.replicated import REPLICATED, Replicated
from tests.sim.plots.copies.restored_copies import RESTORED_COPIES, RestoredCopies
from tests.sim.plots.large_batches import LARGE_BATCHES, LargeBatches
from tests.sim.plots.placed import PLACED, Placed
from tests.sim.plots.reshaped.reshaped_copies import RESHAPED_COPIES, ReshapedCopies
from tests.sim.plots.restored import RESTORED, Restored
from tests.sim.scenario import Outcome, Plot, live

PLOTS: Mapping[str, type[Plot]] = {
    OUTAGE.name: Outage,
    QUEUE.name: Queue,
    SHORT_QUEUE.name: Queue,
    LONG_QUEUE.name: Queue,
    LOG.name: Log,
    SHORT_LOG.name: Log,
    PLACED.name: Placed,
    COMPACTED.name: Compacted,
    REPLICATED.name: Replicated,
    DRAINED.name: Drained,
    MOVED_COPIES.name: MovedCopies,
    PREFERRED.name: Preferred,
    RESHAPED_COPIES.name: ReshapedCopies,
    RESTORED.name: Restored,
    RESTORED_COPIES.name: RestoredCopies,
    LARGE_BATCHES.name: LargeBatches,
}
"""By the name of a length; the others have the plot of all things."""
LENGTHS: Mapping[str, Length] = {
    one.name: one
    for one in (
        *(LONG, SHORT, OUTAGE, QUEUE, SHORT_QUEUE, LONG_QUEUE, LOG, SHORT_LOG),
        *(PLACED, COMPACTED, REPLICATED, MOVED_COPIES, DRAINED, RESTORED, RESTORED_COPIES),
        *(LARGE_BATCHES, PREFERRED, RESHAPED_COPIES),
    )
}
"""The lengths that `make sim` lives."""


def lived(life: Life, bugs: Bugs | None = None, until: str | None = None) -> Outcome:
    """Lives it as its length says."""
    return live(life, bugs, until, PLOTS.get(life.length.name))
