"""Each refusal of SQL text: where it is, and what would be right."""

import pytest

from metasrv_base.errors import Refused
from metasrv_base.sql.grammar.statements import statements
from metasrv_base.sql.tokens import STATEMENT_CHARS_MAX
from metasrv_base.wire.problem.problems import problem_of

REFUSALS: dict[str, tuple[int, str]] = {
    # statements
    "crate table t (a int)": (1, "ALTER, EXPLAIN, CREATE"),
    "selec * from t": (1, "SELECT, INSERT, UPDATE, DELETE"),
    "create tabel t (a int)": (8, "TABLE, INDEX, UNIQUE, SCHEMA"),
    "drop": (5, "TABLE, INDEX, SCHEMA"),
    "create unique key": (15, "INDEX"),
    "comment on column t.a is 'x'": (12, "TABLE, PLACEMENT, TABLESPACE"),
    "truncate t extra": (12, "the end of the statement"),
    "explain show tables": (9, "a change"),
    "explain begin": (9, "a change"),
    "select * from t": (1, "it reads and writes no rows"),
    "insert into t values (1)": (1, "it reads and writes no rows"),
    "grant all on t to x": (1, "ALTER, EXPLAIN"),
    "create view v as select 1": (8, "TABLE, INDEX"),
    "show create view v": (13, "TABLE"),
    "show grants": (6, "CATALOGS, SCHEMAS"),
    # tokens
    "drop table 'a": (12, "' before the end"),
    'drop table "a': (12, '" before the end'),
    "drop table a /* b": (14, "*/ before the end"),
    "drop table 1a": (13, "a word, a name"),
    "drop table é": (12, "a word, a name"),
    "drop table `a`": (12, "a word, a name"),
    "drop table $1": (12, "a word, a name"),
    'drop table ""': (12, "a word, a name"),
    "drop table 5": (12, "a table"),
    "drop table a.b.c.d": (17, "the end of the statement"),
    # CREATE TABLE
    "create table t": (15, "("),
    "create table t (": (17, "a column"),
    "create table t (a int)": (16, "PRIMARY KEY (..) in the brackets"),
    "create table t (a int primary key": (34, ", or )"),
    "create table t (a in primary key)": (19, "a type: BOOLEAN"),
    "create table t (a int8 primary key)": (19, "TINYINT (int8 of one byte) or BIGINT"),
    "create table t (a varchar(10) primary key)": (26, "no length"),
    "create table t (a decimal primary key)": (27, "(precision, scale)"),
    "create table t (a decimal(1,2,3) primary key)": (26, "(precision, scale)"),
    "create table t (a timestamp(4) primary key)": (29, "0, 3, 6 or 9 digits"),
    "create table t (a timestamp without time zone)": (29, "no zone of its own"),
    "create table t (a int primary key, primary key (a))": (36, "one primary key"),
    "create table t (a int primary key, b int primary key)": (53, "one primary key"),
    "create table t (a int null primary key)": (39, "that is NOT NULL"),
    "create table t (a int not null not null)": (32, ", or )"),
    "create table t (a int default)": (30, "a constant"),
    "create table t (a int default b)": (31, "a constant"),
    "create table t (a int default -)": (32, "a number"),
    "create table t (a int default now)": (31, "a constant"),
    "create table t (a bytea default x'0')": (33, "two hexadecimal digits"),
    "create table t (a int check (a > 1))": (23, "ADD CONSTRAINT"),
    "create table t (a int references u)": (23, "no foreign keys"),
    "create table t (a int unique)": (23, "CREATE UNIQUE INDEX"),
    "create table t (a int auto_increment)": (23, "no generated values"),
    "create table t (a int, check (a > 1))": (24, "ADD CONSTRAINT"),
    "create table t (a int, constraint c unique (a))": (24, "add constraints by ALTER TABLE"),
    "create table t (a int, foreign key (a) references u)": (24, "no foreign keys"),
    "create table t (like u)": (17, "tables are not copied"),
    "create table t (a int primary key) engine = x": (36, "PARTITION BY, COLOCATE BY"),
    "create table t (a int primary key) with (x)": (43, "="),
    "create table t (a int primary key) with (x = 1)": (46, "a value, in single quotes"),
    "create table t (a int primary key) with (x='1', x='2')": (49, "each option once"),
    "create table t (a int primary key) replicas 1 replicas 2": (47, "each clause once"),
    "create table t (a int primary key) replicas two": (45, "a number of copies"),
    "create table t (a int primary key) with (replicas = two)": (53, "a number of copies"),
    "create table t (a int primary key) replicas 1 with (replicas = 2)": (64, "each clause once"),
    "create table t (a int primary key) with (replicas = 2) replicas 1": (56, "each clause once"),
    "create table t (a int primary key) partition by list (a)": (49, "HASH or RANGE"),
    "create table t (a int primary key) partition by hash (a)": (57, "PARTITIONS"),
    "create table t (a int primary key) partition by range (a) values (1)": (59, "SPLIT"),
    "create table t (a int primary key) partition by range (a) split at values (null)": (
        76,
        "not NULL",
    ),
    # beyond what a body can say
    "create table t (a int primary key) partition by hash (a) partitions 0": (69, "greater than"),
    "create table t (a int primary key) partition by hash (a) partitions 1025": (69, "less than"),
    # ALTER TABLE
    "alter table t": (14, "ADD, DROP, RENAME"),
    "alter table t modify a int": (15, "ADD, DROP, RENAME"),
    "alter table t add column if not exists a int": (26, "no IF NOT EXISTS"),
    "alter table t add a int primary key": (36, "outside the primary key"),
    "alter table t add a int after": (30, "a column"),
    "alter table t add constraint c unique (a)": (39, "CREATE UNIQUE INDEX"),
    "alter table t add constraint c check (a > (1)": (46, ")"),
    "alter table t alter a set nothing": (23, "SET DEFAULT"),
    "alter table t rename a b": (24, "TO"),
    "alter table t rename": (21, "a column"),
    "alter table t add a int, rename to u": (33, "a statement of its own"),
    # indexes
    "create index on t (a)": (17, "ON"),
    "create index i on t using btree (a)": (21, "one kind of index"),
    "create index i on t (a desc)": (24, "an index ascends"),
    "create index i on t (a) where a > 1": (25, "an index has all rows"),
    "create index i on t (lower(a))": (27, ", or )"),
    "drop index i": (13, "ON and the table of the index"),
    "alter index i on t rename to j": (20, "VALIDATE"),
    # others
    "drop table a, b": (13, "one table"),
    "drop table a cascade": (14, "nothing depends on a table"),
    "drop schema a.b.c": (16, "the end of the statement"),
    "rename table a.b.c to d.e.f": (23, "a table of the same catalog"),
    "undrop table t with name x": (21, "ID"),
    "create placement p partitions x": (31, "regions"),
    "create placement p zones ('a')": (20, "REPLICAS, MIN IN SYNC, PARTITIONS"),
    "create placement p on nodes (disk = 'ssd')": (30, "ZONES or LABEL"),
    "create placement p on nodes (label disk like 'ssd')": (41, "= or IN"),
    "create placement p storage profiles (hot lsm)": (42, "ENGINE"),
    "create placement p preferred zones a": (36, "NONE or ("),
    "alter placement p set": (22, "REPLICAS, MIN IN SYNC, PARTITIONS"),
    "alter tablespace t set location 'x'": (24, "COMMENT"),
}


def refusal(text: str) -> Refused:
    with pytest.raises(Refused) as refused:
        list(statements(text, lambda table, column: None))
    return refused.value


@pytest.mark.parametrize("text", REFUSALS)
def test_given_a_text_that_is_wrong_then_the_refusal_says_where_and_what_is_right(
    text: str,
) -> None:
    column, expected = REFUSALS[text]
    error = refusal(text)
    assert error.code == "invalid-sql"
    assert (error.facts["line"], error.facts["column"]) == (1, column)
    assert expected in str(error.facts["expected"])


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("crate table t (a int primary key)", "CREATE"),
        ("create tabel t (a int primary key)", "TABLE"),
        ("create table t (a bigit primary key)", "BIGINT"),
        ("show tabels", "TABLES"),
        ("selec * from t", "SELECT"),
        ("inser into t values (1)", "INSERT"),
        ("create table t (a int primary key) partiton by hash (a) partitions 2", "PARTITION"),
        ("alter table t renam a to b", "RENAME"),
    ],
)
def test_given_a_word_with_a_slip_then_the_refusal_says_what_may_be_meant(
    text: str, meant: str
) -> None:
    assert refusal(text).facts["did_you_mean"] == meant


def test_given_a_fault_in_a_later_line_then_the_excerpt_shows_that_line() -> None:
    error = refusal("drop table a;\n\tdrop tabel b; -- c\n")
    assert (error.facts["line"], error.facts["column"]) == (2, 7)
    assert error.facts["excerpt"] == "\tdrop tabel b; -- c\n\t     ^"


def test_given_a_fault_in_a_long_line_then_the_excerpt_is_short() -> None:
    error = refusal(f"create table t ({'a' * 500} int primary key) engine = x")
    assert error.facts["column"] == 535
    line, mark = str(error.facts["excerpt"]).split("\n")
    assert len(line) == 68
    assert line.startswith("...aaa")
    assert line[mark.index("^") :] == "engine = x"


def test_given_a_fault_amid_a_long_line_then_the_excerpt_shows_where_it_is_cut() -> None:
    error = refusal(f"create table t ({'a' * 500} int primary key) engine = {'c' * 90}")
    line, mark = str(error.facts["excerpt"]).split("\n")
    assert len(line) == 68
    assert (line[:3], line[-3:]) == ("...", "...")
    assert line[mark.index("^") :].startswith("engine = cc")


def test_given_a_statement_too_long_then_it_is_refused_before_it_is_read() -> None:
    text = f"drop table {'a' * STATEMENT_CHARS_MAX}"
    assert f"at most {STATEMENT_CHARS_MAX}" in str(refusal(text).facts["expected"])


def test_given_a_refusal_then_its_problem_tells_the_place_in_words() -> None:
    status, _, body = problem_of(refusal("drop tabel t"), "/v1/sql", "r")
    assert status == 422
    assert body["did_you_mean"] == "TABLE"
    detail = str(body["detail"])
    assert detail.startswith("Line 1, column 6: found tabel, expected TABLE, INDEX")
