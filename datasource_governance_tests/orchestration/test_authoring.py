"""What is wrong with a governed asset is told when it is loaded: everything at once, and where."""

import dagster as dg
import pytest

from datasource_governance import governed_asset
from datasource_governance.domain.canonical import canonical_bytes
from datasource_governance.errors import InvalidPolicyError
from datasource_governance_tests.orchestration.publishing import published

TWO = dg.StaticPartitionsDefinition(["a", "b"])


def extract():
    return None


def refused(function=extract, **keywords):
    """Return the problems by which a governed asset is refused."""
    keywords.setdefault("datasource", published())
    with pytest.raises(InvalidPolicyError) as caught:
        governed_asset(**keywords)(function)
    return [problem.line() for problem in caught.value.problems]


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """An empty directory of declarations, as GOVERNANCE_DATASOURCES names it."""
    monkeypatch.setenv("GOVERNANCE_DATASOURCES", str(tmp_path))
    return tmp_path


def declare(repository, name, document):
    folder = repository / name
    folder.mkdir()
    (folder / "datasource.json").write_bytes(canonical_bytes(document))


def test_a_datasource_is_found_by_its_id(repository):
    declare(repository, "orders", {"id": "orders", "kind": "published"})

    made = governed_asset(datasource="orders")(extract)

    assert made.group_names_by_key[made.key] == "orders"


def test_a_datasource_is_found_in_a_folder_of_another_name(repository):
    declare(repository, "shop", {"id": "orders", "kind": "published"})

    assert governed_asset(datasource="orders")(extract)


def test_an_id_that_is_not_declared_is_told_with_those_that_are(repository):
    declare(repository, "users", {"id": "users", "kind": "published"})

    (problem,) = refused(datasource="orders")

    assert "'orders' is not declared" in problem
    assert problem.endswith("there are: users")


def test_a_bad_declaration_is_told_with_its_file_and_pointer(repository):
    declare(repository, "orders", {"id": "Orders", "kind": "publisht"})

    problems = refused(datasource="orders")

    assert [one.split(":")[:2] for one in problems] == [
        ["/id", " orders/datasource.json"],
        ["/kind", " orders/datasource.json"],
    ]


def test_a_datasource_of_another_kind_takes_no_publications():
    (problem,) = refused(datasource=published(kind="static"))

    assert "of kind static" in problem


def test_a_policy_needs_a_datasource_that_allows_it(tmp_path):
    policy = tmp_path / "policy.json"
    policy.write_bytes(canonical_bytes({"version": "v1", "rules": []}))

    (problem,) = refused(policy=policy)

    assert "governance.allow_supplied_policy" in problem


def test_a_bad_policy_file_is_told_with_its_name_and_pointers(tmp_path):
    policy = tmp_path / "policy.json"
    policy.write_bytes(canonical_bytes({"rules": [{"id": "r", "type": "uniq"}]}))

    problems = refused(datasource=published(allow_supplied_policy=True), policy=policy)

    assert [one.partition(f"{policy}: ")[0] for one in problems] == ["", "/rules/0/type: "]


def test_a_policy_file_is_looked_for_beside_the_code():
    (problem,) = refused(datasource=published(allow_supplied_policy=True), policy="no.json")

    assert problem == "no.json: No such file or directory"


async def waiting():
    return None


def yielding():
    yield None


@pytest.mark.parametrize(("function", "what"), [(waiting, "asynchronous"), (yielding, "yields")])
def test_a_function_returns_its_output(function, what):
    (problem,) = refused(function)

    assert what in problem


def test_a_run_publishes_one_partition():
    (problem,) = refused(partitions_def=TWO, backfill_policy=dg.BackfillPolicy.single_run())

    assert "multi_run(max_partitions_per_run=1)" in problem


def test_a_backfill_of_one_run_for_each_partition_is_fine():
    one_each = dg.BackfillPolicy.multi_run(max_partitions_per_run=1)

    with pytest.warns(dg.BetaWarning, match="backfill_policy"):
        made = governed_asset(datasource=published(), partitions_def=TWO, backfill_policy=one_each)(
            extract
        )

    assert made.backfill_policy == one_each


def test_metadata_of_this_package_are_not_an_authors():
    problems = refused(metadata={"datasource_governance/datasource": "users", "mine": 1})

    assert problems == [
        "the metadata key 'datasource_governance/datasource' is one of this package"
    ]


def test_metadata_that_dagster_does_not_show_is_told():
    assert refused(metadata={"mine": object(), 5: 1}) == [
        "a key of metadata is no text",
        "metadata 'mine' is of a type that Dagster does not show",
    ]


def test_everything_that_is_wrong_is_told_at_once():
    problems = refused(
        yielding,
        datasource=published(kind="static"),
        policy="no.json",
        idempotency_key="{user}",
        dagster_type=dg.Int,
        partitions_def=TWO,
        backfill_policy=dg.BackfillPolicy.single_run(),
    )

    assert len(problems) == 8
