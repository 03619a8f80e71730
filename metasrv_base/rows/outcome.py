"""The outcome of a statement, region by region, and its error unless all was applied."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from metasrv_base.errors import Conflict, MetaError, NotFound, Refused, Unknown

Done = Literal["applied", "not-applied", "unknown"]


@dataclass(frozen=True, slots=True)
class RegionOutcome:
    """The outcome of the part of one region."""

    region_id: str
    outcome: Done
    rows: int
    """Rows of the part, whatever its outcome."""
    version: int | None = None
    """Row version given to all of them; None unless applied."""
    repeated: bool = False
    """Whether it was applied by an earlier copy of the same statement."""
    error: MetaError | None = None
    """Reason for which the part was not applied, or may not have been; None: it was applied, or
    was not sent because the part of another region was refused."""

    def shown(self) -> dict[str, Any]:
        """Returns the outcome in the form of a response about rows (`outcome`)."""
        fields: dict[str, Any] = {"region_id": self.region_id, "outcome": self.outcome}
        return fields if self.error is None else {**fields, "code": self.error.code}


@dataclass(frozen=True, slots=True)
class WriteResult:
    """Every row was applied."""

    rows: int
    regions: tuple[RegionOutcome, ...]


def settle(outcomes: Sequence[RegionOutcome]) -> WriteResult:
    """Raises unless all were applied, with `regions` and `rows_applied` among the facts.

    Unknown: one is perhaps done, or only some were done and the rest may be sent again with the
    same statement id. Conflict, Refused: one was refused for good; `regions` says which others
    were applied. Unavailable, NotFound: nothing was done anywhere.
    """
    failed = [outcome for outcome in outcomes if outcome.outcome != "applied"]
    if not failed:
        return WriteResult(sum(outcome.rows for outcome in outcomes), tuple(outcomes))
    applied = sum(outcome.rows for outcome in outcomes if outcome.outcome == "applied")
    shown = {"rows_applied": applied, "regions": [outcome.shown() for outcome in outcomes]}
    for kind in (Unknown, Conflict, Refused):
        errors = [
            outcome.error
            for outcome in failed
            if isinstance(outcome.error, kind) and not isinstance(outcome.error, NotFound)
        ]
        if errors:
            raise _again(errors[0], {**_keys(errors), **shown}) from errors[0]
    first = next(outcome.error for outcome in failed if outcome.error is not None)
    if applied:
        raise Unknown("outcome-unknown", reason="some regions did it", **shown) from first
    raise _again(first, shown) from first


def outcome_of(region_id: str, rows: int, error: MetaError, perhaps: bool) -> RegionOutcome:
    """`perhaps`: an earlier copy may have been applied, whatever a later one is told: also what is
    refused under one schema was perhaps right under that of before. Nor does a region that has
    forgotten what is as old as the statement know of an earlier copy."""
    if isinstance(error, Unknown):
        return RegionOutcome(region_id, "unknown", rows, error=error)
    if perhaps:
        unknown = Unknown("outcome-unknown", reason=error.code, region_id=region_id)
        return RegionOutcome(region_id, "unknown", rows, error=unknown)
    is_forgotten = error.code == "statement-too-old" and error.facts.get("is_forgotten")
    outcome: Done = "unknown" if is_forgotten else "not-applied"
    return RegionOutcome(region_id, outcome, rows, error=error)


def _keys(errors: Sequence[MetaError]) -> dict[str, Any]:
    """The keys that all regions named which refused for the same reason."""
    same = [error.facts.get("keys") for error in errors if error.code == errors[0].code]
    keys = [key for named in same if isinstance(named, list) for key in named]
    return {"keys": keys} if keys else {}


def _again(error: MetaError, more: Mapping[str, Any]) -> MetaError:
    return type(error)(error.code, **{**error.facts, **more})
