"""Batches as a resource: many commands in one version of the catalog, through metasrv."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

from metasrv.sdk.control.service import ChangeOptions, ControlService
from metasrv.sdk.control.tables import model_of

if TYPE_CHECKING:
    from metasrv_base.wire.api.batches import BatchBody


class Batches:
    """`client.batches`."""

    def __init__(self, service: ControlService) -> None:
        self._service = service

    async def run(
        self, commands: Sequence[object], **options: Unpack[ChangeOptions]
    ) -> "BatchBody":
        """All of *commands*, in order, or none. Each is an object with one field, as
        `{"drop_table": {"catalog": "main", "schema": "public", "table": "t"}}`, or its model of
        `metasrv_base.wire.api.batches`. Raises the error of the first that cannot be, with its
        place in the list as the fact `command`."""
        from metasrv_base.wire.api.batches import BatchBody, BatchRequest

        request = model_of(BatchRequest, {"commands": list(commands)})
        body = request.model_dump(mode="json", by_alias=True, exclude_unset=True)
        done = await self._service.change("POST", "/v1/batch", body, **options)
        if done.procedure is None:
            return model_of(BatchBody, done.document)
        version = {"catalog_version": done.procedure.catalog_version}
        return model_of(BatchBody, {**(done.procedure.result or {}), **version})
