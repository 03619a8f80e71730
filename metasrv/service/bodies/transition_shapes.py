"""Transitions as the wire shows them. Pure."""

from typing import Any

from keys.model.transitions import ElementChange, Transition
from metasrv.service.bodies.shapes import time_of
from metasrv_base.wire.api.transitions import LateBody, ShiftBody, TransitionBody


def transition_body(one: Transition) -> TransitionBody:
    drained_ms = one.drained_at_ms
    return TransitionBody(
        table_id=one.table_id,
        schema_version=one.schema_version,
        shifts=tuple(shift_body(shift) for shift in one.shifts),
        regions=one.regions,
        told_ms=one.told_ms,
        catalog_version=one.catalog_version,
        published_at=time_of(one.published_at_ms),
        drained_at=None if drained_ms is None else time_of(drained_ms),
        drain_ms=None if drained_ms is None else max(0, drained_ms - one.published_at_ms),
        holders=one.holders,
        late=tuple(
            LateBody(
                holder=late.holder,
                waited_ms=late.ms,
                went=late.went.value,
                transaction=late.transaction,
            )
            for late in one.late
        ),
    )


def shift_body(shift: ElementChange) -> ShiftBody:
    facts: dict[str, Any] = shift.model_dump()
    return ShiftBody(**facts)
