"""The shape of the package: where things are, how long they get, and which test is whose."""

import ast
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "datasource_governance"

# Modules without a test file of their own name, by the one that holds them to their promise.
HELD_BY = {
    "artifacts/test_backends.py": [
        *("ports/artifacts.py", "artifacts/checking.py", "artifacts/directories.py"),
        *("artifacts/files.py", "artifacts/locators.py", "artifacts/shielding.py"),
        "artifacts/upload.py",
    ],
    "domain/test_validation.py": ["domain/rule_outcome.py"],
    "evaluation/test_artifacts.py": ["evaluation/artifact_tasks.py"],
    "quality/test_conformance.py": [
        *("quality/conformance_data.py", "quality/conformance_rules.py"),
        "quality/providers/pandera.py",
    ],
    "cli/test_quality.py": ["cli/quality_tables.py"],
    "cli/test_contract.py": ["cli/contract_report.py", "monitoring/ingestion.py"],
    "domain/test_contract_document.py": [
        *("domain/contract.py", "domain/contract_fields.py", "domain/contract_levels.py"),
    ],
    "domain/test_contract_quality.py": ["domain/contract_export.py"],
    "lineage/test_events.py": ["domain/lineage_dataset.py", "lineage/facets.py"],
    "monitoring/test_monitor.py": [
        *("domain/contract_check.py", "monitoring/checks.py", "monitoring/live.py"),
        *("ports/contracts.py", "services/contracts.py", "services/watching.py"),
        "persistence/contract_rows.py",
    ],
    "orchestration/test_contract_checks.py": ["orchestration/contract_monitor.py"],
    "quality/test_dbt_results.py": ["quality/dbt_artifacts.py"],
    "sources/test_forked.py": ["sources/fork_server.py"],
    "test_import_budget.py": ["definitions.py"],
    "test_docs.py": [
        *("cli/render.py", "cli/session.py"),
        *("declarations.py", "signing.py"),
    ],
    "test_cases_approval.py": ["ports/lifecycle.py"],
    "cli/test_authority.py": ["cli/actor.py", "cli/key.py", "cli/signatures.py"],
    "cli/test_retention.py": [
        *("cli/disposition.py", "cli/hold.py", "cli/plan_documents.py", "cli/plan_tables.py"),
        "services/plan_review.py",
    ],
    "orchestration/test_retention.py": ["orchestration/plan_metadata.py"],
    "persistence/test_append_only.py": [
        *("persistence/columns.py", "persistence/contract_tables.py", "persistence/tables.py"),
    ],
    "persistence/test_connection.py": ["persistence/driver_errors.py"],
    "persistence/test_tamper.py": [
        "ports/evidence.py",
        *("persistence/authority.py", "persistence/chains.py", "persistence/repositories.py"),
    ],
    "test_cases_policies.py": ["domain/policy_keys.py", "domain/policy_values.py"],
    "test_cases_validate.py": ["domain/schema.py", "evaluation/checks.py"],
    "test_public_api.py": ["errors.py"],
    "cli/test_publish.py": ["cli/artifact.py", "cli/publication.py"],
    "cli/test_supervisor.py": ["cli/__main__.py", "cli/readiness.py", "cli/dev.py"],
    "domain/test_datasource.py": ["domain/csv_options.py"],
    "domain/test_quality_policy.py": ["domain/rules.py"],
    "cli/test_database.py": ["persistence/preparation.py"],
    "end_to_end/test_demo.py": [
        *(
            "cli/demo.py",
            "cli/story.py",
            "cli/published_once.py",
            "cli/retained.py",
            "cli/contracted.py",
            "demo/assets.py",
        ),
        *("orchestration/launching.py", "orchestration/runs.py"),
    ],
    "evaluation/test_against_reference.py": ["evaluation/mixtures.py", "evaluation/number_line.py"],
    "evaluation/test_fingerprint.py": ["evaluation/physical.py"],
    "evaluation/test_no_values_leak.py": ["evaluation/boundary.py"],
    "orchestration/test_assets.py": ["orchestration/refusals.py"],
    "orchestration/test_publication.py": ["orchestration/publication_metadata.py"],
    "orchestration/test_reconciliation.py": ["orchestration/projections.py"],
    "orchestration/test_waiting.py": ["orchestration/pictures.py"],
    "persistence/test_embedded.py": [
        *("persistence/cluster.py", "persistence/installation.py"),
        *("persistence/loopback.py", "persistence/processes.py"),
    ],
    "persistence/test_provisioning.py": [
        *("persistence/administration.py", "persistence/connections.py"),
    ],
    "persistence/test_retention.py": [
        *("persistence/candidates.py", "persistence/disposing.py"),
    ],
    "persistence/test_upgrade.py": [
        *("persistence/migrations/env.py", "persistence/migrations/protection.py"),
        "persistence/migrations/versions/0001_initial.py",
        "persistence/migrations/versions/0002_launches_and_delivery.py",
        "persistence/migrations/versions/0003_publications.py",
        "persistence/migrations/versions/0005_origins.py",
        "persistence/migrations/versions/0004_retention.py",
        "persistence/migrations/versions/0006_purging.py",
        "persistence/migrations/versions/0007_contracts.py",
    ],
    "services/test_exporting.py": [
        *("domain/statement.py", "domain/statement_schema.py", "services/sealing.py"),
    ],
    "web/test_command.py": ["cli/webserver.py"],
    "web/test_decisions.py": ["web/decision_facts.py"],
    "web/test_sign_in.py": ["web/forms.py"],
    "services/test_authority.py": ["ports/authority.py"],
    "services/test_delivering.py": ["ports/outbox.py", "persistence/deliveries.py"],
    "services/test_holds.py": ["ports/holds.py"],
    "services/test_promotion.py": ["services/recording.py", "services/superseding.py"],
    "services/test_retention.py": [
        *("ports/retention.py", "services/purging.py", "services/separating.py"),
    ],
    "services/test_publishing.py": [
        *("domain/artifact_validation.py", "persistence/publications.py"),
        *("persistence/governance.py", "persistence/outbox.py"),
        *("services/judging.py", "services/outputs.py", "services/producing.py"),
        *("ports/publications.py", "publishing.py"),
    ],
    "sources/csv/test_read.py": [
        *("sources/csv/forms.py", "sources/csv/numbers.py"),
        *("sources/csv/records.py", "sources/csv/types.py"),
    ],
    "sources/csv/test_batches.py": [
        *("sources/csv/file.py", "sources/csv/survey.py", "sources/csv/threads.py"),
    ],
    "sources/test_files.py": ["sources/opening.py", "sources/stored.py"],
    "sources/test_frames.py": ["sources/objects.py"],
    "sources/origins/test_read.py": [
        *("origins.py", "ports/origins.py", "sources/origins/answer.py"),
    ],
    "services/test_staging.py": ["services/creating.py"],
    "sources/parquet/test_batches.py": ["sources/file_batches.py", "sources/parquet/plan.py"],
    "sources/parquet/test_pages.py": ["sources/parquet/dictionaries.py"],
    "sources/parquet/test_read.py": ["sources/limits.py"],
    "sources/sql/test_read.py": [
        *("sources/sql/duckdb.py", "sources/sql/postgres.py", "sources/sql/postgres_columns.py"),
        "sources/sql/selection.py",
    ],
    "sources/test_scan.py": ["sources/batches.py"],
}
# A folder of one or two modules hides them; these have a reason.
SMALL_FOLDERS = {
    "lineage": "one standard, apart from all that knows nothing of it; its schema is beside",
    "demo": "what only the demo has, so that nothing else imports it; its declarations are beside",
    "persistence/migrations": "Alembic's layout",
}


def modules() -> list[Path]:
    """Return every module that says something; an `__init__` may be empty."""
    return [path for path in sorted(PACKAGE.rglob("*.py")) if path.stat().st_size]


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def lines_of(path: Path) -> int:
    return len(path.read_text().splitlines())


def functions() -> Iterator[tuple[str, int]]:
    """Yield the name and the number of lines of every function and method."""
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield f"{name_of(path)}:{node.name}", node.end_lineno - node.lineno + 1


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_a_module_has_at_most_400_lines(path):
    assert lines_of(path) <= 400


def test_half_of_the_modules_have_at_most_150_lines():
    assert statistics.median(map(lines_of, modules())) <= 150


def test_nine_of_ten_functions_have_at_most_35_lines():
    *_, ninth = statistics.quantiles([length for _, length in functions()], n=10)

    assert ninth <= 35


def test_a_folder_has_three_modules_or_a_reason():
    small = {
        folder.relative_to(PACKAGE).as_posix()
        for folder in {path.parent for path in PACKAGE.rglob("*.py")}
        if len([path for path in folder.glob("*.py") if path.name != "__init__.py"]) < 3
    }

    assert small == set(SMALL_FOLDERS)


def test_every_module_has_a_test_of_its_name_or_one_that_is_named_here():
    held = {module for held in HELD_BY.values() for module in held}

    orphans = [
        name_of(path)
        for path in modules()
        if path.name != "__init__.py"
        and name_of(path) not in held
        and not (TESTS / path.relative_to(PACKAGE)).with_name(f"test_{path.name}").is_file()
    ]

    assert orphans == []


def test_what_is_named_here_exists():
    missing_tests = [name for name in HELD_BY if not (TESTS / name).is_file()]
    missing_modules = [
        module for held in HELD_BY.values() for module in held if not (PACKAGE / module).is_file()
    ]

    assert missing_tests == []
    assert missing_modules == []
