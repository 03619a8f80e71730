"""`metasrv export` without a table: the definitions of a catalog as `metasrv apply` reads them."""

from typing import Any

import typer

from metasrv.cli.options import service
from metasrv.cli.output import show_json


def export_definitions(
    catalog: str, schema: str | None, metasrv: str | None, *, as_json: bool
) -> None:
    """Writes YAML, or JSON, to stdout; fields that are as by default are left out."""
    with service(metasrv, as_json) as client:
        state = client.export(catalog=catalog, schema=schema)
    document: dict[str, Any] = state.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    if as_json:
        show_json(document)
        return
    from metasrv.cli.language.yaml_file import yaml_text

    typer.echo(yaml_text(document), nl=False)
