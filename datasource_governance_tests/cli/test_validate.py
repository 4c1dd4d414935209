"""`validate` and `policy`: a file and a policy, without any server."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datasource_governance.domain.quality_policy import parse_quality_policy
from datasource_governance.evaluation.evaluate import PanderaEvaluator
from datasource_governance.evaluation.payload import TypedPayload
from datasource_governance.sources.frames import from_data
from datasource_governance_tests.sources.databases import new_duckdb, new_postgres

BAIT = "zq-canary-7731"
RULES = [
    {"id": "rows", "type": "row_count", "minimum": 1},
    {"id": "unique", "type": "unique", "field": "id"},
    {"id": "note", "type": "not_null", "field": "note", "severity": "warning"},
]
READY = f"id,note\n1,{BAIT}\n2,b\n"
REVIEW = f"id,note\n1,{BAIT}\n2,\n"
BLOCKED = f"id,note\n1,{BAIT}\n1,b\n"


@pytest.fixture
def file(tmp_path):
    """A function that writes text, or JSON, into a file and returns its path."""

    def write(name, content):
        path = tmp_path / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return write


@pytest.fixture
def validate(command, file):
    """A function that validates a CSV text by the rules."""

    def run(text, *options, rules=RULES):
        policy = file("policy.json", {"version": "v1", "rules": rules})
        return command("validate", file("data.csv", text), "--policy", policy, *options)

    return run


@pytest.mark.parametrize(
    ("text", "code", "outcome"),
    [(READY, 0, "ready"), (REVIEW, 0, "review"), (BLOCKED, 1, "blocked")],
)
def test_the_exit_code_is_the_outcome(validate, text, code, outcome):
    answer = validate(text)

    assert (answer.code, answer.err) == (code, "")
    assert f"outcome: {outcome}" in answer.out
    assert BAIT not in answer.out


@pytest.mark.parametrize("text", [READY, REVIEW, BLOCKED])
def test_the_json_form_is_the_stored_form(validate, text):
    answer = validate(text, "--json")

    policy = parse_quality_policy({"version": "v1", "rules": RULES})
    cells = [line.split(",") for line in text.splitlines()[1:]]
    table = pa.table(
        {"id": [int(row[0]) for row in cells], "note": [row[1] or None for row in cells]}
    )
    expected = PanderaEvaluator().validate(policy, TypedPayload(from_data(table)), None)
    assert answer.document == expected.document()


def test_a_parquet_file_gives_the_verdict_of_the_same_csv(validate, command, file, tmp_path):
    from_csv = validate(READY, "--json").document
    pq.write_table(pa.table({"id": [1, 2], "note": [BAIT, "b"]}), tmp_path / "data.parquet")

    answer = command("validate", "data.parquet", "--policy", tmp_path / "policy.json", "--json")

    assert answer.document == from_csv


def test_every_csv_option_is_used(validate, file):
    schema = file("schema.json", [{"name": "id", "type": "string"}])
    text = 'id;price\n001;"1,5"\n002;2,5\n'.encode("utf-16")

    answer = validate(
        text,
        *(
            "--delimiter",
            ";",
            "--decimal",
            ",",
            "--encoding",
            "utf-16",
            "--schema",
            schema,
            "--json",
        ),
        rules=[{"id": "price", "type": "range", "field": "price", "minimum": 1.5, "maximum": 2.5}],
    )

    assert answer.document["outcome"] == "ready"
    assert answer.document["schema"] == [
        {"name": "id", "type": "string", "nullable": False},
        {"name": "price", "type": "number", "nullable": False},
    ]


def test_a_previous_schema_is_compared_with(validate, file):
    previous = file(
        "previous.json",
        [
            {"name": "id", "type": "integer", "nullable": False},
            {"name": "gone", "type": "string", "nullable": True},
        ],
    )

    answer = validate(READY, "--previous-schema", previous, "--json")

    assert answer.code == 1
    assert answer.document["schema_diff"]["classification"] == "breaking"
    assert {one["change"] for one in answer.document["schema_diff"]["changes"]} == {
        "field_removed",
        "field_added_required",
    }


def test_schema_changes_and_rules_are_shown_to_people(validate, file):
    previous = file("previous.json", [{"name": "gone", "type": "string", "nullable": True}])

    answer = validate(BLOCKED, "--previous-schema", previous)

    for word in ("unique", "duplicate", "field_removed", "breaking", "2 rows"):
        assert word in answer.out


def test_a_policy_with_problems_is_refused_with_all_of_them(validate):
    rules = [{"id": "a", "type": "nope"}, {"id": "b", "type": "row_count", "minimun": 1}]

    answer = validate(READY, rules=rules)

    assert (answer.code, answer.out) == (2, "")
    assert "/rules/0/type" in answer.err
    assert "/rules/1/minimun" in answer.err


def test_the_refusal_of_a_policy_is_a_document(validate):
    answer = validate(READY, "--json", rules=[{"id": "a", "type": "nope"}])

    assert answer.code == 2
    assert answer.document["format"] == "datasource_governance/refusal/v1"
    assert answer.document["kind"] == "invalid_document"
    (problem,) = answer.document["problems"]
    assert (problem["kind"], problem["pointer"]) == ("unknown_rule_type", "/rules/0/type")


def test_a_ragged_file_is_refused_naming_its_record_and_no_value(validate):
    answer = validate(f"id,note\n1,a\n2,{BAIT},{BAIT}\n", "--json")

    assert answer.code == 3
    assert answer.document["kind"] == "unreadable_source"
    assert answer.document["problems"][0]["kind"] == "ragged_row"
    assert BAIT not in answer.out + answer.err


def test_undecodable_bytes_are_refused_without_a_value(validate):
    answer = validate(f"id,note\n1,{BAIT}".encode() + b"\xff\n")

    assert (answer.code, answer.out) == (3, "")
    assert BAIT not in answer.err


@pytest.mark.parametrize(
    ("option", "content"),
    [
        ("--previous-schema", "not json"),
        ("--previous-schema", '[{"name": "id"}]'),
        ("--schema", '[{"name": "id", "type": "nope"}]'),
        ("--schema", "{}"),
    ],
)
def test_a_schema_that_does_not_say_what_it_must_is_refused(validate, file, option, content):
    answer = validate(READY, option, file("schema.json", content))

    assert answer.code == 2
    assert answer.out == ""
    assert "Traceback" not in answer.err


@pytest.mark.parametrize(
    "options",
    [("--delimiter", ""), ("--delimiter", ";;"), ("--decimal", "x"), ("--encoding", "klingon")],
)
def test_an_impossible_csv_option_is_refused(validate, options):
    answer = validate(READY, *options)

    assert (answer.code, answer.out) == (2, "")
    assert "Traceback" not in answer.err
    assert "unforeseen" not in answer.err


@pytest.mark.parametrize("missing", ["data", "policy"])
def test_a_missing_file_is_named(command, file, missing):
    file("data.csv", READY)
    file("policy.json", {"version": "v1", "rules": []})
    data, policy = ("nowhere" if missing == one else one for one in ("data", "policy"))

    answer = command("validate", f"{data}.csv", "--policy", f"{policy}.json")

    assert answer.code == (3 if missing == "data" else 2)
    assert "nowhere" in answer.err
    assert answer.err.count("\n") <= 2


def test_a_folder_is_no_file(command, file, tmp_path):
    policy = file("policy.json", {"version": "v1", "rules": []})

    assert command("validate", tmp_path, "--policy", policy).code == 3
    assert command("validate", policy, "--policy", tmp_path).code == 2


LARGE = "id,note\n" + "".join(f"{row},note {row}\n" for row in range(60_000)) + f"7,{BAIT}\n8,\n"
"""More than a MiB, with two keys that come twice and an empty cell."""


def test_memory_chooses_the_engine_and_nothing_else(validate):
    in_memory, in_batches = (
        validate(LARGE, "--memory", mebibytes, "--json").document for mebibytes in (64, 1)
    )

    assert in_memory.pop("evaluator")["engine"] == "pandas"
    assert in_batches.pop("evaluator")["engine"] == "pandas_batches"
    assert in_batches == in_memory
    assert [rule["rows"] for rule in in_batches["rules"]] == [
        None,
        [8, 9, 60_001, 60_002],
        [60_002],
    ]


@pytest.mark.parametrize(
    ("options", "engine"), [((), "pandas"), (("--memory", 1), "pandas_batches")]
)
def test_people_are_told_the_engine(validate, options, engine):
    answer = validate(LARGE, *options)

    assert (answer.code, answer.err) == (1, "")
    assert f"engine {engine}\n" in answer.out
    assert BAIT not in answer.out


def test_a_file_is_refused_alike_in_batches(validate):
    ragged = f"{LARGE}9,{BAIT},{BAIT}\n"

    in_memory, in_batches = (
        validate(ragged, "--memory", mebibytes, "--json") for mebibytes in (64, 1)
    )

    assert (in_batches.code, in_batches.document) == (3, in_memory.document)
    assert BAIT not in in_batches.out + in_batches.err


@pytest.mark.parametrize("mebibytes", ["0", "-1", "many"])
def test_memory_is_at_least_one_mebibyte(validate, mebibytes):
    answer = validate(READY, "--memory", mebibytes)

    assert (answer.code, answer.out) == (2, "")


@pytest.fixture(scope="module")
def postgres(cluster):
    for database in new_postgres(cluster):
        database.run(*ROWS)
        yield database


@pytest.fixture
def duckdb(tmp_path):
    database = new_duckdb(tmp_path)
    database.run(*ROWS)
    return database


@pytest.fixture(params=["postgres", "duckdb"])
def database(request):
    """A database with a table `t`."""
    return request.getfixturevalue(request.param)


ROWS = (
    "CREATE TABLE t (id bigint PRIMARY KEY, note text)",
    f"INSERT INTO t VALUES (3, NULL), (1, '{BAIT}'), (2, 'b')",
)
SELECT = "SELECT id, note FROM t"
SECRET = "opensesame"  # noqa: S105 - a bait


@pytest.fixture
def validate_sql(command, file):
    """A function that validates what a database holds by the rules."""

    def run(url, *options):
        policy = file("policy.json", {"version": "v1", "rules": RULES})
        return command("validate", url, "--policy", policy, *options)

    return run


@pytest.mark.parametrize(
    ("selection", "rows"),
    [
        (("--table", "t"), [3]),
        (("--table", "t", "--order-by", "note", "--order-by", "id"), [3]),
        (("--query", SELECT, "--order-by", "id"), [3]),
        (("--query", f"{SELECT} WHERE id > 1", "--order-by", "id"), [2]),
        (("--query", SELECT), None),
    ],
    ids=["table", "ordered table", "ordered query", "part", "query"],
)
def test_a_table_or_query_is_judged_and_numbered_only_in_an_order(
    validate_sql, database, selection, rows
):
    answer = validate_sql(database.url, *selection, "--json")

    assert (answer.code, answer.document["outcome"]) == (0, "review")
    assert [rule["affected"] for rule in answer.document["rules"]] == [None, 0, 1]
    assert answer.document["rules"][2]["rows"] == rows
    assert answer.document["evaluator"]["engine"] == "pandas_batches"
    assert BAIT not in answer.out


def test_a_table_has_the_verdict_of_the_same_file(validate, validate_sql, database):
    from_csv = validate(f"id,note\n1,{BAIT}\n2,b\n3,\n", "--json").document
    from_table = validate_sql(database.url, "--table", "t", "--json").document

    assert from_table.pop("evaluator") != from_csv.pop("evaluator")
    assert from_table == from_csv


def test_people_are_told_of_a_query_without_an_order(validate_sql, database):
    answer = validate_sql(database.url, "--query", SELECT)

    assert (answer.code, answer.err) == (0, "")
    assert "notice: rows are not numbered" in answer.out
    assert "outcome: review" in answer.out
    assert BAIT not in answer.out


@pytest.mark.parametrize(
    ("selection", "code", "kind"),
    [
        (("--table", "t", "--query", SELECT), 2, "invalid_argument"),
        (("--table", "nowhere"), 3, "not_found"),
        (("--query", "SELECT * FROM nowhere"), 3, "unreadable"),
        (("--query", "SELECT CAST(note AS integer) FROM t"), 3, "unreadable"),
        (("--table", "t", "--order-by", "nowhere"), 3, "unreadable"),
    ],
    ids=["both", "no table", "wrong query", "wrong cast", "no column"],
)
def test_what_a_database_cannot_answer_is_refused_without_password_and_value(
    validate_sql, database, selection, code, kind
):
    answers = [validate_sql(database.url, *selection, *options) for options in ((), ("--json",))]

    assert [answer.code for answer in answers] == [code, code]
    assert [problem["kind"] for problem in answers[1].document["problems"]] == [kind]
    for answer in answers:
        assert database.url not in answer.out + answer.err
        assert BAIT not in answer.out + answer.err


@pytest.mark.parametrize(
    ("url", "code"),
    [
        (f"nowhere://reader:{SECRET}@localhost/rows", 2),
        (f"sqlite:///{SECRET}", 2),
        (f"reader:{SECRET}", 2),
        (f"postgresql+psycopg://reader:{SECRET}@127.0.0.1:1/rows", 3),
        (f"duckdb:////nowhere/{SECRET}", 3),
    ],
)
@pytest.mark.parametrize("options", [(), ("--json",)], ids=["text", "JSON"])
def test_a_wrong_url_is_refused_without_being_shown(validate_sql, url, code, options):
    answer = validate_sql(url, "--table", "t", *options)

    assert answer.code == code
    assert SECRET not in answer.out + answer.err
    assert "unforeseen" not in answer.err


def test_the_url_of_a_database_alone_is_no_file_and_not_shown(validate_sql):
    answer = validate_sql(f"postgresql+psycopg://reader:{SECRET}@localhost/rows")

    assert answer.code == 3
    assert SECRET not in answer.out + answer.err


def test_lint_says_that_a_policy_is_valid(command, file):
    policy = file("policy.json", {"version": "v1", "rules": RULES})

    assert command("policy", "lint", policy).out == "quality policy v1 is valid\n"
    assert command("policy", "lint", policy, "--json").document["valid"] is True


@pytest.mark.parametrize(
    ("kind", "document"),
    [
        ("quality", {"version": "v1", "rules": []}),
        ("approval", {"version": "v1", "required": False}),
        ("retention", {}),
    ],
)
def test_every_kind_of_policy_has_a_hash_that_spelling_does_not_change(
    command, file, kind, document
):
    first = command("policy", "hash", file("a.json", document), "--kind", kind)
    spelled = json.dumps(dict(reversed(document.items())), indent=3)
    second = command("policy", "hash", file("b.json", spelled), "--kind", kind)

    assert (first.code, len(first.out)) == (0, 65)
    assert first.out == second.out


@pytest.mark.parametrize("verb", ["lint", "hash"])
def test_a_policy_of_another_kind_is_refused(command, file, verb):
    policy = file("policy.json", {"version": "v1", "rules": []})

    answer = command("policy", verb, policy, "--kind", "approval")

    assert (answer.code, answer.out) == (2, "")
    assert "required" in answer.err
