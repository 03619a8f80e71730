"""The state of one statement over all copies that were sent, to whichever frontends."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from metasrv_base.errors import MetaError, Unknown


@dataclass(slots=True)
class Copies:
    perhaps: bool = False
    """One was perhaps done: its answer was lost."""
    partly: MetaError | None = None
    """The last error of a copy of which some regions took their rows."""

    def refused(self, error: MetaError) -> None:
        """Notes a refusal, which some regions alone may have made."""
        if any(region.get("outcome") == "applied" for region in _regions(error)):
            self.partly = error

    @contextmanager
    def settled(self) -> Iterator[None]:
        """Raises Unknown in place of an error of the block if an earlier copy was perhaps done: a
        refusal of this copy says nothing of that one, since the table may have changed. Else raises
        the noted error, if some regions have taken their rows and the new one names none."""
        try:
            yield
        except Unknown:
            raise
        except MetaError as error:
            answered = error if self.partly is None or _regions(error) else self.partly
            if self.perhaps:
                raise _doubted(answered) from error
            if answered is not error:
                raise answered from error
            raise


def _regions(error: MetaError) -> list[Mapping[str, Any]]:
    regions = error.facts.get("regions")
    if not isinstance(regions, Sequence):
        return []
    return [region for region in regions if isinstance(region, Mapping)]


def _doubted(error: MetaError) -> Unknown:
    """The same error as Unknown: it must not claim that anything was left undone."""
    facts = {name: fact for name, fact in error.facts.items() if name != "rows_applied"}
    if regions := _regions(error):
        facts["regions"] = [
            {**region, "outcome": "unknown"} if region.get("outcome") == "not-applied" else region
            for region in regions
        ]
    return Unknown("outcome-unknown", **{**facts, "reason": error.code})
