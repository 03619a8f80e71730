"""The operation of an alter that changes the numbers of copies of a table. Pure."""

from typing import Literal

from pydantic import Field

from keys.model.tables import OwnCopies, TableInfo
from keys.value import StoredPart, is_none
from metasrv_base.errors import Refused
from metasrv_base.wire.problem.problems import FieldError
from procedures.quorum import (
    REASON_NEEDED,
    CopyNumbers,
    needs_reason,
    own_numbers,
    table_numbers,
    with_numbers,
)


class SetCopiesOperation(StoredPart):
    """Other numbers of copies; regions get or lose copies afterwards."""

    op: Literal["set_copies"] = "set_copies"
    named: tuple[OwnCopies, ...] = ()
    """The numbers that change; empty: those that the table does not name follow its placement."""
    replicas: int | None = None
    """None, if it is named: that of the placement."""
    min_in_sync: int | None = None
    """None, if it is named: that of the placement, or a majority."""
    placed_replicas: int
    """The numbers of the placement, when the change was asked for."""
    placed_min_in_sync: int | None = None
    reason: str | None = Field(default=None, exclude_if=is_none)
    """Reason of a lower minimum, in the words of the operator."""

    @property
    def placed(self) -> CopyNumbers:
        return CopyNumbers(self.placed_replicas, self.placed_min_in_sync)


def with_copies_operation(info: TableInfo, operation: SetCopiesOperation, here: str) -> TableInfo:
    """The table with the numbers of the operation. Raises Refused, with a pointer below *here*."""
    replicas, minimum = own_numbers(info)
    if "replicas" in operation.named:
        replicas = operation.replicas
    if "min_in_sync" in operation.named:
        minimum = operation.min_in_sync
    numbered = with_numbers(info, replicas, minimum, operation.placed)
    if operation.named:
        must_be_possible(numbered, minimum, here)
        lowers = needs_reason(table_numbers(info), table_numbers(numbered))
        if lowers and operation.reason is None:
            raise _wrong(f"{here}/reason", REASON_NEEDED)
    return numbered


def must_be_possible(info: TableInfo, own_minimum: int | None, here: str) -> None:
    """Raises Refused for a minimum above the number of copies, and for copies of a region whose
    rows are in one process."""
    if own_minimum is not None and own_minimum > info.replicas:
        detail = f"at most as many must be in sync as its {info.replicas} copies"
        raise _wrong(f"{here}/min_in_sync", detail)
    if info.is_volatile and info.replicas > 1:
        detail = f"rows of the engine {info.engine} are in one process: it has one copy"
        raise _wrong(f"{here}/replicas", detail, "unsupported")


def _wrong(pointer: str, detail: str, code: str = "invalid-request") -> Refused:
    return Refused(code, errors=(FieldError(pointer=pointer, code=code, detail=detail),))
