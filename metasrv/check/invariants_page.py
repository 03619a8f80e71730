"""docs/invariants.md: each invariant, the code that holds it, its checks, and tests against it.

The numbers are cited in docstrings; add below, never renumber.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from inspect import cleandoc

from metasrv.check.rule import CheckRule, Severity
from metasrv.check.rules import RULES

PATH = "docs/invariants.md"
HEADER = """\
# Invariants

Conditions that hold at every moment in every cluster. Code and documents cite them as I1, I2, ...;
a number never changes its meaning.

*Held by* names the code that enforces or asserts it. *Checked by* names the rules of
`metasrv check` that look for violations in real keys and files; they are listed below. *Attacked
by* names tests that try to violate it, or that violate it on purpose to see a rule report it.

Generated from `metasrv/check/invariants_page.py` and the rules of `metasrv/check/rules.py` by
`make generate`; do not edit."""
RULES_HEADER = """\
## The rules of `metasrv check`

Rules run in this order, from single keys to whole regions, and a key or file is reported once, by
the first rule that it violates. A fault at a node or in a file is reported only if a second look,
five seconds later, finds it again, and never for a table that a living procedure touches. Warnings
break no promise and leave exit code 0. Each rule has cases of its own that violate it:
`.venv/bin/pytest tests/metasrv/check/test_rules.py -k RULE` runs them.

*Promise* is the number in [guarantees.md](guarantees.md#promises): 1 nothing acknowledged is lost;
2 no half of a change; 3 a deposed leader does nothing; 4 locks and idempotency; 5 schema versions;
6 one leader for each region, and no row lost."""


@dataclass(frozen=True, slots=True)
class Invariant:
    """One row. `held_by` and `broken_by`: `path` or `path::name` (tests/docs checks that they
    exist); `seen_by`: ids of rules."""

    holds: str
    held_by: tuple[str, ...]
    seen_by: tuple[str, ...]
    broken_by: tuple[str, ...]


CHECK = "tests/metasrv/check/test_rules.py"
TXN = "tests/keys/store/conformance/test_transactions.py"
TAKEOVER = "tests/dataplane/region/engine/test_takeover.py"

INVARIANTS: tuple[Invariant, ...] = (
    Invariant(
        "A change of metadata is one transaction: all its keys, its log entry and its procedure's "
        "record have one revision.",
        (
            "keys/commit/batch.py::seal",
            "keys/commit/entry_writes.py::writes_of",
            "procedures/engine/runner.py",
        ),
        ("table-name", "table-whole", "table-reverse", "removed-whole", "log-together"),
        (CHECK,),
    ),
    Invariant(
        "A transaction writes only keys that were read first, or whose text is derived from one "
        "that was; it compares at least one key that it writes.",
        ("keys/commit/txn.py::Txn", "keys/commit/batch.py::seal"),
        ("log-together", "log-tells"),
        (TXN, CHECK),
    ),
    Invariant(
        "Every write of a leader compares the revision at which it was elected.",
        ("keys/commit/batch.py::LogHead", "keys/commit/committer.py::Committer"),
        ("leader-leased", "candidate-leased", "cluster-one"),
        ("tests/metasrv/leadership/test_election.py", CHECK),
    ),
    Invariant(
        "The catalog log is dense and ordered by time, each update is written once, and the log "
        "leads to exactly the stored keys.",
        (
            "keys/catalog/catalog.py::Catalog.apply",
            "keys/commit/batch.py::seal",
            "keys/catalog/follower.py::Follower",
        ),
        (
            "log-dense",
            "log-times",
            "log-folds",
            "log-tells",
            "log-once",
            "log-parts",
            "snapshot-listed",
            "snapshot-whole",
            "snapshot-tells",
            "server-follows",
        ),
        ("tests/keys/catalog/test_snapshot_codec.py", CHECK),
    ),
    Invariant(
        "Keys and values have one spelling each; unknown keys and newer values are never "
        "rewritten.",
        ("keys/key.py::Key.parse", "keys/value.py::decode"),
        ("key-family", "value-newer", "value-decodes", "setting-valid", "value-identity"),
        ("tests/keys/model/test_families.py", "tests/keys/model/test_families_golden.py", CHECK),
    ),
    Invariant(
        "No id is used twice.",
        ("keys/commit/sequence.py::Sequences", "keys/commit/bootstrap.py"),
        ("id-sequence", "id-once", "removed-living", "cluster-bootstrapped"),
        (CHECK,),
    ),
    Invariant(
        "The holder of a lock follows from the records alone, in order of submission; no procedure "
        "runs without its locks.",
        ("procedures/locking/holding.py::holders",),
        ("procedure-locks", "procedure-submission"),
        (CHECK,),
    ),
    Invariant(
        "An accepted procedure has a record or a history, never both and never neither.",
        ("procedures/engine/runner.py", "procedures/engine/submit.py::Submitter"),
        (
            "procedure-once",
            "procedure-parent",
            "idempotency-target",
            "procedure-parts",
            "parts-named",
            "region-opening",
            "drop-unfinished",
        ),
        (CHECK,),
    ),
    Invariant(
        "A record moves along the edges of its kind; one that this program does not know is parked "
        "and keeps its locks.",
        (
            "procedures/engine/record_transitions.py::follow",
            "procedures/scheduling/recovery.py::entries_of",
        ),
        ("procedure-parked", "procedure-runnable"),
        (CHECK,),
    ),
    Invariant(
        "The parts of a table agree: its regions with its partition rule, its columns with its "
        "keys, its name with its schema.",
        ("metasrv_base/schema/partition.py", "procedures/kinds/tables/create_table.py"),
        (
            *("region-ids", "table-elements", "table-online", "table-schema", "route-nodes"),
            *("table-placing", "placing-reverse"),
        ),
        ("tests/metasrv_base/wire/api/test_table_rules.py", CHECK),
    ),
    Invariant(
        "A region has one leader at its epoch; the highest fence in its root has that epoch, and "
        "no fence is raised to an epoch that the route has not published.",
        (
            "dataplane/region/manifests/fence.py::look",
            "dataplane/region/engine/takeover.py::claim_roots",
        ),
        (
            "region-epoch",
            "region-root",
            "region-copies",
            "region-announced",
            "root-fence",
            "region-one-leader",
            "region-serves",
            "copy-follows",
            "region-claimed",
            "node-root",
            "node-adopted",
        ),
        (TAKEOVER, CHECK),
    ),
    Invariant(
        "Every acknowledged row is in an intact file or log segment that the current manifest "
        "names.",
        (
            "dataplane/region/engine/opening.py::open_existing",
            "dataplane/region/manifests/housekeeping.py::remove_superseded",
        ),
        (
            "root-manifest",
            "file-there",
            "file-intact",
            "file-rows",
            "segment-whole",
            "rows-acknowledged",
            "copies-in-sync",
            "copies-minimum",
        ),
        (TAKEOVER, "tests/dataplane/region/faults/test_power_loss.py", CHECK),
    ),
    Invariant(
        "No replay reads a log beyond its seal, and bytes before a seal never change.",
        ("dataplane/region/log/sealed_log.py::read_sealed",),
        ("segment-sealed",),
        ("tests/dataplane/region/manifests/test_adoption.py", CHECK),
    ),
    Invariant(
        "Every folder that is read is claimed by a route, and every claimed folder exists.",
        ("procedures/kinds/failover/failover_table.py", "dataplane/region/manifests/adoption.py"),
        ("root-borrows", "root-there", "removed-roots", "folder-orphan"),
        ("tests/dataplane/region/manifests/test_adoption.py", CHECK),
    ),
    Invariant(
        "Rows of a file are ordered by key, the newest row of a key first; a key is in the one "
        "region that the partition rule gives, so it is unique in its table.",
        (
            "dataplane/region/files/file_writer.py::write_rows",
            "metasrv_base/schema/partition.py::Router",
        ),
        ("file-order", "rows-placed"),
        ("tests/metasrv_base/schema/test_partition.py", CHECK),
    ),
    Invariant(
        "No step of a schema change goes on while a registered holder may use a version before the "
        "last; the leader alone ends a registration.",
        (
            "metasrv/holders/holder_registry.py::HolderRegistry",
            "metasrv/holders/sync.py::HolderSync.drained",
        ),
        ("holder-plain",),
        ("tests/metasrv/holders/test_holder_registry_planted.py", CHECK),
    ),
    Invariant(
        "A region whose storage is gone or damaged is reported as `lost`, and never replaced by an "
        "empty one.",
        ("dataplane/region/disk/lost.py::lost_if_missing", "procedures/steps/open_and_publish.py"),
        ("region-lost", "region-readable", "unseen"),
        ("tests/dataplane/region/manifests/test_adoption.py", CHECK),
    ),
    Invariant(
        "A catalog never holds more tables or regions than its limits, with those that procedures "
        "are making.",
        ("procedures/scheduling/tenant_limits.py::TenantReservations",),
        ("tenant-limits",),
        ("tests/procedures/scheduling/test_tenant_limits.py", CHECK),
    ),
)


def pages() -> Mapping[str, str]:
    """The pages that scripts/generate.py writes."""
    return {PATH: "\n".join([HEADER, *_invariants(), "", RULES_HEADER, *_rules()]) + "\n"}


def _invariants() -> Iterator[str]:
    for number, invariant in enumerate(INVARIANTS, start=1):
        yield ""
        yield f"**I{number}.** {invariant.holds}"
        yield ""
        yield f"- Held by {_quoted(invariant.held_by)}."
        yield f"- Checked by {_quoted(invariant.seen_by)}."
        yield f"- Attacked by {_quoted(invariant.broken_by)}."


def _quoted(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _rules() -> Iterator[str]:
    numbers = numbers_of_rules()
    yield ""
    yield "| rule | condition | promise | invariant | looks at | severity |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for rule in RULES:
        seen_by = ", ".join(f"I{number}" for number in numbers[rule.id])
        where = f"{rule.scope}, with `--deep`" if rule.deep else str(rule.scope)
        cells = (f"`{rule.id}`", _title(rule), str(rule.promise), seen_by, where, _severity(rule))
        yield f"| {' | '.join(cells)} |"


def numbers_of_rules() -> dict[str, list[int]]:
    """Rule -> the invariants that it checks."""
    numbers_by_rule: dict[str, list[int]] = {rule.id: [] for rule in RULES}
    for number, invariant in enumerate(INVARIANTS, start=1):
        for rule in invariant.seen_by:
            numbers_by_rule[rule].append(number)
    return numbers_by_rule


def _title(rule: CheckRule) -> str:
    why = " ".join(cleandoc(rule.run.__doc__ or "").split())
    return f"{rule.title}. {why}" if why else rule.title


def _severity(rule: CheckRule) -> str:
    return "warning" if rule.severity is Severity.WARNING else "violation"
