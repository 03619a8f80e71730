"""A TAB: names from the service, and nothing imported that it does not need."""

import json
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from metasrv.cli.catalog.column_text import TYPE_NAMES
from metasrv.cli.cluster.procedure import PERCENT_MAX
from metasrv.cli.cluster.procedure_text import KINDS
from metasrv.cli.complete import node_ids, procedure_ids, setting_names, table_names
from metasrv.cli.main import COMMANDS, application
from metasrv.cli.options import GRACE_S_MAX
from metasrv.program.version import VERSION
from metasrv_base.schema import types
from metasrv_base.wire.api import changes, control
from procedures.kinds import registry
from tests.metasrv.cli.rest import Rest

SLOW = ("pyarrow", "numpy", "pydantic", "httpx", "fastapi", "starlette", "rich.console")
UNUSED = (
    *("pyarrow", "numpy", "fastapi", "starlette", "rich", "pygments", "click", "httpx._main"),
    *("metasrv_base.wire.api.cluster", "metasrv_base.wire.api.procedures"),
    *("metasrv_base.wire.api.changes", "metasrv.sdk.control.operations"),
    *("metasrv_base.wire.api.tables", "metasrv.sdk.client", "asyncio", "httpx", "tenacity"),
)
"""Modules of no use for a list of tables."""
LIST_MODULES_MAX = 320
TAB_MODULES_MAX = 250
"""Modules of all packages, as few as there are now and some to spare: a command of the group that
is completed is a module or two."""
PROGRAMS = {"demo", "check", "playground", "doctor", "config", "server", "datanode", "frontend"}
QUICK = [name for name, _, _ in COMMANDS if name not in PROGRAMS]
TABLES = "/v1/catalogs/main/schemas/public/tables"


@pytest.fixture
def service(rest: Rest, monkeypatch: pytest.MonkeyPatch) -> Rest:
    monkeypatch.setenv("METASRV_URL", rest.url)
    return rest


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("", ["flights", "fleet"]),
        ("fl", ["flights", "fleet"]),
        ("public.fli", ["public.flights"]),
        ("main.public.", ["main.public.flights", "main.public.fleet"]),
    ],
)
def test_given_tables_when_a_name_is_begun_then_those_that_begin_so_are_offered(
    service: Rest, typed: str, completed: list[str]
) -> None:
    service.answers[("GET", TABLES)] = (200, {"tables": [{"name": "flights"}, {"name": "fleet"}]})

    assert table_names(typed) == completed


def test_given_nodes_settings_and_procedures_then_their_names_are_offered(service: Rest) -> None:
    service.answers[("GET", "/v1/nodes")] = (200, {"nodes": [{"id": "dn-1"}, {"id": "x"}]})
    service.answers[("GET", "/v1/settings")] = (200, {"settings": [{"name": "phi_threshold"}]})
    service.answers[("GET", "/v1/procedures")] = (200, {"procedures": [{"id": "018f"}]})

    assert node_ids("dn") == ["dn-1"]
    assert setting_names("phi") == ["phi_threshold"]
    assert procedure_ids("018") == ["018f"]


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "", "http://[", "ftp://x"])
def test_given_no_service_then_nothing_is_offered(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("METASRV_URL", url)

    assert table_names("t") == []


@pytest.mark.process
@pytest.mark.parametrize("command", QUICK)
def test_given_a_command_when_completed_then_no_slow_package_is_imported(command: str) -> None:
    program = (
        "import json, sys; from metasrv.cli.main import COMMANDS, application; "
        f"application([{command!r}]); print(json.dumps(list(sys.modules)))"
    )

    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)

    assert [name for name in json.loads(done.stdout) if name in SLOW] == []


@pytest.mark.process
def test_given_tables_when_listed_then_neither_arrow_nor_the_client_is_imported(
    service: Rest,
) -> None:
    table = {"id": 1024, "name": "flights", "version": 1, "created_at": "2026-01-01T00:00:00Z"}
    service.answers[("GET", TABLES)] = (200, {"tables": [table], "catalog_version": 7})
    program = (
        "import atexit, json, sys; from metasrv.cli.main import main; "
        "atexit.register(lambda: print(json.dumps(list(sys.modules)), file=sys.stderr)); "
        "main(['table', 'list'])"
    )

    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)

    assert b"flights" in done.stdout
    modules = json.loads(done.stderr)
    assert [name for name in modules if name in UNUSED] == []
    assert len(modules) <= LIST_MODULES_MAX


@pytest.mark.process
def test_given_a_tab_when_names_are_asked_for_then_no_slow_package_is_imported(
    service: Rest,
) -> None:
    service.answers[("GET", TABLES)] = (200, {"tables": [{"name": "flights"}]})
    program = (
        "import atexit, json, sys; from metasrv.cli.main import main; "
        "atexit.register(lambda: print(json.dumps(list(sys.modules)), file=sys.stderr)); main([])"
    )
    words = {"COMP_WORDS": "metasrv table get ", "COMP_CWORD": "3"}
    shell = {**os.environ, **words, "_METASRV_COMPLETE": "complete_bash"}

    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, env=shell
    )

    modules = json.loads(done.stderr)
    assert done.stdout == b"flights\n"
    assert [name for name in modules if name in (*SLOW, *UNUSED)] == []
    assert len(modules) <= TAB_MODULES_MAX


def test_given_what_the_options_repeat_to_import_less_then_it_is_what_the_wire_says() -> None:
    assert TYPE_NAMES == types.TYPE_NAMES
    assert GRACE_S_MAX == changes.GRACE_S_MAX
    assert PERCENT_MAX == control.PERCENT_MAX
    assert sorted(KINDS) == sorted(registry.KINDS)


@pytest.mark.parametrize("flags", [["--version"], ["-V"]])
def test_given_the_flag_then_the_version_is_shown(flags: list[str]) -> None:
    shown = CliRunner().invoke(application([]), flags)

    assert (shown.exit_code, shown.stdout) == (0, f"metasrv {VERSION}\n")


@pytest.mark.parametrize("words", [["-h"], ["table", "-h"], ["table", "list", "-h"]])
def test_given_a_short_flag_then_help_is_shown(words: list[str]) -> None:
    shown = CliRunner().invoke(application(["table"]), words)

    assert shown.exit_code == 0
    assert "Usage" in shown.stdout
