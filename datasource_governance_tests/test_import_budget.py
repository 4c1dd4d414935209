"""Loading is cheap and quiet: nothing heavy is imported, and nothing is connected."""

import json
import os
import subprocess
import sys

import pytest

from datasource_governance_tests.manifests import manifest_document

ENGINES = {"matplotlib", "pandas", "pandera", "polars", "pyarrow"}
PROVIDERS = {
    "dbt",
    "great_expectations",
    "openlineage",
    "soda_core",
    "soda_duckdb",
    "soda_postgres",
}
# Whatever tries to reach another process or machine while the module loads ends the script.
SCRIPT = """
import importlib, sys

def refuse(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto"):
        raise SystemExit(f"loading did {event}")

sys.addaudithook(refuse)
importlib.import_module(sys.argv[1])
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


def loaded_by(module: str) -> set[str]:
    """Return the top-level names of everything that importing a module loads."""
    foreign = ("GOVERNANCE_", "DAGSTER_", "DATABASE_")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(foreign)}
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT, module],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return set(ended.stdout.split())


@pytest.mark.parametrize("module", ["datasource_governance", "datasource_governance.errors"])
def test_the_package_loads_nothing_but_itself(module):
    heavy = ENGINES | PROVIDERS | {"alembic", "dagster", "psycopg", "rich", "sqlalchemy", "typer"}

    assert loaded_by(module) & heavy == set()


@pytest.mark.parametrize(
    "module",
    [
        "datasource_governance.definitions",
        "datasource_governance.components",
        "datasource_governance.cli",
        "datasource_governance.orchestration.coordinator",
    ],
)
def test_the_ways_in_load_no_engine_and_connect_to_nothing(module):
    assert loaded_by(module) & (ENGINES | PROVIDERS) == set()


def test_the_command_line_loads_no_dagster():
    assert "dagster" not in loaded_by("datasource_governance.cli")


CHOOSE = """
import importlib, os, sys
from datasource_governance import definitions
from datasource_governance.composition import Application, read_settings

for manifest in sys.argv[1:]:
    os.environ["GOVERNANCE_PLATFORM"] = manifest
    importlib.reload(definitions)
    platform = Application(read_settings()).platform
    print(platform.plugin.name, platform.appraisal.provider.name)
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


def test_the_code_location_loads_no_framework_whichever_provider_is_chosen(tmp_path):
    providers = ["pandera", "great_expectations", "soda", "dbt"]
    for name in providers:
        config = {"quality_gates": {"enforcement": "warn"}}
        document = manifest_document(config, provider=name)
        (tmp_path / name).write_text(json.dumps(document))

    ended = subprocess.run(
        [sys.executable, "-c", CHOOSE, *providers],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == 0, ended.stderr
    *chosen, loaded = ended.stdout.splitlines()
    assert chosen == [f"{name} {name}" for name in providers]
    assert set(loaded.split()) & (ENGINES | PROVIDERS) == set()


VALIDATE = """
import sys
from datasource_governance.cli import main

sys.argv[1:] = ["validate", "data.csv", "--policy", "policy.json", "--json"]
try:
    main()
finally:
    print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


@pytest.mark.parametrize(
    ("rule_type", "also"), [("not_null", set()), ("unique", {"polars"})], ids=["plain", "unique"]
)
def test_validating_a_small_file_loads_what_its_source_and_rules_need(tmp_path, rule_type, also):
    rules = [{"id": "r", "type": rule_type, "field": "id"}]
    (tmp_path / "policy.json").write_text(json.dumps({"version": "v1", "rules": rules}))
    (tmp_path / "data.csv").write_text("id\n1\n2\n")

    ended = subprocess.run(
        [sys.executable, "-c", VALIDATE], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert ended.returncode == 0, ended.stderr
    loaded = set(ended.stdout.splitlines()[-1].split())
    engines = {"dagster", "duckdb", "fsspec", "matplotlib", "polars", "psycopg", "sqlalchemy"}
    assert loaded & engines == also
    assert {"pandas", "pandera", "pyarrow"} <= loaded
