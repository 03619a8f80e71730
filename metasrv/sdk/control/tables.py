"""Tables and indexes as resources: made, read, changed and dropped through metasrv."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Unpack, overload

from pydantic import BaseModel, TypeAdapter, ValidationError

from metasrv.sdk.control.names import SchemaName, TableName
from metasrv.sdk.control.service import ChangeOptions, ControlService, DoneChange, Params, past
from metasrv_base.errors import Refused
from metasrv_base.wire.api.coverage import IndexDuplicates
from metasrv_base.wire.api.tables import (
    IndexBody,
    IndexList,
    IndexSpec,
    RestoredTable,
    RouteBody,
    TableBody,
    TableList,
    TableSpec,
    TableSummary,
)
from metasrv_base.wire.problem.problems import field_errors

if TYPE_CHECKING:
    from metasrv_base.wire.api.changes import AlterOperation
    from metasrv_base.wire.api.imports import ImportBody
    from metasrv_base.wire.api.procedures import ProcedureBody
    from metasrv_base.wire.api.versions import CatalogChange, SchemaVersionBody, TableDiff
    from metasrv_base.wire.node.checks import TableCheckBody

M = TypeVar("M", bound=BaseModel)
CATALOG_VERSIONS = "/v1/catalog/versions"
Spec = TableSpec | Mapping[str, Any]


class Tables:
    """`client.tables`. Names are `flights`, `public.flights` or `main.public.flights`."""

    def __init__(self, service: ControlService) -> None:
        self._service = service

    async def create(
        self, spec: Spec, schema: str = "main.public", **options: Unpack[ChangeOptions]
    ) -> TableBody:
        """Creates a table; when it returns the table takes rows. `spec`: a
        `metasrv_base.wire.api.tables.TableSpec`."""
        table_spec = model_of(TableSpec, spec)
        within = SchemaName.parse(schema)
        done = await self._service.change("POST", f"{within.path}/tables", table_spec, **options)
        return await self._after(done, TableName(within.catalog, within.schema, table_spec.name))

    async def get(self, name: str, as_of: str | None = None) -> TableBody:
        """Returns a table. With *as_of*, as it was at a version of the catalog, as `17`, or at a
        time, as `2013-01-31T23:59:59Z`; the same holds of all reads."""
        path = TableName.parse(name).path
        return await self._service.read_catalog(TableBody, path, past(as_of))

    async def get_by_id(self, table_id: int) -> TableBody:
        """The table of an id, also a dropped one."""
        return await self._service.read_catalog(TableBody, f"/v1/tables/{table_id}")

    async def list(
        self,
        schema: str = "main.public",
        prefix: str = "",
        include_dropped: bool = False,
        as_of: str | None = None,
    ) -> list[TableSummary]:
        path = f"{SchemaName.parse(schema).path}/tables"
        params = {**past(as_of), **({"prefix": prefix} if prefix else {})}
        if include_dropped:
            params["include_dropped"] = "true"
        pages = self._service.pages(TableList, path, params, of_catalog=True)
        return [table async for page in pages for table in page.tables]

    @overload
    async def rename(
        self,
        name: str,
        new_name: str,
        new_schema: str | None = None,
        *,
        exchange: bool = False,
        if_exists: Literal[False] = False,
        **options: Unpack[ChangeOptions],
    ) -> TableBody: ...
    @overload
    async def rename(
        self,
        name: str,
        new_name: str,
        new_schema: str | None = None,
        *,
        exchange: bool = False,
        if_exists: bool,
        **options: Unpack[ChangeOptions],
    ) -> TableBody | None: ...
    async def rename(
        self,
        name: str,
        new_name: str,
        new_schema: str | None = None,
        *,
        exchange: bool = False,
        if_exists: bool = False,
        **options: Unpack[ChangeOptions],
    ) -> TableBody | None:
        """`new_schema`: of the same catalog; None: it stays in its schema. *exchange*: the table
        that bears the new name takes the old one, in the same moment. None: `if_exists`, and there
        is no such table."""
        from metasrv_base.wire.api.changes import RenameRequest

        old = TableName.parse(name)
        fields = {"new_name": new_name, "new_schema": new_schema, "exchange": exchange}
        request = model_of(RenameRequest, fields | {"if_exists": if_exists})
        done = await self._service.change("POST", f"{old.path}/rename", request, **options)
        new = TableName(old.catalog, new_schema or old.schema, new_name)
        return await self._after(done, new) if done.applied else None

    @overload
    async def alter(
        self,
        name: str,
        operations: "Sequence[AlterOperation | Mapping[str, Any]]",
        grace_s: int = 0,
        *,
        if_exists: Literal[False] = False,
        **options: Unpack[ChangeOptions],
    ) -> TableBody: ...
    @overload
    async def alter(
        self,
        name: str,
        operations: "Sequence[AlterOperation | Mapping[str, Any]]",
        grace_s: int = 0,
        *,
        if_exists: bool,
        **options: Unpack[ChangeOptions],
    ) -> TableBody | None: ...
    async def alter(
        self,
        name: str,
        operations: "Sequence[AlterOperation | Mapping[str, Any]]",
        grace_s: int = 0,
        *,
        if_exists: bool = False,
        **options: Unpack[ChangeOptions],
    ) -> TableBody | None:
        """All of them or none. As `{"op": "rename_column", "name": "a", "new_name": "b"}`. What is
        dropped can be undropped for *grace_s*: as long this waits, and the table with it. None:
        `if_exists`, and there is no such table."""
        from metasrv_base.wire.api.changes import AlterRequest

        table = TableName.parse(name)
        documents = [
            operation.model_dump() if isinstance(operation, BaseModel) else operation
            for operation in operations
        ]
        fields = {"operations": documents, "grace_s": grace_s, "if_exists": if_exists}
        request = model_of(AlterRequest, fields)
        done = await self._service.change("POST", f"{table.path}/alter", request, **options)
        return await self._after(done, table) if done.applied else None

    async def drop(
        self, name: str, if_exists: bool = False, **options: Unpack[ChangeOptions]
    ) -> bool:
        """Drops a table. Its rows are kept for the drop retention: see `undrop`. False:
        `if_exists`, and there is no such table."""
        path, params = TableName.parse(name).path, dropping(if_exists=if_exists)
        return (await self._service.change("DELETE", path, params=params, **options)).applied

    async def undrop(
        self,
        name: str,
        table_id: int | None = None,
        new_name: str | None = None,
        **options: Unpack[ChangeOptions],
    ) -> TableBody:
        from metasrv_base.wire.api.changes import UndropRequest

        table = TableName.parse(name)
        request = model_of(UndropRequest, {"table_id": table_id, "new_name": new_name})
        done = await self._service.change("POST", f"{table.path}/undrop", request, **options)
        return await self._after(
            done, TableName(table.catalog, table.schema, new_name or table.table)
        )

    async def purge(
        self,
        reason: str,
        name: str | None = None,
        table_id: int | None = None,
        **options: Unpack[ChangeOptions],
    ) -> None:
        """Deletes a dropped table for good, by its full name, its id, or both."""
        from metasrv_base.wire.api.changes import PurgeRequest

        table = None if name is None else TableName.parse(name)
        full = table and f"{table.catalog}.{table.schema}.{table.table}"
        request = model_of(PurgeRequest, {"table": full, "table_id": table_id, "reason": reason})
        await self._service.change("POST", "/v1/purges", request, **options)

    async def undrop_column(
        self, table: str, name: str, **options: Unpack[ChangeOptions]
    ) -> "ProcedureBody":
        """Cancels the alter that drops it, in its grace time: all of it. NotFound: there is none.
        Conflict `past-point-of-no-return`: it is over."""
        from metasrv_base.wire.api.procedures import ProcedureBody

        path = f"{TableName.parse(table).path}/columns/{name}/undrop"
        return (await self._service.ask("POST", path, **options)).body(ProcedureBody)

    async def truncate(self, name: str, **options: Unpack[ChangeOptions]) -> TableBody:
        """All its rows go, for good; its definition stays."""
        table = TableName.parse(name)
        done = await self._service.change("POST", f"{table.path}/truncate", **options)
        return await self._after(done, table)

    async def check(self, name: str, **options: Unpack[ChangeOptions]) -> "TableCheckBody":
        """All its rows and entries held against its schema. Faults are the answer, no error."""
        from metasrv_base.wire.node.checks import TableCheckBody

        path = f"{TableName.parse(name).path}/check"
        done = await self._service.change("POST", path, **options)
        result = done.procedure.result if done.procedure is not None else done.document
        return model_of(TableCheckBody, result or {})

    async def import_files(
        self, name: str, paths: Sequence[str], **options: Unpack[ChangeOptions]
    ) -> "ImportBody":
        """All rows of Parquet files, or of folders of them, or none: read by the servers' Spark, so
        the paths are absolute, and where it runs."""
        from metasrv_base.wire.api.imports import ImportBody, ImportRequest

        request = model_of(ImportRequest, {"paths": list(paths)})
        path = f"{TableName.parse(name).path}/import"
        done = await self._service.change("POST", path, request, **options)
        result = done.procedure.result if done.procedure is not None else done.document
        return model_of(ImportBody, result or {})

    async def route(self, name: str, as_of: str | None = None) -> RouteBody:
        """The place of each of its regions."""
        path = f"{TableName.parse(name).path}/route"
        return await self._service.read_catalog(RouteBody, path, past(as_of))

    async def versions(
        self, name: str, limit: int = 100, transitions: bool = False, as_of: str | None = None
    ) -> "Sequence[CatalogChange]":
        """Its changes, the newest first, under whatever name it had. *transitions*: each version
        by itself."""
        params = {**past(as_of), **({"transitions": "true"} if transitions else {})}
        path = f"{TableName.parse(name).path}/versions"
        return await changes(self._service, path, params, limit)

    async def schema_versions(
        self, name: str, as_of: str | None = None
    ) -> "Sequence[SchemaVersionBody]":
        """The sets of columns that it had, the newest first: at most 100."""
        from metasrv_base.wire.api.versions import TableVersionList

        path = f"{TableName.parse(name).path}/versions"
        params = {**past(as_of), "page_size": 1}
        return (await self._service.read_catalog(TableVersionList, path, params)).schema_versions

    async def restore(
        self, name: str, version: int, grace_s: int = 0, **options: Unpack[ChangeOptions]
    ) -> RestoredTable:
        """Brings the definition that it had at a version of the catalog back, by an alter. What
        does not come back is in `not_restored`, and in that of the plan (`dry_run`)."""
        from metasrv_base.wire.api.changes import RestoreRequest

        table = TableName.parse(name)
        request = model_of(RestoreRequest, {"version": version, "grace_s": grace_s})
        done = await self._service.change("POST", f"{table.path}/restore", request, **options)
        if done.document is not None:
            return model_of(RestoredTable, done.document)
        return RestoredTable(**dict(await self._after(done, table)), not_restored=None)

    async def diff(self, name: str, before: int, after: int | None = None) -> "TableDiff":
        """The difference between two versions of the catalog, as operations of an alter. None: as
        it is now. Refused `history-expired`: *before* is not kept any more."""
        from metasrv_base.wire.api.versions import TableDiff

        params = {"from": before, **({} if after is None else {"to": after})}
        path = f"{TableName.parse(name).path}/diff"
        return await self._service.read(TableDiff, path, params)

    async def _after(self, done: DoneChange, name: TableName) -> TableBody:
        """The table as the change left it, or as it is by now."""
        if done.document is not None:
            return model_of(TableBody, done.document)
        resource = done.procedure.resource if done.procedure is not None else None
        if resource is not None and resource.type == "table" and resource.id.isdecimal():
            return await self.get_by_id(int(resource.id))
        return await self._service.read_catalog(TableBody, name.path)


class Indexes:
    """`client.indexes`, of a table by its name."""

    def __init__(self, service: ControlService) -> None:
        self._service = service

    async def create(
        self, table: str, spec: IndexSpec | Mapping[str, Any], **options: Unpack[ChangeOptions]
    ) -> IndexBody:
        """Public when it returns; with `not_valid`, it may be write-only, and says why. From then
        on rows are written through a frontend. Refused `unique-violation` names rows that have its
        values twice. *spec*: as `{"name": "by_city", "columns": ["city"]}`."""
        index_spec = model_of(IndexSpec, spec)
        done = await self._service.change("POST", indexes_path(table), index_spec, **options)
        return await self._made(table, index_spec.name, done)

    async def validate(self, table: str, name: str, **options: Unpack[ChangeOptions]) -> IndexBody:
        """Public when it returns. Raises as `create`; then it stays write-only."""
        path = f"{indexes_path(table)}/{name}/validate"
        return await self._made(table, name, await self._service.change("POST", path, **options))

    async def _made(self, table: str, name: str, done: DoneChange) -> IndexBody:
        if done.document is not None:
            return model_of(IndexBody, done.document)
        index = await self.get(table, name)
        result = (done.procedure and done.procedure.result) or {}
        if not result.get("duplicates"):
            return index
        why = {"total": result["duplicates"], "first": result["offenders"]}
        return index.model_copy(update={"duplicates": model_of(IndexDuplicates, why)})

    async def get(self, table: str, name: str, as_of: str | None = None) -> IndexBody:
        path = f"{indexes_path(table)}/{name}"
        return await self._service.read_catalog(IndexBody, path, past(as_of))

    async def list(self, table: str, as_of: str | None = None) -> list[IndexBody]:
        """All indexes of a table, also those being created or dropped."""
        path = indexes_path(table)
        return [*(await self._service.read_catalog(IndexList, path, past(as_of))).indexes]

    async def drop(
        self,
        table: str,
        name: str,
        grace_s: int = 0,
        *,
        if_exists: bool = False,
        **options: Unpack[ChangeOptions],
    ) -> bool:
        """Drops an index, which can be undropped for *grace_s* seconds; the call waits for their
        end, too. Returns False with *if_exists*, if there is no such index."""
        path = f"{indexes_path(table)}/{name}"
        params = {**dropping(if_exists=if_exists), **({"grace_s": grace_s} if grace_s else {})}
        return (await self._service.change("DELETE", path, params=params, **options)).applied

    async def undrop(
        self, table: str, name: str, **options: Unpack[ChangeOptions]
    ) -> "ProcedureBody":
        """Cancels its drop, in its grace time: it is public again. Raises as `undrop_column`."""
        from metasrv_base.wire.api.procedures import ProcedureBody

        path = f"{indexes_path(table)}/{name}/undrop"
        return (await self._service.ask("POST", path, **options)).body(ProcedureBody)


def indexes_path(table: str) -> str:
    return f"{TableName.parse(table).path}/indexes"


def model_of(model: type[M], value: object) -> M:
    """`value`, judged as the service would judge it. Raises Refused with `errors`."""
    if isinstance(value, model):
        return value
    try:
        return TypeAdapter(model).validate_python(value)
    except ValidationError as error:
        errors = field_errors([dict(item) for item in error.errors()], value)
        raise Refused("invalid-request", errors=errors) from error


async def changes(
    service: ControlService, path: str, params: Params, limit: int
) -> "Sequence[CatalogChange]":
    """The first *limit* changes of a history."""
    from metasrv_base.wire.api.versions import TableVersionList, VersionList

    page_type = VersionList if path == CATALOG_VERSIONS else TableVersionList
    listed: list[CatalogChange] = []
    async for page in service.pages(page_type, path, params, of_catalog=True):
        listed += page.changes
        if len(listed) >= limit:
            break
    return listed[:limit]


def dropping(*, cascade: bool = False, if_exists: bool = False) -> dict[str, str | int | bool]:
    """The query of a drop."""
    flags = {"cascade": cascade, "if_exists": if_exists}
    return {name: "true" for name, is_given in flags.items() if is_given}
