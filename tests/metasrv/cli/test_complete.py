"""A TAB: names from the service, and nothing imported that it does not need."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import cast, get_args

import pytest
import typer
from typer._completion_shared import get_completion_script
from typer.testing import CliRunner

from metasrv.cli.catalog.column_text import TYPE_NAMES
from metasrv.cli.cluster.procedure import PERCENT_MAX
from metasrv.cli.cluster.procedure_text import KINDS, STATES
from metasrv.cli.complete import (
    TYPE_WORDS,
    Completing,
    catalog_names,
    column_names,
    column_values,
    constraint_names,
    context_names,
    dropped_table_names,
    index_names,
    new_columns,
    node_ids,
    placement_names,
    procedure_ids,
    region_ids,
    renamed_columns,
    schema_names,
    setting_names,
    table_names,
    tablespace_names,
    typed_columns,
    words_of,
)
from metasrv.cli.contexts.contexts import Contexts, NamedService, write_contexts
from metasrv.cli.main import COMMANDS, application
from metasrv.cli.options import GRACE_S_MAX
from metasrv.program.version import VERSION
from metasrv_base.schema import types
from metasrv_base.wire.api import changes, control
from metasrv_base.wire.api.procedures import ProcedureState
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
LIST_MODULES_MAX = 325
TAB_MODULES_MAX = 250
"""Modules of all packages, as few as there are now and some to spare: a command of the group that
is completed is a module or two."""
PROGRAMS = {"demo", "check", "playground", "doctor", "config", "server", "datanode", "frontend"}
QUICK = [name for name, _, _ in COMMANDS if name not in PROGRAMS]
TABLES = "/v1/catalogs/main/schemas/public/tables"


def line(**params: str) -> typer.Context:
    """The context of a line whose parameters have these values so far."""
    return cast("typer.Context", SimpleNamespace(params=params, args=[]))


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

    assert table_names(line(), typed) == completed


def test_given_nodes_settings_and_procedures_then_their_names_are_offered(service: Rest) -> None:
    service.answers[("GET", "/v1/nodes")] = (200, {"nodes": [{"id": "dn-1"}, {"id": "x"}]})
    service.answers[("GET", "/v1/settings")] = (200, {"settings": [{"name": "phi_threshold"}]})
    service.answers[("GET", "/v1/procedures")] = (200, {"procedures": [{"id": "018f"}]})

    assert node_ids(line(), "dn") == ["dn-1"]
    assert setting_names(line(), "phi") == ["phi_threshold"]
    assert procedure_ids(line(), "018") == ["018f"]


def test_given_catalogs_and_what_they_hold_then_their_names_are_offered(service: Rest) -> None:
    service.answers[("GET", "/v1/catalogs")] = (200, {"catalogs": [{"name": "main"}]})
    service.answers[("GET", "/v1/placements")] = (200, {"placements": [{"name": "ssd"}]})
    for kind in ("schemas", "tablespaces"):
        names = [{"name": "public"}, {"name": "orders"}]
        service.answers[("GET", f"/v1/catalogs/main/{kind}")] = (200, {kind: names})

    assert catalog_names(line(), "m") == ["main"]
    assert placement_names(line(), "") == ["ssd"]
    assert schema_names(line(), "pu") == ["public"]
    assert schema_names(line(), "main.pu") == ["main.public"]
    assert tablespace_names(line(), "main.o") == ["main.orders"]
    assert schema_names(line(), "none.pu") == []


@pytest.mark.parametrize("named", ["t", "public.t", "main.public.t"])
@pytest.mark.parametrize(
    ("complete", "typed", "completed"),
    [
        (index_names, "by", ["by_name"]),
        (column_names, "na", ["name"]),
        (column_names, "id,na", ["id,name"]),
        (constraint_names, "", ["paid"]),
        (typed_columns, "", ["id:", "name:"]),
        (typed_columns, "na", [f"name:{type}" for type in TYPE_WORDS]),
        (renamed_columns, "", ["id:", "name:"]),
        (column_values, "i", ["id="]),
    ],
)
def test_given_a_line_with_a_table_then_names_within_it_are_offered(
    service: Rest, named: str, complete: Completing, typed: str, completed: list[str]
) -> None:
    table = {
        "columns": [{"name": "id"}, {"name": "name"}],
        "indexes": [{"name": "by_name"}, {"name": "other"}],
        "constraints": [{"name": "paid"}],
    }
    service.answers[("GET", f"{TABLES}/t")] = (200, table)

    assert complete(line(name=named), typed) == completed
    assert complete(line(table=named), typed) == completed
    assert complete(line(), typed) == []
    assert complete(line(table="a.b.c.d"), typed) == []


@pytest.mark.parametrize("complete", [typed_columns, new_columns])
@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("price:fl", ["price:float32", "price:float64"]),
        ("a:int64,price:de", ["a:int64,price:decimal(10,2)"]),
    ],
)
def test_given_a_colon_behind_a_column_then_its_type_is_offered(
    complete: Completing, typed: str, completed: list[str]
) -> None:
    assert complete(line(), typed) == completed


@pytest.mark.parametrize(
    ("complete", "typed"),
    [(new_columns, "pri"), (renamed_columns, "id:"), (column_values, "id=")],
)
def test_given_a_place_for_words_of_the_user_then_nothing_is_offered(
    complete: Completing, typed: str
) -> None:
    assert complete(line(), typed) == []


def test_given_regions_then_their_ids_are_offered(service: Rest) -> None:
    regions = [{"region_id": "4398046511104"}, {"region_id": "5497558138880"}]
    service.answers[("GET", "/v1/regions")] = (200, {"regions": regions})

    assert region_ids(line(), "43") == ["4398046511104"]


def test_given_dropped_tables_then_they_alone_are_offered_to_be_brought_back(
    service: Rest,
) -> None:
    dropped = {"name": "old", "dropped_at": "2026-01-01T00:00:00Z"}
    tables = [{"name": "new", "dropped_at": None}, dropped, dropped]
    service.answers[("GET", TABLES)] = (200, {"tables": tables})

    assert dropped_table_names(line(), "public.") == ["public.old"]
    assert "include_dropped=true" in service.asked[0].path


def test_given_a_list_of_states_then_the_last_of_them_is_completed() -> None:
    assert words_of(STATES)(line(), "running,pa") == ["running,parked", "running,paused"]


def test_given_a_line_with_a_url_then_that_service_is_asked_with_the_token_of_the_file(
    rest: Rest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rest.answers[("GET", "/v1/nodes")] = (200, {"nodes": [{"id": "dn-1"}]})
    monkeypatch.setenv("METASRV_URL", "http://127.0.0.1:1")
    monkeypatch.delenv("METASRV_TOKEN", raising=False)
    monkeypatch.setenv("METASRV_TOKEN_FILE", str(tmp_path / "token"))
    assert node_ids(line(metasrv=rest.url), "dn") == [], "there is no such file"
    (tmp_path / "token").write_text("a" * 43 + "\n")
    (tmp_path / "token").chmod(0o600)

    assert node_ids(line(metasrv=rest.url), "dn") == ["dn-1"]
    assert rest.asked[0].bearer == "Bearer " + "a" * 43


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "", "http://[", "ftp://x"])
def test_given_no_service_then_nothing_is_offered(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("METASRV_URL", url)

    assert table_names(line(), "t") == []


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


@pytest.mark.process
@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("index drop flights by", b"by_name"),
        ("table alter flights --drop-column na", b"name"),
        ("index create flights i --column na", b"name"),
        ("table alter flights --alter-type name : dat", b"date"),
        ("table alter flights --rename-column na", b"name:"),
        ("row update flights id = 5 na", b"name="),
        ("scan --metasrv {url} public.flights --columns id,na", b"id,name"),
        ("show tables --columns table_n", b"table_name"),
        ("show tables --where table_n", b"table_name"),
    ],
)
def test_given_bash_with_the_script_when_a_name_is_begun_then_it_is_completed(
    service: Rest, words: str, completed: bytes
) -> None:
    table = {"columns": [{"name": "id"}, {"name": "name"}], "indexes": [{"name": "by_name"}]}
    service.answers[("GET", f"{TABLES}/flights")] = (200, table)
    view = {"columns": ["table_id", "table_name"]}
    service.answers[("GET", "/v1/information-schema/tables")] = (200, view)
    script = get_completion_script(
        prog_name="metasrv", complete_var="_METASRV_COMPLETE", shell="bash"
    )
    bash, program = shutil.which("bash"), Path(sys.executable).with_name("metasrv")
    assert bash is not None
    line = [str(program), *words.format(url=service.url).split()]
    asked = f"COMP_WORDS=({' '.join(line)}); COMP_CWORD={len(line) - 1}"
    shown = f'_metasrv_completion {program}; echo "${{COMPREPLY[@]}}"'

    done = subprocess.run([bash, "-c", f"{script}\n{asked}\n{shown}"], capture_output=True)

    assert done.stdout == completed + b"\n", done.stderr


def test_given_what_the_options_repeat_to_import_less_then_it_is_what_the_wire_says() -> None:
    assert TYPE_NAMES == types.TYPE_NAMES
    assert GRACE_S_MAX == changes.GRACE_S_MAX
    assert PERCENT_MAX == control.PERCENT_MAX
    assert sorted(KINDS) == sorted(registry.KINDS)
    assert get_args(ProcedureState) == STATES


@pytest.mark.parametrize("flags", [["--version"], ["-V"]])
def test_given_the_flag_then_the_version_is_shown(flags: list[str]) -> None:
    shown = CliRunner().invoke(application([]), flags)

    assert (shown.exit_code, shown.stdout) == (0, f"metasrv {VERSION}\n")


@pytest.mark.parametrize("words", [["-h"], ["table", "-h"], ["table", "list", "-h"]])
def test_given_a_short_flag_then_help_is_shown(words: list[str]) -> None:
    shown = CliRunner().invoke(application(["table"]), words)

    assert shown.exit_code == 0
    assert "Usage" in shown.stdout


def test_given_contexts_then_their_names_are_offered_and_the_named_one_is_asked(
    rest: Rest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    environment = {"XDG_CONFIG_HOME": str(tmp_path)}
    write_contexts(environment, Contexts().with_context("dev", NamedService(rest.url)))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("METASRV_URL", "http://127.0.0.1:1")
    rest.answers[("GET", "/v1/nodes")] = (200, {"nodes": [{"id": "dn-1"}]})

    assert context_names(line(), "d") == ["dev"]
    assert node_ids(line(), "dn") == []
    assert node_ids(line(context="dev"), "dn") == ["dn-1"]
    assert node_ids(line(context="none"), "dn") == []
