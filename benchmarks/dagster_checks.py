"""What it costs to record the checks of a stage run in Dagster, on an embedded Postgres.

`python -m benchmarks.dagster_checks [RUNS]` stages one small delivery under policies of 10 to 500
rules, RUNS times each (default 3), and prints medians. Each policy is staged with none of its rules
declared, so that only the fixed checks are recorded, with one check per rule, and with one check
per rule type. What a check costs is the difference to the first.
"""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path

import dagster as dg
from rich.console import Console

from datasource_governance.composition import Application, read_settings
from datasource_governance.domain.attestation import Action
from datasource_governance.domain.canonical import canonical_bytes
from datasource_governance.domain.datasource import Datasource, parse_datasource
from datasource_governance.domain.launch import stage_job_name
from datasource_governance.domain.subjects import apply_subject
from datasource_governance.orchestration import rule_checks
from datasource_governance.orchestration.jobs import stage_run_config
from datasource_governance.orchestration.registry import governed_definitions
from datasource_governance.persistence.embedded import EmbeddedPostgres
from datasource_governance.persistence.preparation import prepare
from datasource_governance.services.authority import found_tenant
from datasource_governance.services.declaring import apply_datasource
from datasource_governance.signing import Signer, create_key

DATASOURCE = "measured"
FOLDER = "deliveries"
DELIVERY = "delivery.csv"
ADMINISTRATOR = "admin"
RULES = (10, 50, 200, 500)
# The most declared rules that each have a check, by what is measured.
REPORTING = {"per rule": max(RULES), "per type": 0}
FIXED_CHECKS = 2
_LINE = "{:>5}  {:<13}  {:>6}  {:>6}  {:>7}  {:>12}"


@dataclass(frozen=True, slots=True)
class Measured:
    """One stage run: wall seconds, asset checks recorded, events stored."""

    seconds: float
    checks: int
    events: int


def declaration(rules: int | None) -> Datasource:
    """Return a datasource with this many rules of four types; None declares no policy."""
    kinds = (
        {"type": "not_null", "field": "note", "severity": "warning"},
        {"type": "unique", "field": "id"},
        {"type": "range", "field": "id", "minimum": 0},
        {"type": "not_null", "field": "id"},
    )
    policy = {
        "version": f"v{rules}",
        "rules": [{**kinds[n % len(kinds)], "id": f"rule-{n}"} for n in range(rules or 0)],
    }
    document = {
        "id": DATASOURCE,
        "kind": "static",
        "source": {"folder": FOLDER},
        "governance": {} if rules is None else {"quality_policy": policy},
    }
    return parse_datasource(canonical_bytes(document), lambda name: Path(name).read_bytes())


@contextmanager
def installation() -> Iterator[tuple[Application, dg.DagsterInstance]]:
    """Yield an application and a Dagster instance, both on one Postgres, as `dev` sets them up."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        state = Path(name)
        state.chmod(0o711)  # a server that root starts runs as somebody else
        with EmbeddedPostgres.start(state / "postgres") as server:
            connections = prepare(server.url, state / "connections.env")
            os.environ.update(connections.environment())
            settings = replace(
                read_settings({}),
                database_url=connections.governance_url,
                state=state,
                keys=state / "keys",
            )
            application = Application(settings)
            packaged = resources.files("datasource_governance.cli") / "dagster.yaml"
            (state / "dagster.yaml").write_bytes(packaged.read_bytes())
            with dg.DagsterInstance.from_config(name) as instance:
                yield application, instance
            application.close()


def prepare_datasource(application: Application) -> Signer:
    """Found the tenant and write the delivery; return the administrator's signer."""
    settings = application.settings
    create_key(settings.keys, ADMINISTRATOR)
    signer = Signer(settings.keys, ADMINISTRATOR, settings.tenant)
    found_tenant(application.work(), ADMINISTRATOR, signer.public_key)
    folder = settings.state / FOLDER
    folder.mkdir()
    rows = "".join(f"{number},n{number}\n" for number in range(1_000))
    (folder / DELIVERY).write_text(f"id,note\n{rows}")
    return signer


def put_in_force(application: Application, signer: Signer, declared: Datasource) -> None:
    """Apply a declaration, so that its policy is the one that stages are validated by."""
    attestation = signer.attest(Action.DATASOURCE_APPLY, apply_subject(declared))
    apply_datasource(application.work(), declared, attestation)


def stage_run(
    application: Application, instance: dg.DagsterInstance, declared: Datasource
) -> Measured:
    """Run the stage job once; the definitions are made before the clock starts."""
    job = governed_definitions([declared], application).resolve_job_def(stage_job_name(DATASOURCE))
    quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
    config = {**stage_run_config(DATASOURCE, DELIVERY, ""), **quiet}
    started = time.perf_counter()
    run = job.execute_in_process(run_config=config, instance=instance)
    seconds = time.perf_counter() - started
    return Measured(
        seconds=seconds,
        checks=len(run.get_asset_check_evaluations()),
        events=len(instance.all_logs(run.run_id)),
    )


def measure(
    application: Application, instance: dg.DagsterInstance, rules: int, runs: int
) -> dict[str, Measured]:
    """Return the medians of interleaved runs under the policy in force, by way of reporting."""
    found: dict[str, list[Measured]] = {}
    for _ in range(runs):
        bare = stage_run(application, instance, declaration(None))
        found.setdefault("none declared", []).append(bare)
        for name, most in REPORTING.items():
            rule_checks.RULES_WITH_A_CHECK_EACH = most
            made = stage_run(application, instance, declaration(rules))
            found.setdefault(name, []).append(made)
    return {
        name: replace(made[0], seconds=statistics.median(one.seconds for one in made))
        for name, made in found.items()
    }


def main(runs: int) -> None:
    """Measure, and print each line of the table when it is known."""
    console = Console(highlight=False)
    console.print(_LINE.format("rules", "reporting", "checks", "events", "run s", "ms per check"))
    with installation() as (application, instance):
        signer = prepare_datasource(application)
        put_in_force(application, signer, declaration(1))
        stage_run(application, instance, declaration(1))  # the first run imports and connects
        for rules in RULES:
            put_in_force(application, signer, declaration(rules))
            found = measure(application, instance, rules, runs)
            bare = found["none declared"].seconds
            for name, one in found.items():
                own = one.checks - FIXED_CHECKS
                cost = f"{1_000 * (one.seconds - bare) / own:.0f}" if own else ""
                line = (rules, name, one.checks, one.events, f"{one.seconds:.2f}", cost)
                console.print(_LINE.format(*line))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
