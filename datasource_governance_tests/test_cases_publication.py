"""Every publication case, by the public function and by a governed asset, over a real database."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Barrier

import dagster as dg
import pyarrow as pa
import pytest

import datasource_governance
from datasource_governance import GovernedOutput, governed_asset, read_current
from datasource_governance.composition import Application, read_settings
from datasource_governance.domain.actor import SYSTEM, Role
from datasource_governance.domain.producer_evidence import (
    ProducerEvidence,
    ResultStatus,
    RuleResult,
)
from datasource_governance.domain.quality_policy import parse_quality_policy
from datasource_governance.errors import GovernanceError, InvalidArgumentError
from datasource_governance.services.authority import found_tenant
from datasource_governance.signing import create_key
from datasource_governance_tests import case_files
from datasource_governance_tests.orchestration.governed import code_of
from datasource_governance_tests.orchestration.publishing import (
    materialized,
    observed,
    published,
    run,
)
from datasource_governance_tests.postgres import unique_name
from datasource_governance_tests.world import World, settings

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

# What the cases call the refusals that have a name of their own here.
LABELS = {"evidence_failed": "validation_failed", "artifact_tampered": "artifact_mismatch"}


def pytest_generate_tests(metafunc):
    case_files.parametrise(metafunc, publication_case="publication")


def content(label, failing=(), classification=None):
    """Return rows that only this label stands for; they break these rules and no others."""
    first = int.from_bytes(label.encode())
    table = pa.table(
        {
            "id": [first, first if "u" in failing else first + 1],
            "n": [1, -1 if "w" in failing else 1],
            "note": ["a", "b"],
        }
    )
    # A field that no rule names is gone, so nothing but the schema is worse than before.
    return table.drop_columns("note") if classification == "breaking" else table


def in_product(name):
    """Return a name of a case as the product takes it.

    A tenant cannot have a `|`. Joined by the `_` that it can have, the keys are as equal.
    """
    return name.replace("|", "_")


@dataclass(frozen=True)
class Output:
    """What a producer publishes for a tenant's datasource, under the policy that is declared."""

    world: World
    quality: dict
    producer: str
    key: str
    data: object
    evidence: ProducerEvidence | None


def by_function(output):
    """Publish with the function that every program has; return whether it was replayed."""
    made = datasource_governance.publish(
        output.data,
        producer=output.producer,
        idempotency_key=output.key,
        datasource=output.world.datasource,
        evidence=output.evidence,
    )
    return made.replayed


def by_asset(output):
    """Publish with a governed asset, in a run of Dagster; return whether it was replayed."""
    declared = published(output.world.datasource, output.quality)

    @governed_asset(datasource=declared, producer=output.producer, idempotency_key=output.key)
    def extract():
        return GovernedOutput(output.data, evidence=output.evidence)

    with dg.DagsterInstance.ephemeral() as instance:
        result = run(output.world, extract, instance, declared)
        if not result.success:
            assert result.get_asset_materialization_events() == []
            raise GovernanceError("as the run's failure says", code=code_of(result))
        if not result.get_asset_materialization_events():
            shown = observed(result)
            assert shown["state"] == "review_required"
        else:
            shown = materialized(result, extract)
            assert shown["state"].startswith("published")
    return shown["replayed"]


class Play:
    """Plays the steps of one case, whose tenants nobody else has."""

    def __init__(self, case, publish, database, directory, setenv):
        self.setenv = setenv
        self.policies = case.input["policies"]
        self.publish = publish
        self.quality = self.policies[case.input["initial_policy"]]
        self.tenants = {}
        self.contents = {}
        self.references = {}
        self.ids = {}
        prefix = unique_name("case")
        requests = [one for step in case.input["steps"] for one in step.get("requests", [step])]
        for label in dict.fromkeys(one["tenant"] for one in requests if "tenant" in one):
            name = f"{prefix}_{in_product(label)}"
            self.tenants[label] = new_tenant(database, directory / name, name)
        self.declare()
        for label in self.tenants:
            self.begin(label, case.input["initial_current"])
        self.before = self.counts()

    def declare(self):
        for world in self.tenants.values():
            world.declare(self.quality, kind="published")

    def begin(self, tenant, payload):
        """Let something be current before the first step."""
        self.contents[payload] = content(payload)
        world = self.tenants[tenant]
        world.publish(self.contents[payload], "initial", producer="initial")

    def counts(self):
        """Return how many publications and materializations all tenants have."""
        names = [world.application.settings.tenant for world in self.tenants.values()]
        world = next(iter(self.tenants.values()))
        tenants = ", ".join(f"'{name}'" for name in names)
        return [
            world.query(f"SELECT count(*) FROM governance.{table} WHERE tenant IN ({tenants})")[0][
                0
            ]
            for table in ("publication", "materialization")
        ]

    def made(self):
        """Return how many publications and materializations the steps have made."""
        return [now - before for now, before in zip(self.counts(), self.before, strict=True)]

    def play(self, step):
        return getattr(self, "do_" + step["do"])(step)

    def do_set_policy(self, step):
        self.quality = self.policies[step["policy"]]
        self.declare()
        return {"result": "ok"}

    def do_publish(self, step):
        return self.answer(self.output(step))

    def do_publish_concurrently(self, step):
        outputs = [self.output(request) for request in step["requests"]]
        barrier = Barrier(len(outputs))

        def at_once(output):
            barrier.wait()
            return self.answer(output)

        with ThreadPoolExecutor(len(outputs)) as pool:
            found = list(pool.map(at_once, outputs))
        assert len({one["publication"] for one in found if "publication" in one}) == 1
        return {"tally": Counter(one.get("kind", one["result"]) for one in found)}

    def answer(self, output):
        """Publish an output; return what came of it, in the words of the cases."""
        try:
            replayed = self.publish(output)
        except GovernanceError as refusal:
            return {"result": "refused", "kind": LABELS.get(refusal.code, refusal.code)}
        with output.world.application.work() as work:
            publication = work.publications.find(output.producer, output.key)
        return {
            "result": "replayed" if replayed else "created",
            "publication": publication.id,
            "terminal": str(publication.state),
        }

    def output(self, step):
        """Return what a step publishes, in the environment of its tenant."""
        world = self.tenants[step["tenant"]]
        self.setenv("GOVERNANCE_TENANT", world.application.settings.tenant)
        self.setenv("GOVERNANCE_STATE", str(world.application.settings.state))
        named = (step["payload"], step.get("failing_rules", ()), step.get("schema_classification"))
        data = self.contents[step["payload"]] = content(*named)
        evidence = None
        if "artifact" in step:
            data, evidence = self.artifact(world, data, step["artifact"])
        return Output(
            world=world,
            quality=self.quality,
            producer=in_product(step["producer"]),
            key=in_product(step["idempotency_key"]),
            data=data,
            evidence=evidence,
        )

    def artifact(self, world, table, said):
        """Return the reference of an artifact, and what its producer says of it."""
        evidence, reference = None, self.reference(world, table)
        if found := said.get("evidence"):
            results = [
                RuleResult(id=name, status=ResultStatus.PASSED if passed else ResultStatus.FAILED)
                for name, passed in found["results"].items()
            ]
            evidence = ProducerEvidence(
                artifact_sha256=self.reference(world, content(found["checksum"])).sha256,
                policy_hash=parse_quality_policy(self.policies[found["policy"]]).hash,
                evaluator="the producer's",
                results=tuple(results),
            )
        if "backend_checksum" in said:
            other = world.store_artifact(content(said["backend_checksum"]))
            objects = (
                world.application.settings.state / "artifacts" / world.application.settings.tenant
            )
            (objects / reference.locator).unlink()
            (objects / other.locator).rename(objects / reference.locator)
        return reference, evidence

    def reference(self, world, table):
        """Return the reference of an artifact of these rows, which is stored once."""
        rows = str(table.to_pydict())
        if rows not in self.references:
            self.references[rows] = world.store_artifact(table)
        return self.references[rows]

    def compare(self, expected, actual):
        assert actual["result"] == expected["result"], actual
        if "kind" in expected:
            assert actual["kind"] in expected["kind"]
        if "publication" in expected:
            assert (
                self.ids.setdefault(expected["publication"], actual["publication"])
                == (actual["publication"])
            )
            assert actual["terminal"] == expected["terminal"]


def new_tenant(database, directory, name):
    """Return a world of a tenant in which only `system` publishes and reads."""
    application = Application(settings(database, directory, name))
    create_key(application.settings.keys, "admin")
    world = World(application, database)
    found_tenant(application.work(), "admin", world.signer("admin").public_key)
    for role in (Role.PRODUCER, Role.STEWARD):
        world.grant(SYSTEM, role)
    return world


@pytest.fixture
def play(shared_world, tmp_path, monkeypatch):
    """Return a function that prepares a case; its tenants' connections are given back."""
    monkeypatch.setenv("GOVERNANCE_DATABASE_URL", shared_world.database.application_url)
    prepared = []

    def prepare(case, publish):
        made = Play(case, publish, shared_world.database, tmp_path, monkeypatch.setenv)
        prepared.append(made)
        return made

    yield prepare
    for one in prepared:
        for world in one.tenants.values():
            world.application.close()


@pytest.mark.parametrize("publish", [by_function, by_asset])
def test_publication_case(publication_case, publish, play):
    playing = play(publication_case, publish)

    found = [playing.play(step) for step in publication_case.input["steps"]]

    expected = publication_case.expected
    for wanted, actual in zip(expected["steps"], found, strict=True):
        if "tally" in wanted:
            assert actual["tally"] == wanted["tally"]
        else:
            playing.compare(wanted, actual)
    assert len(set(playing.ids.values())) == len(playing.ids)
    assert playing.made() == [expected["publications"], expected["materializations"]]
    if "current" in expected:
        rows = read_current(next(iter(playing.tenants.values())).datasource, as_="arrow")
        assert rows.to_pylist() == playing.contents[expected["current"]].to_pylist()


def test_a_tenant_has_no_sign_by_which_the_cases_join_keys():
    with pytest.raises(InvalidArgumentError):
        read_settings({"GOVERNANCE_TENANT": "a|b"})
