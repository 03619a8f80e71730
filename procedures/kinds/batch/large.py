"""A batch that one transaction cannot hold: planned on the catalog that the leader has applied.

Its version happens in one transaction, which compares the version of the catalog by which it was
planned; the keys follow (keys/commit/copying.py). The leader plans once more when nobody else
commits: if others have changed what it is about, it is planned anew.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from pydantic import BaseModel

from keys.catalog.known import CatalogByKey
from keys.commit.change import StoredSize, copies_of, large_change, size_of
from keys.commit.txn import Copies, Txn
from keys.model.log import Entry
from metasrv_base.concurrency.turns import by_turns
from procedures.commands.in_order import BatchCommand, planned, refuse_too_many
from procedures.context import Context
from procedures.ports import TransactionLimits

COPIES = 2  # of what is published: its own keys, and its log entry
SURELY_LARGE = 4
"""Entries for each operation of a transaction above which nobody measures what they come to: each
writes a key or several, and encoding thousands takes half a second."""


@dataclass(frozen=True, slots=True)
class CatalogPlan:
    """The commands of a batch, planned on the catalog that the leader has applied."""

    commands: Sequence[BatchCommand]
    plans: tuple[tuple[Entry, ...], ...]
    """The entries of each command."""
    view: CatalogByKey
    """The catalog that they were planned on."""

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(entry for plan in self.plans for entry in plan)

    @property
    def applied(self) -> tuple[bool, ...]:
        return tuple(map(bool, self.plans))

    def txn(self, context: Context) -> Txn:
        return large_change(self.entries, partial(_copies, self, context))


async def plan_by_catalog(commands: Sequence[BatchCommand], context: Context) -> CatalogPlan:
    """Raises Refused("ddl-too-large") beyond OBJECTS_MAX, and as `planned`."""
    view = CatalogByKey(context.ports.applied())
    plan = CatalogPlan(commands, await by_turns(planned(commands, view)), view)
    refuse_too_many(len(plan.entries))
    return plan


async def is_large(plan: CatalogPlan, state: BaseModel, context: Context) -> bool:
    """Whether one transaction cannot hold what the plan writes. *state*: what the record has."""
    limits, entries = context.ports.limits, plan.entries
    if len(entries) > SURELY_LARGE * limits.operations:
        return True
    record = len(state.model_dump_json()) + len(context.client.model_dump_json())
    stored = await by_turns(size_of(entries, plan.view))
    return not fits(stored, record, limits)


def fits(stored: StoredSize, record_bytes: int, limits: TransactionLimits) -> bool:
    """Whether one transaction holds the keys of a batch, their log, and a record of that size."""
    size_bytes = COPIES * stored.value_bytes + record_bytes
    return stored.operations <= limits.operations and size_bytes <= limits.size_bytes


async def _copies(plan: CatalogPlan, context: Context, version: int | None) -> Copies | None:
    """The keys that the plan writes, if it is still the plan (LargeChange.copies)."""
    catalog = context.ports.applied()
    if version not in (None, catalog.version):
        return None
    view = CatalogByKey(catalog)
    if await by_turns(planned(plan.commands, view)) != plan.plans:
        return None
    return await by_turns(copies_of(plan.entries, view))
