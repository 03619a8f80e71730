"""What is known of one statement over all copies that were sent, to whichever frontends."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from base.errors import MetaError, Unknown


@dataclass(slots=True)
class Copies:
    perhaps: bool = False
    """One was perhaps done: its answer was lost."""

    @contextmanager
    def settled(self) -> Iterator[None]:
        """What a later copy is told says nothing of an earlier one, not even what is refused: the
        table was perhaps another then. Raises Unknown in its place, once one was perhaps done."""
        try:
            yield
        except MetaError as error:
            if not self.perhaps or isinstance(error, Unknown):
                raise
            known = {name: fact for name, fact in error.facts.items() if name != "rows_applied"}
            regions = {"regions": _doubted(known["regions"])} if "regions" in known else {}
            facts = {**known, **regions, "reason": error.code}
            raise Unknown("outcome-unknown", **facts) from error


def _doubted(regions: object) -> object:
    if not isinstance(regions, Sequence):
        return regions
    return [
        {**one, "outcome": "unknown"}
        if isinstance(one, Mapping) and one.get("outcome") == "not-applied"
        else one
        for one in regions
    ]
