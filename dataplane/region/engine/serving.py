"""One opening of a region, and whether it still serves. Files in doubt stop it for good."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from dataplane.region.format.names import Opening
from dataplane.region.manifests.fence import look, stale_before_wrong
from dataplane.region.place import RegionPlace
from metasrv_base.errors import Conflict, MetaError, Unavailable, Unknown


class Serving:
    """Safe for threads without a lock: the reason is set once, and everybody who asks afterwards
    is told the first."""

    def __init__(self, region_place: RegionPlace, opening: Opening) -> None:
        self.place = region_place
        self.opening = opening
        self.stopped: MetaError | None = None
        """The error that stopped it; None while it serves."""

    def look(self) -> None:
        """Reads the fence: after a write, and before anything is acknowledged or deleted. Raises
        Conflict `stale-epoch` behind a higher one (P5)."""
        look(self.place.disk, self.place.root, self.opening)

    def stale_first(self) -> AbstractContextManager[None]:
        """Looks at the fence when the block fails, since a successor may have tidied up: then it
        is the fence that is reported."""
        return stale_before_wrong(self.place.disk, self.place.root, self.opening)

    def stop(self, error: MetaError) -> None:
        self.stopped = self.stopped or error

    def check(self) -> None:
        if self.stopped is not None:
            raise type(self.stopped)(self.stopped.code, **self.stopped.facts)

    @contextmanager
    def in_doubt(self) -> Iterator[None]:
        """Stops the region for good if an error interrupts the block, since nobody can say how far
        it came; only a full disk, where nothing was written, does not."""
        stopped: MetaError | None = Unavailable("not-ready", reason="a write was interrupted")
        try:
            yield
            stopped = None
        except Conflict as error:
            stopped = error
            raise
        except Unavailable as error:
            stopped = None if error.code == "storage-full" else error
            raise
        finally:
            if stopped is not None:
                self.stop(stopped)

    @contextmanager
    def unless_unknown(self) -> Iterator[None]:
        """Stops the region if a write or sync of the block perhaps failed: a device that lost one
        is not believed a second time. Other errors do not, since the files count for nothing until
        they are named."""
        try:
            yield
        except Unknown as error:
            self.stop(Unavailable("not-ready", reason="a sync or write failed", **error.facts))
            raise


def unknown_outcome(error: MetaError) -> Unknown:
    """Returns the error for the writers of a group that was being written when *error* came."""
    unknown = Unknown("outcome-unknown", reason=error.code, **error.facts)
    unknown.__cause__ = error
    return unknown
