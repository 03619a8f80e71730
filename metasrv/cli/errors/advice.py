"""Advice for the command line, where that of the API speaks of HTTP."""

from collections.abc import Mapping

BY_CODE: Mapping[str, str] = {
    "invalid-request": "correct it and repeat the command; nothing was changed",
    "already-exists": "choose another name; --if-not-exists accepts an equal object",
    "schema-conflict": "--if-not-exists accepts an equal table only: alter it, or choose a name",
    "ambiguous-dropped-table": "name one with --table-id; `metasrv table list --dropped` has ids",
    "not-empty": "drop what it holds first, or all of it with --cascade",
    "being-dropped": "wait for the procedure, or choose another name",
    "table-not-found": "`metasrv table list` shows the tables; with --dropped, dropped ones too",
    "object-locked": "repeat the command later; `metasrv procedure locks` shows who holds it",
    "table-poisoned": "`metasrv procedure poisons` says what is left; repair it, then clear it "
    "with `metasrv procedure clear`",
    "action-not-allowed": "`metasrv procedure get ID` shows the actions that are allowed",
    "maintenance-mode": "end the maintenance: `metasrv cluster maintenance off`",
    "check-violation": "correct the rows, or add it with --not-valid, which exempts the rows "
    "that are there; --validate checks them later",
    "deadline-exceeded": "nothing was changed; see what it waited for, then repeat the command",
    "job-failed": "nothing was changed; see driver.log of the leader, then repeat the command",
    "order-refused": "nothing was changed; see order_failed in the node's log, then repeat the "
    "command",
    "too-many-procedures": "nothing was stored; repeat the command in some seconds",
    "not-leader": "repeat the command; `metasrv cluster get` shows the leader",
    "outcome-unknown": "it may have been done: look at the object, or at `metasrv procedure "
    "list`, before you repeat the command",
    "unauthenticated": "set METASRV_TOKEN, or METASRV_TOKEN_FILE to a file with the token",
    "cluster-token-needed": "only programs of the cluster may do this; see `cluster_tokens_file`",
    "limit-exceeded": "store large values elsewhere and keep keys short; docs/limits.md has the "
    "limits",
    "bad-page-token": "repeat the command",
    "malformed-request": "a program between here and the service changes requests; ask it directly",
    "headers-too-large": "the token is too long, or a program between here and the service adds "
    "headers",
    "unsupported-media-type": "a program between here and the service changes requests",
    "method-not-allowed": "the service is of another version than this command",
    "statement-too-old": "the clock of this machine may be wrong; read the rows, then repeat it",
    "statement-memory-full": "repeat the command later, with more rows in one batch",
    "internal": "report it, with the id of the request",
}
