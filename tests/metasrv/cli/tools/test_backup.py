"""`metasrv backup create` and `verify`: files, exit codes, text and JSON."""

import json
import stat
from pathlib import Path

from metasrv_base.backup.backup_file import BackupFailure, BackupHeader, BackupKey
from metasrv_base.backup.backup_writer import BackupWriter
from metasrv_base.errors import Unavailable
from tests.metasrv.cli.conftest import Run
from tests.metasrv.cli.rest import Rest

BACKUPS = ("POST", "/v1/backups")
HEADER = BackupHeader(cluster_id="c-1", revision=7, keys=1, made_at_ms=1_000, made_by="0.1")


def whole() -> bytes:
    writer = BackupWriter()
    key = BackupKey.of(b"__cluster", b'{"format":1,"cluster_id":"c-1","created_at_ms":1}', 5, 5)
    return writer.begin(HEADER) + writer.keys([key]) + writer.end()


def given_up() -> bytes:
    writer = BackupWriter()
    failure = BackupFailure(failed="history-expired", reason="compacted")
    return writer.begin(HEADER) + writer.fail(failure)


def test_given_a_service_when_backed_up_then_the_file_is_whole_and_private(
    rest: Rest, run: Run, tmp_path: Path
) -> None:
    rest.answers[BACKUPS] = 200, whole()
    file = tmp_path / "c.backup.gz"

    made = run("backup", "create", str(file), METASRV_URL=rest.url)
    as_json = run("backup", "create", str(file), "--overwrite", "--json", METASRV_URL=rest.url)

    assert made.exit_code == 0, made.output
    assert "revision" in made.stdout
    assert file.read_bytes() == whole()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    said = json.loads(as_json.stdout)
    assert (said["cluster_id"], said["keys"], said["made_at"]) == ("c-1", 1, "1970-01-01T00:00:01Z")
    assert said["bytes"] == len(whole())


def test_given_a_file_of_that_name_then_it_is_kept(rest: Rest, run: Run, tmp_path: Path) -> None:
    rest.answers[BACKUPS] = 200, whole()
    file = tmp_path / "c.backup.gz"
    file.write_text("mine")

    refused = run("backup", "create", str(file), METASRV_URL=rest.url)

    assert refused.exit_code == 2
    assert "--overwrite" in refused.stderr
    assert (file.read_text(), rest.asked) == ("mine", [])


def test_given_an_answer_that_is_cut_then_no_file(rest: Rest, run: Run, tmp_path: Path) -> None:
    rest.answers[BACKUPS] = 200, whole()[:-10]
    file = tmp_path / "c.backup.gz"

    refused = run("backup", "create", str(file), METASRV_URL=rest.url)

    assert refused.exit_code == 1
    assert "cut" in refused.stderr
    assert list(tmp_path.iterdir()) == []


def test_given_etcd_compacted_meanwhile_then_it_begins_again_a_few_times(
    rest: Rest, run: Run, tmp_path: Path
) -> None:
    file = tmp_path / "c.backup.gz"

    def compacted_twice(method: str, path: str) -> None:
        begun = [one for one in rest.asked if one.path == BACKUPS[1]]
        rest.answers[BACKUPS] = 200, whole() if len(begun) == 2 else given_up()

    rest.on_request = compacted_twice
    made = run("backup", "create", str(file), METASRV_URL=rest.url)
    rest.on_request = lambda method, path: None
    rest.answers[BACKUPS] = 200, given_up()
    always = run("backup", "create", str(file), "--overwrite", METASRV_URL=rest.url)

    assert made.exit_code == 0, made.output
    assert made.stderr.count("begins again") == 2
    assert (always.exit_code, file.read_bytes()) == (1, whole())
    assert len(rest.asked) == 6


def test_given_a_service_that_cannot_then_its_reason(rest: Rest, run: Run, tmp_path: Path) -> None:
    rest.answers[BACKUPS] = Unavailable("not-ready", what="a backup (2 are being made)")

    refused = run("backup", "create", str(tmp_path / "c.gz"), METASRV_URL=rest.url)

    assert refused.exit_code in (1, 2)
    assert "2 are being made" in refused.stderr
    assert list(tmp_path.iterdir()) == []


def test_given_files_when_verified_then_0_for_a_sound_one_and_1_for_others(
    run: Run, tmp_path: Path
) -> None:
    sound, cut, other = (tmp_path / name for name in ("sound.gz", "cut.gz", "other.gz"))
    sound.write_bytes(whole())
    cut.write_bytes(whole()[:-1])
    other.write_text("PK, and what else is in a file")

    said = json.loads(run("backup", "verify", str(sound), "--json").stdout)
    refused = {file: run("backup", "verify", str(file)) for file in (cut, other)}
    missing = run("backup", "verify", str(tmp_path / "no.gz"))

    assert (said["keys"], said["cluster_id"]) == (1, "c-1")
    assert {result.exit_code for result in refused.values()} == {1}
    assert "cut" in refused[cut].stderr
    assert "no gzip" in refused[other].stderr
    assert (missing.exit_code, "no.gz" in missing.stderr) == (2, True)
