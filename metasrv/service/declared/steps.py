"""Operations of a plan as requests: those that can go together are one. Pure."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256

from pydantic_core import to_json

from metasrv.service.declared.operations import Operation
from metasrv_base.wire.api import batches
from metasrv_base.wire.api.changes import OPERATIONS_MAX, AlterOperation
from metasrv_base.wire.language import apply
from metasrv_base.wire.language.apply import PlannedOperation

BATCH_MAX = 2_500
"""Operations of one batch. A batch of new tables waits for their regions: one that takes minutes is
harder to watch than several."""
ALONE = (apply.AltersCatalog, apply.CreatesIndex, apply.DropsIndex, apply.ValidatesIndex)


@dataclass(frozen=True, slots=True)
class PlanStep:
    """Operations that are one request, one behind the other in the plan."""

    operations: tuple[Operation, ...]

    @property
    def is_batch(self) -> bool:
        return is_member(self.operations[0])

    @property
    def alters(self) -> tuple[AlterOperation, ...]:
        """Operations of a step that is the alter of a table."""
        return tuple(
            each
            for operation in self.operations
            if isinstance(operation.command, batches.AltersTable)
            for each in operation.command.alter_table.operations
        )


def is_member(operation: Operation) -> bool:
    """Whether a batch takes it. Options are the one alter of a table that is one version; phase 0
    has nothing else."""
    if isinstance(operation.command, ALONE):
        return False
    return not isinstance(operation.command, batches.AltersTable) or operation.phase == 0


def steps_of(operations: Sequence[Operation]) -> Iterator[PlanStep]:
    following = 0
    while following < len(operations):
        end = following + _length(operations, following)
        yield PlanStep(tuple(operations[following:end]))
        following = end


def _length(operations: Sequence[Operation], start: int) -> int:
    """Number of operations from *start* on that are one request."""
    first = operations[start]
    if isinstance(first.command, ALONE):
        return 1
    if is_member(first):
        return _run(operations, start, BATCH_MAX, is_member)

    def goes_along(each: Operation) -> bool:
        is_alter = isinstance(each.command, batches.AltersTable)
        return is_alter and (each.target, each.phase) == (first.target, first.phase)

    return _run(operations, start, OPERATIONS_MAX, goes_along)


def _run(
    operations: Sequence[Operation], start: int, most: int, belongs: Callable[[Operation], bool]
) -> int:
    length = 1
    while (
        length < most and start + length < len(operations) and belongs(operations[start + length])
    ):
        length += 1
    return length


def planned(operations: Sequence[Operation]) -> tuple[PlannedOperation, ...]:
    return tuple(
        PlannedOperation(
            what=each.target.what,
            name=each.target.name,
            text=each.text,
            destructive=each.destructive,
            command=each.command,
        )
        for each in operations
    )


def digest_of(operations: Sequence[PlannedOperation], state: object = None) -> str:
    """A digest of what is to be done and, with *state*, of the state of what it is done to."""
    whole = sha256(to_json(state))
    for each in operations:
        whole.update(to_json(each, by_alias=True))
        whole.update(b"\n")
    return whole.hexdigest()
