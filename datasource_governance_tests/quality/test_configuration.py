"""What a provider says at compile time: without data, network, database or framework."""

import json
import subprocess
import sys
import textwrap

import pytest

from datasource_governance.domain.datasource_manifest import FORMAT
from datasource_governance.quality.plugin import DataQualityPlugin, PluginConfiguration
from datasource_governance_tests.builders import policy_document, rule


class Counting(DataQualityPlugin):
    """Evaluates nothing but counts."""

    name = "counting"
    kinds = frozenset({"row_count"})

    def run(self, *_arguments):
        raise AssertionError("checks run at compile time")


def provider(**options):
    return Counting(PluginConfiguration(options=options))


def written(folder, document, name="config.json"):
    path = folder / name
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def declaration(policy, **keys):
    governance = {"quality_policy": policy}
    return {"id": "orders", "kind": "static", "governance": governance, **keys}


def ours(**fields):
    described = {id_: {"fields": list(names), "tests": []} for id_, names in fields.items()}
    return {"format": FORMAT, "datasources": described}


def dbt(columns):
    node = {"resource_type": "model", "columns": {name: {} for name in columns}}
    schema = "https://schemas.getdbt.com/dbt/manifest/v12.json"
    return {"metadata": {"dbt_schema_version": schema}, "nodes": {"model.shop.orders": node}}


def found(path, manifest=None, **options):
    """Return (kind, pointer, names) of every problem."""
    result = provider(**options).validate_config(path, manifest or {})
    assert result.success is (not result.problems)
    return [(one.kind, one.pointer, one.names) for one in result.problems]


FIELDS = rule("required_fields", id="f", fields=["id", "amount"])


def test_a_policy_and_a_declaration_in_order_have_no_problem(tmp_path):
    policy = policy_document(rule(), FIELDS)

    assert found(written(tmp_path, policy)) == []
    assert found(written(tmp_path, declaration(policy))) == []
    assert found(written(tmp_path, {"id": "orders", "kind": "static"})) == []
    written(tmp_path, policy, name="policy.json")
    assert found(written(tmp_path, declaration("policy.json"))) == []


def test_a_rule_that_the_provider_does_not_evaluate_is_a_problem_and_a_schema_rule_is_native(
    tmp_path,
):
    policy = policy_document(rule(), FIELDS, rule("unique", id="u", field="id"))

    assert found(written(tmp_path, policy)) == [("unsupported_rule", "/rules/2", ("u",))]
    assert found(written(tmp_path, declaration(policy))) == [
        ("unsupported_rule", "/governance/quality_policy/rules/2", ("u",))
    ]


@pytest.mark.parametrize("manifest", [ours(orders=["id"]), dbt(["id"])])
def test_a_field_that_the_manifest_does_not_have_is_a_problem(tmp_path, manifest):
    policy = policy_document(FIELDS)

    assert found(written(tmp_path, policy), manifest) == [
        ("unknown_field", "/rules/0", ("f", "amount"))
    ]
    assert found(written(tmp_path, declaration(policy)), manifest) == [
        ("unknown_field", "/governance/quality_policy/rules/0", ("f", "amount"))
    ]


def test_a_declaration_is_held_to_its_own_datasource_and_a_policy_to_any(tmp_path):
    policy = policy_document(FIELDS)
    manifest = ours(orders=["id"], customers=["amount"])

    assert len(found(written(tmp_path, declaration(policy)), manifest)) == 1
    assert found(written(tmp_path, policy), manifest) == []


@pytest.mark.parametrize("manifest", [{}, ours(customers=["x"]), ours(orders=[]), dbt([])])
def test_where_the_manifest_does_not_know_the_fields_none_is_looked_up(tmp_path, manifest):
    path = written(tmp_path, declaration(policy_document(FIELDS)))

    assert found(path, manifest) == []


@pytest.mark.parametrize(
    ("document", "kinds"),
    [
        ("{", ["invalid_json"]),
        ("[]", ["invalid_value"]),
        ({}, ["missing_key", "missing_key"]),
        ({"kind": "static"}, ["missing_key"]),
        ({"version": "v1", "rules": [{"type": "none"}]}, ["unknown_rule_type", "missing_key"]),
        ('{"version": "v1", "rules": [], "rules": []}', ["duplicate_key"]),
        (declaration("missing.json"), ["invalid_value"]),
    ],
    ids=range(7),
)
def test_a_file_that_is_no_configuration_is_a_problem_and_nothing_is_raised(
    tmp_path, document, kinds
):
    assert [kind for kind, *_ in found(written(tmp_path, document))] == kinds


def test_a_file_and_a_manifest_that_cannot_be_read_are_problems(tmp_path):
    assert found(tmp_path / "none.json") == [("unreadable", "", ("none.json",))]
    path = written(tmp_path, policy_document(rule()))
    assert found(path, {"format": "v0"}) == [("unknown_manifest", "", ())]


def test_options_that_a_provider_does_not_have_are_problems(tmp_path):
    path = written(tmp_path, policy_document(rule()))

    assert found(path, depth=1, level="x") == [
        ("unknown_option", "", ("depth",)),
        ("unknown_option", "", ("level",)),
    ]


def test_gates_and_the_score_are_the_same_for_every_provider():
    manifest = {
        "format": FORMAT,
        "datasources": {"orders": {"tier": "bronze", "fields": ["id"], "tests": []}},
    }

    result = provider().validate_quality_gates(manifest, {"bronze": "1%"})

    assert [one.kind for one in result.problems] == ["coverage_too_low"]
    assert provider().validate_quality_gates(manifest, {"bronze": 0}).success
    assert not provider().validate_quality_gates({}, {"bronze": 80}).success
    with pytest.raises(ValueError, match="no check was evaluated"):
        provider().calculate_quality_score([], {})


COMPILED = """
    import json, socket, sys
    from pathlib import Path

    from datasource_governance.quality.registry import load_provider, provider_names

    config, manifest = Path(sys.argv[1]), json.loads(sys.argv[2])
    known = {name: load_provider(name) for name in provider_names()}
    frameworks = {"great_expectations", "soda_core", "dbt", "pandas", "pandera", "sqlalchemy"}
    opened = []

    def watch(event, arguments):
        if event.startswith(("socket.", "subprocess.", "os.exec", "os.fork", "os.posix_spawn")):
            raise SystemExit(f"refused {event}")
        if event == "open" and not str(arguments[0]).endswith((".py", ".pyc", "entry_points.txt")):
            opened.append(str(arguments[0]))

    sys.addaudithook(watch)
    if "--control" in sys.argv:
        socket.socket().connect(("127.0.0.1", 9))
    for plugin in known.values():
        result = plugin().validate_config(config, manifest)
        gates = plugin().validate_quality_gates(manifest, {"gold": 1.0})
        assert not result.problems, result.problems
        assert len(gates.problems) == 4, gates.problems
    assert set(opened) <= {str(config)}, opened
    assert not frameworks & set(sys.modules)
    print(sorted(known))
"""


def test_compile_time_needs_no_network_data_database_or_framework(tmp_path):
    path = written(tmp_path, declaration(policy_document(rule(), FIELDS)))
    manifest = ours(orders=["id", "amount"])
    manifest["datasources"]["orders"]["tier"] = "gold"

    def run(*arguments):
        command = [sys.executable, "-c", textwrap.dedent(COMPILED), path, json.dumps(manifest)]
        return subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)

    finished = run()
    assert finished.returncode == 0, finished.stderr
    assert "pandera" in finished.stdout
    assert "refused socket" in run("--control").stderr
