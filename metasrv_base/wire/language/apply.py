"""`POST /v1/apply`: a desired state, and the plan that leads to it."""

from typing import Literal, TypeAlias

from pydantic import ConfigDict, Field

from metasrv_base.wire.api import batches
from metasrv_base.wire.api.batches import Placed
from metasrv_base.wire.api.procedures import ProcedureBody
from metasrv_base.wire.api.tables import Identifier, IndexSpec
from metasrv_base.wire.api.tenants import CatalogPatch
from metasrv_base.wire.language.declared import DesiredState
from metasrv_base.wire.model import Int64, Listed, WireModel

APPLY_BYTES_MAX = 16 << 20
"""The largest body of this route, in bytes."""
SQL_FILES_MAX = 1_000


class IndexToCreate(Placed):
    """An index, and the table that it is over."""

    catalog: Identifier
    schema_name: Identifier = Field(alias="schema")
    table: Identifier
    index: IndexSpec


class IndexOfTable(Placed):
    """An index by its name."""

    catalog: Identifier
    schema_name: Identifier = Field(alias="schema")
    table: Identifier
    index: Identifier


class CatalogToAlter(CatalogPatch):
    """A catalog by its name, and what `PATCH` of it takes."""

    catalog: Identifier


class CreatesIndex(WireModel):
    create_index: IndexToCreate


class DropsIndex(WireModel):
    drop_index: IndexOfTable


class ValidatesIndex(WireModel):
    validate_index: IndexOfTable


class AltersCatalog(WireModel):
    alter_catalog: CatalogToAlter


BatchMember: TypeAlias = (
    batches.CreatesCatalog
    | batches.CreatesSchema
    | batches.CreatesTable
    | batches.DropsTable
    | batches.RenamesTable
    | batches.CreatesPlacement
    | batches.AltersPlacement
    | batches.RenamesPlacement
    | batches.CreatesTablespace
    | batches.AltersTablespace
    | batches.RenamesTablespace
)
ApplyCommand: TypeAlias = (
    BatchMember | batches.AltersTable | CreatesIndex | DropsIndex | ValidatesIndex | AltersCatalog
)


class SqlFile(WireModel):
    """Statements that declare objects: CREATE, COMMENT ON, and ALTER TABLE that adds a
    constraint."""

    model_config = ConfigDict(
        validate_by_name=True, validate_by_alias=True, serialize_by_alias=True
    )

    name: str = Field(max_length=512)
    """Errors name it."""
    text: str
    catalog: Identifier = "main"
    """Holds the schemas that are named without a catalog."""
    schema_name: Identifier = Field(default="public", alias="schema")
    """Holds the tables that are named without a schema."""


class ApplyRequest(WireModel):
    """`POST /v1/apply`."""

    desired: DesiredState = DesiredState()
    sql: Listed[SqlFile] = Field(default=(), max_length=SQL_FILES_MAX)
    """More of the desired state, as SQL."""
    mode: Literal["plan", "apply"]
    prune: bool = False
    """Drop the tables that the desired state does not name, in the schemas that it names."""
    allow_destructive: bool = False
    """Do also what loses rows, or what no longer enforces a rule or serves reads. False: such a
    plan is refused, and nothing of it is done."""
    plan_hash: str | None = Field(default=None, max_length=64)
    """Digest of the plan that was looked at; another one is 409 `plan-changed`. Null: any plan."""


class PlannedOperation(WireModel):
    """One operation of a plan."""

    what: str
    """catalog, schema, table, placement or tablespace."""
    name: str
    """The full name of the object, after all renames."""
    text: str
    """The operation for people."""
    destructive: str | None = None
    """The loss: values, a rule, or an index of reads; null: there is none."""
    command: ApplyCommand
    """The command as `POST /v1/batch` takes it; of indexes, catalogs and alters what their routes
    take."""


class AppliedStep(WireModel):
    """Operations that were one request, and its procedure."""

    operations: Int64
    """Their number; they are next in the order of the plan."""
    procedure_id: str | None = None
    catalog_version: Int64 | None = None


class ApplyBody(WireModel):
    """The plan, and as far as it was asked for, what has been done of it."""

    operations: Listed[PlannedOperation]
    """Operations in the order in which they are done; none if the catalog is as declared."""
    plan_hash: str
    """Digest of these operations and of the state of the objects that they change. Where
    `procedure` is the plan's own: of what is left once that has succeeded."""
    steps: Listed[AppliedStep] = ()
    """The operations that are done, in order."""
    procedure: ProcedureBody | None = None
    """A change that is not over: the next step, or another's that is waited for."""
    is_own: bool = False
    """Whether `procedure` is the next step of this plan."""
    catalog_version: Int64
