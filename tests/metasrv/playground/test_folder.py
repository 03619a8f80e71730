"""A reset deletes the data of an earlier playground, and not the log that its own start writes."""

from pathlib import Path

from metasrv.playground.folder import LOG, cleared, has_data


def test_given_an_earlier_playground_when_cleared_then_the_log_of_the_start_alone_stays(
    tmp_path: Path,
) -> None:
    kept = [tmp_path / LOG, tmp_path / "mine/notes.txt"]
    deleted = [tmp_path / "logs/etcd.log", tmp_path / "etcd/member/x", tmp_path / "dn-1/region/y"]
    for path in (*kept, *deleted):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")

    cleared(tmp_path)

    assert [path.exists() for path in kept] == [True, True]
    assert [path.exists() for path in deleted] == [False, False, False]


def test_given_a_folder_when_a_reset_would_delete_nothing_then_it_has_no_data(
    tmp_path: Path,
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "etcd").write_text("a file of somebody")
    (tmp_path / "dn-1").symlink_to(tmp_path / "mine")

    assert not has_data(tmp_path)
    assert not has_data(tmp_path / "absent")
    (tmp_path / "m-1").mkdir()
    assert has_data(tmp_path)
