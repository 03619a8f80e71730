"""A metasrv that makes tables with copies, which the API refuses as yet: run in place of
`metasrv.server.main`."""

from collections.abc import Sequence
from importlib import import_module

from metasrv_base.wire.api import table_rules
from metasrv_base.wire.api.tables import TableSpec
from metasrv_base.wire.problem.problems import FieldError

MODULE = "tests.process.harness.copies.copying_server"
_validate = table_rules.validate_spec


def validate_all_but_replicas(spec: TableSpec) -> tuple[FieldError, ...]:
    return tuple(error for error in _validate(spec) if error.pointer != "/replicas")


def main(args: Sequence[str] | None = None) -> int:
    table_rules.validate_spec = validate_all_but_replicas
    code: int = import_module("metasrv.server.main").main(args)
    return code
