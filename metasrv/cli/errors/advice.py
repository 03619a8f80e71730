"""Advice for each error, with commands where that of the API speaks of HTTP."""

from collections.abc import Mapping

from metasrv.cli.errors.places import FILE
from metasrv_base.errors import MetaError
from metasrv_base.wire.problem.problems import kind_of

AGAIN = "repeat the command"
ADVICE: Mapping[str, str] = {
    "invalid-request": "correct it and repeat the command; nothing was changed",
    "invalid-sql": "correct the text at that place; nothing was changed",
    "not-in-place": "declare it as it is there, or declare another object and copy the rows",
    "destructive-plan": "if that is meant, repeat it with --allow-destructive; declare a changed "
    "name with renamed_from",
    "plan-changed": "look at the new plan and decide again: `metasrv diff`",
    "invalid-schema-change": "correct the command; `metasrv table get {table}` shows the table",
    "already-exists": "choose another name; --if-not-exists accepts an equal object",
    "row-missing": "`metasrv row upsert` inserts it; the other rows of its region were not updated "
    "either",
    "schema-conflict": "--if-not-exists accepts an equal table only: alter it, or choose a name",
    "ambiguous-dropped-table": "name one with --table-id; `metasrv table list --dropped` has ids",
    "not-in-batch": "take each command that is named out of the file; `metasrv table alter` and "
    "`metasrv index` make such changes",
    "tenant-limit": "wait for what is being made, drop what is not needed, or raise the limit: "
    "`metasrv catalog alter {catalog} --limit {limit}=N`",
    "above-tenant-limit": "ask for less, or raise the limit: `metasrv catalog alter {catalog} "
    "--limit {limit}=N`",
    "not-empty": "drop what it holds first, or all of it with --cascade",
    "object-in-use": "drop the tables that use it, or leave it; what is called `default` stays",
    "too-many-objects": "drop some that are not needed; docs/limits.md has the limits",
    "being-dropped": "wait for the procedure, or choose another name",
    "not-found": "check the name",
    "table-not-found": "`metasrv table list` shows the tables; with --dropped, dropped ones too",
    "procedure-not-found": "`metasrv procedure list` shows the newest; they are kept for a week "
    "after their end",
    "object-locked": "repeat the command later; `metasrv procedure locks` shows who holds it",
    "table-poisoned": "`metasrv procedure poisons` says what is left; repair it, then clear it "
    "with `metasrv procedure clear RESOURCE --reason TEXT`",
    "action-not-allowed": "`metasrv procedure get {procedure_id}` shows the actions that are "
    "allowed",
    "past-point-of-no-return": "let it end, then undo its effect by another command; `metasrv "
    "procedure watch {procedure_id}` waits for its end",
    "version-mismatch": "look at the object again and decide again; if you gave a version, "
    "give the version that it has now",
    "epoch-mismatch": AGAIN,
    "stale-epoch": AGAIN,
    "schema-version-stale": AGAIN,
    "node-still-alive": "wait until its lease ends, or move its regions while it is alive: "
    "`metasrv node drain {node_id} --reason TEXT`; `metasrv failover run {node_id} --force` fences "
    "it first",
    "node-in-use": "`metasrv node drain {node_id} --reason TEXT` moves its regions; `metasrv table "
    "purge` deletes dropped tables; --lost is for a node whose disk is gone",
    "failover-guard": "check the network first; if the nodes are gone, name the regions: `metasrv "
    "failover run --region REGION --force`",
    "maintenance-mode": "end the maintenance: `metasrv cluster maintenance off`; or give --force",
    "check-violation": "correct the rows, or add it with --not-valid, which exempts the rows "
    "that are there; --validate checks them later",
    "unique-violation": "change or delete those rows, then repeat the command",
    "index-not-unique": "change or delete the repeated rows, then repeat the command",
    "idempotency-key-reused": "give another --idempotency-key, or none",
    "bad-idempotency-key": "give --idempotency-key 1 to 255 printable ASCII characters, or none",
    "deadline-exceeded": "nothing was changed; see what it waited for, then repeat the command",
    "job-failed": "nothing was changed; see driver.log of the leader, then repeat the command",
    "order-refused": "nothing was changed; see order_failed in the node's log, then repeat the "
    "command",
    "region-lost": "restore its storage, then retry what reported it: `metasrv procedure list "
    "--stalled`, `metasrv procedure retry ID`",
    "too-many-procedures": "nothing was stored; repeat the command in some seconds",
    "no-leader": "repeat the command: an election takes a few seconds",
    "not-leader": "repeat the command; `metasrv cluster get` shows the leader",
    "not-ready": AGAIN,
    "stale": "repeat the command; `metasrv cluster get` shows the newest version",
    "request-timeout": AGAIN,
    "outcome-unknown": "it may have been done: look at the object, or at `metasrv procedure "
    "list`, before you repeat the command",
    "unauthenticated": "set METASRV_TOKEN, or METASRV_TOKEN_FILE to a file with the token",
    "cluster-token-needed": "only programs of the cluster may do this; see `cluster_tokens_file`",
    "node-bound": "set the token with which the node registered; `metasrv node rebind {node_id} "
    "--principal NAME` binds it to another",
    "limit-exceeded": "store large values elsewhere and keep keys short; docs/limits.md has the "
    "limits",
    "bad-page-token": AGAIN,
    "malformed-request": "a program between here and the service changes requests; ask it directly",
    "headers-too-large": "the token is too long, or a program between here and the service adds "
    "headers",
    "unsupported-media-type": "a program between here and the service changes requests",
    "method-not-allowed": "the service is of another version than this command",
    "statement-too-old": "the clock of this machine may be wrong; read the rows, then repeat it",
    "statement-memory-full": "repeat the command later, with more rows in one batch",
    "internal": "report it, with the id of the request",
}
"""Advice by code. A name in braces is a fact of the error; one that is not there is in capitals."""
LISTS: Mapping[object, str] = {
    "catalog": "`metasrv catalog list` shows the catalogs",
    "schema": "`metasrv schema list {catalog}` shows the schemas",
    "index": "`metasrv table get {table}` shows its indexes",
    "constraint": "`metasrv table get {table}` shows its constraints",
    "row": "check the key; `metasrv scan {table}` shows the rows",
    "node": "`metasrv node list` shows the nodes",
    "region": "`metasrv region list` shows the regions",
    "setting": "`metasrv setting list` shows the settings",
    "poison": "`metasrv procedure poisons` shows what is poisoned",
    "holder": "`metasrv schema-lease list` shows the holders",
    "catalog of": "give a later time",
}
"""Advice by the kind of object that does not exist."""
EXISTING: Mapping[object, str] = {
    "The row": "`metasrv row upsert` replaces a row, and so does `metasrv import` without --insert",
    "column": "choose another name; `metasrv table get {table}` shows the columns",
    "constraint": "choose another name; `metasrv table get {table}` shows the constraints",
}
"""Advice by the kind of object that exists already."""
NOT_RESTORED = (
    "start the node with the URL of this service, and it registers by itself; only a cluster that "
    "`metasrv backup restore` made has nodes to adopt"
)


def advice_of(error: MetaError) -> str:
    """Returns advice, as a command where there is one."""
    facts = dict(error.facts)
    if facts.get("action") == "adopt":
        return NOT_RESTORED
    if facts.get("what") == "schema":
        facts.setdefault("catalog", str(facts.get("name", "")).rpartition(".")[0] or "main")
    return _template(error).format_map(_Facts(facts))


def is_playground(error: MetaError) -> bool:
    return error.facts.get("holder") == "a playground"


class _Facts(dict[str, object]):
    def __missing__(self, name: str) -> str:
        return "ID" if name == "procedure_id" else "NODE" if name == "node_id" else name.upper()


def _template(error: MetaError) -> str:
    kind, what = kind_of(error), error.facts.get("what")
    if error.facts.get("pointer") == FILE:
        return (
            "mend the file, or say how it is written (with --create, its types): "
            "`metasrv import --help`"
        )
    if is_playground(error):
        return "`metasrv playground status` shows it, `stop` ends it; or give another --data-dir"
    if kind.code == "not-ready" and "told" in error.facts:
        return "see to what its log says, then start it again"
    if kind.code == "not-ready" and error.facts.get("what") == "a frontend":
        return (
            "start one: `metasrv frontend`; `metasrv schema-lease list` shows those that there are"
        )
    if error.facts.get("state") == "cancelled":
        return "ask for it again if it is wanted still"
    if isinstance(error.facts.get("rows"), int) and kind.code == "invalid-request":
        return "mend the file, then load it again from its start"
    if _is_later_statement(error):
        return "correct the text, and send what is left of it"
    match kind.code:
        case "not-found" if what in LISTS:
            return LISTS[what]
        case "already-exists" if what in EXISTING:
            return EXISTING[what]
    return ADVICE.get(kind.code, kind.advice)


def _is_later_statement(error: MetaError) -> bool:
    """Whether it is of a statement of SQL behind others, of which some are done."""
    number = error.facts.get("statement")
    of_text = ("invalid-request", "invalid-sql")
    return isinstance(number, int) and number > 1 and kind_of(error).code in of_text
