"""An operation that leads from the catalog as it is towards the one that is declared."""

from dataclasses import dataclass, field

from metasrv.service.catalog.change_text import altered
from metasrv_base.wire.api.batches import AltersTable, TableToAlter
from metasrv_base.wire.api.changes import AlterOperation
from metasrv_base.wire.language.apply import ApplyCommand
from metasrv_base.wire.problem.problems import FieldError

NOT_IN_PLACE = "not-in-place"


@dataclass(frozen=True, slots=True)
class ObjectName:
    """An object of the catalog, by its full name after all renames."""

    what: str
    """catalog, schema, table, placement or tablespace."""
    name: str


@dataclass(frozen=True, slots=True)
class DeclaredName:
    """A table, by its name after all renames."""

    catalog: str
    schema: str
    table: str

    @property
    def object(self) -> ObjectName:
        return ObjectName("table", f"{self.catalog}.{self.schema}.{self.table}")


@dataclass(frozen=True, slots=True)
class Operation:
    """One change of one object, as the request that makes it."""

    target: ObjectName
    command: ApplyCommand
    text: str
    """For people, without the name of the object."""
    destructive: str | None = None
    """The loss: values, a rule, or an index of reads; None: there is none."""
    phase: int = 0
    """Alters of one table that are one behind the other and of one phase are one request."""


@dataclass(slots=True)
class DeclaredPlan:
    """Operations in the order in which they can be done, and what cannot be done."""

    operations: list[Operation] = field(default_factory=list)
    refusals: list[FieldError] = field(default_factory=list)

    def add(
        self,
        target: ObjectName,
        command: ApplyCommand,
        text: str,
        destructive: str | None = None,
    ) -> None:
        self.operations.append(Operation(target, command, text, destructive))

    def alter(
        self, name: DeclaredName, phase: int, operation: AlterOperation, loss: str | None = None
    ) -> None:
        command = AltersTable(
            alter_table=TableToAlter(
                catalog=name.catalog,
                schema_name=name.schema,
                table=name.table,
                operations=(operation,),
            )
        )
        self.operations.append(Operation(name.object, command, altered(operation), loss, phase))

    def refuse(self, pointer: str, reason: str) -> None:
        self.refusals.append(FieldError(pointer=pointer, code=NOT_IN_PLACE, detail=reason))
