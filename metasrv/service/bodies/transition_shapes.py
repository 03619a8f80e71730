"""Transitions as the wire shows them. Pure."""

from typing import Any

from keys.model.transitions import ElementChange, Transition
from metasrv.service.bodies.shapes import time_of
from metasrv_base.wire.api.transitions import LateBody, ShiftBody, TransitionBody


def transition_body(transition: Transition) -> TransitionBody:
    drained_ms = transition.drained_at_ms
    return TransitionBody(
        table_id=transition.table_id,
        schema_version=transition.schema_version,
        shifts=tuple(shift_body(shift) for shift in transition.shifts),
        regions=transition.regions,
        told_ms=transition.told_ms,
        catalog_version=transition.catalog_version,
        published_at=time_of(transition.published_at_ms),
        drained_at=None if drained_ms is None else time_of(drained_ms),
        drain_ms=None if drained_ms is None else max(0, drained_ms - transition.published_at_ms),
        holders=transition.holders,
        late=tuple(
            LateBody(
                holder=late.holder,
                waited_ms=late.ms,
                went=late.went.value,
                transaction=late.transaction,
            )
            for late in transition.late
        ),
    )


def shift_body(shift: ElementChange) -> ShiftBody:
    facts: dict[str, Any] = shift.model_dump()
    return ShiftBody(**facts)
