"""A client that a generator makes from the checked-in document works against a real socket.

The generator is a Java program, so this test stands with those that start a JVM.
"""

import asyncio
import importlib
import os
import shutil
from pathlib import Path
from types import ModuleType

import openapi_generator_cli
import pytest

from metasrv.api.openapi import PATH
from metasrv.host.toolchain import checkout, read_toolchain
from serving.guard import Bounds
from tests.metasrv.api.rig import leader, spec
from tests.serving.sockets import serving

pytestmark = pytest.mark.spark
NAME = "generated_metasrv_client"
JAR = Path(openapi_generator_cli.__file__).with_name("openapi-generator.jar")
QUICK = ("-XX:TieredStopAtLevel=1", "-Xshare:auto")  # a short life needs no optimizing compiler
ONLY_CODE = "apiTests=false,modelTests=false,apiDocs=false,modelDocs=false"


async def generated(folder: Path) -> None:
    """The package NAME in *folder*."""
    toolchain = read_toolchain(checkout())
    assert toolchain is not None, "run the set-up first"
    java = shutil.which("java", path=toolchain.environment(os.environ["PATH"])["PATH"])
    assert java is not None, "`metasrv doctor` says how to get Java"
    child = await asyncio.create_subprocess_exec(
        *(java, *QUICK, "-jar", str(JAR), "generate", "-g", "python", "-o", str(folder)),
        *("-i", str(checkout() / PATH), "--global-property", ONLY_CODE),
        *("--additional-properties", f"packageName={NAME}"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await child.communicate()
    assert child.returncode == 0, said.decode()


def story(client: ModuleType, url: str) -> list[object]:
    """Makes the calls that a user of the generated client would write first."""
    with client.ApiClient(client.Configuration(host=url)) as connection:
        tables = client.TablesApi(connection)
        wanted = client.TableSpec.from_dict(spec("flights"))
        made = tables.create_table("main", "public", wanted, prefer="wait=10")
        found = tables.get_table("main", "public", "flights")
        listed = tables.list_tables("main", "public", page_size=10)
        try:
            tables.get_table("main", "public", "flihgts")
        except client.ApiException as error:
            problem = client.Problem.from_json(error.body)
    return [made.id == found.id, [one.name for one in listed.tables], problem.did_you_mean]


async def test_given_the_document_when_a_client_is_generated_then_it_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await generated(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    client = importlib.import_module(NAME)

    async with leader() as one, serving(Bounds(), one.app) as port:
        found = await asyncio.to_thread(story, client, f"http://127.0.0.1:{port}")

    assert found == [True, ["flights"], "flights"]
