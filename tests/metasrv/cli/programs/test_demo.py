"""`metasrv demo` in a folder of somebody: data of a playground goes only if that is asked for."""

from pathlib import Path

import pytest

from tests.metasrv.cli.conftest import Run


@pytest.mark.parametrize("name", ["etcd", "dn-1", "logs"])
def test_given_a_folder_with_a_playground_when_the_demo_is_to_use_it_then_it_is_refused(
    run: Run, tmp_path: Path, name: str
) -> None:
    file = tmp_path / name / "kept"
    file.parent.mkdir()
    file.write_text("rows")

    done = run("demo", "--data-dir", str(tmp_path))

    assert done.exit_code == 2
    assert "--reset deletes it" in " ".join(done.stderr.split())
    assert file.read_text() == "rows"
