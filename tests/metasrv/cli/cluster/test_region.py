"""`metasrv region remove-copy`, as a user types it."""

from tests.metasrv.cli.conftest import Run
from tests.metasrv.cli.rest import Rest


def test_given_a_needed_copy_when_removed_by_force_without_a_reason_then_nothing_is_asked(
    rest: Rest, run: Run
) -> None:
    done = run("region", "remove-copy", "4398046511104", "dn-2", "--force", "--metasrv", rest.url)

    assert done.exit_code == 2, done.output
    assert "--force needs a --reason" in done.output
    assert rest.asked == []
