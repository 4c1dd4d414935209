"""A small world to act in: a real database, actors with real keys, a declared datasource."""

import hashlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datasource_governance.composition import Application, Settings
from datasource_governance.contract_files import read_contract
from datasource_governance.domain.actor import Role
from datasource_governance.domain.approval import Decision, Verdict, subject_of
from datasource_governance.domain.artifact import ArtifactReference
from datasource_governance.domain.attestation import Action, Attestation, KeyKind
from datasource_governance.domain.canonical import Sha256, canonical_bytes
from datasource_governance.domain.datasource import parse_datasource
from datasource_governance.domain.launch import RunLaunch
from datasource_governance.domain.materialization import Promotion
from datasource_governance.domain.stage import Stage
from datasource_governance.domain.subjects import (
    apply_subject,
    decision_subject,
    delivery_subject,
    grant_subject,
    key_subject,
    promotion_subject,
    publication_subject,
    revocation_subject,
    withdrawal_subject,
)
from datasource_governance.errors import GovernanceError, InvalidArgumentError
from datasource_governance.evaluation.payload import TypedPayload
from datasource_governance.services.approval import AttestedDecision, decide_stage
from datasource_governance.services.authority import (
    GrantRequest,
    KeyRegistration,
    found_tenant,
    grant_role,
    register_key,
    revoke_key,
    withdraw_grant,
)
from datasource_governance.services.creating import store_delivery_attestation
from datasource_governance.services.declaring import Applied, apply_datasource
from datasource_governance.services.promotion import PromotionRequest, promote_stage
from datasource_governance.services.publishing import PublicationRequest, Published
from datasource_governance.services.staging import StageRequest, create_stage
from datasource_governance.signing import Signer, create_key, read_public_key
from datasource_governance.sources.frames import from_data
from datasource_governance.web.gateway import GATEWAY, Gateway
from datasource_governance.web.launcher import RequestLauncher
from datasource_governance_tests.postgres import GovernanceDatabase, admin_connection

TWO_ROWS = pa.table({"id": [1, 2]})
ONE_ROW_AT_LEAST = {"version": "v1", "rules": [{"id": "r", "type": "row_count", "minimum": 1}]}
TWO_APPROVALS = {"version": "v2", "required": True, "required_approvals": 2}


def triggers_of(table: str) -> tuple[str, ...]:
    """Return the triggers of a table of the schema, nearly all of which protect it."""
    moved = ("current_moved",) if table in ("datasource", "current_partition") else ()
    purged = ("disposed_of",) if table.endswith("_payload") else ()
    return ("append_only", *moved, *purged, "no_truncate")


@dataclass
class World:
    """Acts through services with attestations, exactly as the command line does."""

    application: Application
    database: GovernanceDatabase
    datasource: str = "orders"

    def signer(self, actor: str) -> Signer:
        settings = self.application.settings
        return Signer(settings.keys, actor, settings.tenant)

    def admit(self, actor: str, *roles: Role) -> Signer:
        """Make an actor known, with a key of its own and roles on all datasources."""
        administrator = self.signer("admin")
        try:
            create_key(self.application.settings.keys, actor)
        except InvalidArgumentError:
            pass  # the key file is there; the actor may still be new to this database
        signer = self.signer(actor)
        subject = key_subject(signer.actor, KeyKind.ACTOR, signer.public_key, actor)
        register_key(
            self.application.work(),
            KeyRegistration(
                actor=signer.actor,
                display_name=actor,
                kind=KeyKind.ACTOR,
                public_key=signer.public_key,
                attestation=administrator.attest(Action.KEY_REGISTER, subject),
            ),
        )
        for role in roles:
            self.grant(signer.actor, role)
        return signer

    def gateway(self, directory: Path) -> Gateway:
        """Return the gateway of a webserver with its settings in a directory; it is registered."""
        made = Gateway(directory, self.application.settings.tenant)
        public_key = read_public_key(made.public_key_file)
        subject = key_subject(GATEWAY, KeyKind.GATEWAY, public_key, GATEWAY)
        register_key(
            self.application.work(),
            KeyRegistration(
                actor=GATEWAY,
                display_name=GATEWAY,
                kind=KeyKind.GATEWAY,
                public_key=public_key,
                attestation=self.signer("admin").attest(Action.KEY_REGISTER, subject),
            ),
        )
        return made

    def launch(self, gateway: Gateway, actor: str, launch: RunLaunch) -> RunLaunch:
        """Launch a run through a gateway, as an actor who signed in."""
        RequestLauncher(actor, gateway, self.application.work).attest(launch)
        return launch

    def grant(self, actor: str, role: Role, datasource: str | None = None) -> str:
        attestation = self.signer("admin").attest(
            Action.ACTOR_GRANT, grant_subject(actor, role, datasource)
        )
        request = GrantRequest(
            actor=actor, role=role, datasource=datasource, attestation=attestation
        )
        return grant_role(self.application.work(), request).id

    def withdraw(self, grant_id: str) -> None:
        attestation = self.signer("admin").attest(
            Action.ACTOR_WITHDRAW, withdrawal_subject(grant_id)
        )
        withdraw_grant(self.application.work(), grant_id, attestation)

    def revoke(self, key: Sha256) -> None:
        attestation = self.signer("admin").attest(Action.KEY_REVOKE, revocation_subject(key))
        revoke_key(self.application.work(), key, attestation)

    def declare(
        self,
        quality=ONE_ROW_AT_LEAST,
        approval=None,
        promote="manual",
        retention=None,
        kind="static",
        contracts=(),
        **settings,
    ) -> Applied:
        governance = {"quality_policy": quality, **settings}
        files = {f"{place}.odcs.yaml": canonical_bytes(one) for place, one in enumerate(contracts)}
        if files:
            governance["contracts"] = [*files]
        if approval is not None:
            governance["approval_policy"] = approval
        if retention is not None:
            governance["retention_policy"] = retention
        source = {} if kind == "published" else {"source": {"folder": "deliveries"}}
        document = {
            "id": self.datasource,
            "kind": kind,
            "promote": promote,
            "governance": governance,
            **source,
        }
        declaration = parse_datasource(
            canonical_bytes(document),
            lambda name: files.get(name) or Path(name).read_bytes(),
            read_contract,
        )
        version = self.application.platform.evaluator_version
        attestation = self.signer("admin").attest(
            Action.DATASOURCE_APPLY, apply_subject(declaration, version)
        )
        return apply_datasource(self.application.work(), declaration, attestation, version)

    def stage(
        self,
        creator: str | None = "creator",
        table: pa.Table | None = None,
        launch: RunLaunch | None = None,
    ) -> Stage:
        payload = TypedPayload(pa.table({"id": [1, 2]}) if table is None else table)
        sha256 = Sha256(hashlib.sha256(payload.encoded()).hexdigest())
        attestation_id = self.attest_delivery(creator, sha256) if creator else None
        request = StageRequest(
            datasource=self.datasource,
            delivery="delivery.csv",
            file_sha256=sha256,
            attestation_id=attestation_id,
            launch=launch,
        )
        work = self.application.work()
        return create_stage(work, self.application.evaluator(), payload, request).stage

    def attest_delivery(self, creator: str, sha256: Sha256) -> Sha256:
        attestation = self.signer(creator).attest(
            Action.STAGE_CREATE, delivery_subject(self.datasource, sha256)
        )
        work = self.application.work()
        return store_delivery_attestation(work, self.datasource, sha256, attestation)

    def publication_attestation(
        self, actor: str, key: str, table: pa.Table | None = None
    ) -> Attestation:
        """Sign for an inline output under a key, by default the default one."""
        payload = TypedPayload(from_data(TWO_ROWS if table is None else table))
        subject = publication_subject(
            datasource=self.datasource,
            partition="",
            producer="flow",
            idempotency_key=key,
            checksum=self.application.evaluator().fingerprint(payload),
        )
        return self.signer(actor).attest(Action.PUBLICATION_CREATE, subject)

    def store_artifact(self, table: pa.Table | None = None) -> ArtifactReference:
        """Store a Parquet file for the datasource, by default of the default output."""
        rows = TWO_ROWS if table is None else table
        outlet = self.application.outlet()
        return outlet.store(self.datasource, lambda file: pq.write_table(rows, file))

    def publish(self, data: object = None, key: str = "k1", **request) -> Published:
        """Publish an output for the datasource, by default two rows by `system`."""
        named = {"producer": "flow", "datasource": self.datasource, **request}
        data = TWO_ROWS if data is None else data
        return self.application.publish(data, PublicationRequest(idempotency_key=key, **named))

    def present(self, stage: Stage) -> Stage:
        with self.application.work() as work:
            return work.stages.get(stage.id)

    def decision_attestation(
        self, actor: str, stage: Stage, reason: str, verdict: Verdict = Verdict.APPROVE
    ) -> Attestation:
        action = Action.STAGE_APPROVE if verdict is Verdict.APPROVE else Action.STAGE_REJECT
        subject = subject_of(stage, self.application.settings.tenant)
        return self.signer(actor).attest(action, decision_subject(subject, reason))

    def decide(
        self,
        actor: str,
        stage: Stage,
        reason: str = "checked",
        verdict: Verdict = Verdict.APPROVE,
        attestation: Attestation | None = None,
    ) -> Decision:
        request = AttestedDecision(
            verdict=verdict,
            reason=reason,
            subject=subject_of(stage, self.application.settings.tenant),
            attestation=attestation or self.decision_attestation(actor, stage, reason, verdict),
        )
        return decide_stage(self.application.work(), request)

    def promote(
        self, stage: Stage, actor: str | None = "operator", launch: RunLaunch | None = None
    ) -> Promotion:
        attestation = None
        if actor is not None:
            subject = subject_of(stage, self.application.settings.tenant)
            attestation = self.signer(actor).attest(
                Action.STAGE_PROMOTE, promotion_subject(subject)
            )
        request = PromotionRequest(stage=stage.id, attestation=attestation, launch=launch)
        application = self.application
        return promote_stage(application.work(), application.artifacts(), request)

    def set_clock(self, at: datetime) -> None:
        """Replace the database's clock, as only a test in a test database may."""
        self.as_superuser(
            "CREATE OR REPLACE FUNCTION governance.now() RETURNS timestamptz LANGUAGE sql "
            f"VOLATILE AS $$ SELECT timestamptz '{at.isoformat()}' $$"
        )

    def release_clock(self) -> None:
        """Let the database's clock run again."""
        self.as_superuser(
            "CREATE OR REPLACE FUNCTION governance.now() RETURNS timestamptz LANGUAGE sql "
            "VOLATILE AS 'SELECT pg_catalog.clock_timestamp()'"
        )

    def as_superuser(self, statement: str, *, triggers: bool = True) -> None:
        """Run a statement behind the application's back."""
        with admin_connection(self.database.admin_url) as connection:
            if not triggers:
                connection.execute("SET session_replication_role = replica")
            connection.execute(statement)

    def tamper(self, table: str, statement: str) -> None:
        """Run a statement on a table behind the triggers that would refuse it."""
        with admin_connection(self.database.admin_url) as connection, connection.transaction():
            connection.execute(f"ALTER TABLE governance.{table} DISABLE TRIGGER ALL")
            connection.execute(statement)
            for trigger in triggers_of(table):
                connection.execute(
                    f"ALTER TABLE governance.{table} ENABLE ALWAYS TRIGGER {trigger}"
                )

    def query(self, statement: str) -> list[tuple]:
        """Return what a statement finds, whatever tenant it is of."""
        with admin_connection(self.database.admin_url) as connection:
            return connection.execute(statement).fetchall()

    @contextmanager
    def refuses(self, code: str) -> Iterator[None]:
        """Hold that a block is refused with this code and leaves no row anywhere."""
        before = self.count_rows()
        with pytest.raises(GovernanceError) as caught:
            yield
        assert caught.value.code == code, caught.value
        assert self.count_rows() == before

    def count_rows(self) -> dict[str, int]:
        """Return the number of rows of every governed table."""
        with admin_connection(self.database.admin_url) as connection:
            names = [
                name
                for (name,) in connection.execute(
                    "SELECT tablename FROM pg_tables WHERE schemaname = 'governance'"
                )
            ]
            return {name: _count(connection, name) for name in names}

    def verification(self):
        return self.application.verify_evidence()


def _count(connection: psycopg.Connection, table: str) -> int:
    query = f"SELECT count(*) FROM governance.{table}"
    return connection.execute(query).fetchone()[0]


def settings(database: GovernanceDatabase, directory: Path, tenant: str = "default") -> Settings:
    return Settings(
        database_url=database.application_url,
        tenant=tenant,
        state=directory,
        keys=directory / "keys",
        datasources=directory / "datasources",
        actor=None,
        dagster_url="http://127.0.0.1:1",
        administrative_url=None,
    )


def new_world(database: GovernanceDatabase, directory: Path, tenant: str = "default") -> World:
    """Return a world with an administrator, a creator, an operator and three approvers."""
    application = Application(settings(database, directory, tenant))
    create_key(application.settings.keys, "admin")
    signer = Signer(application.settings.keys, "admin", application.settings.tenant)
    found_tenant(application.work(), "admin", signer.public_key)
    world = World(application, database)
    world.admit("creator", Role.STEWARD)
    world.admit("operator", Role.OPERATOR)
    for number in (1, 2, 3):
        world.admit(f"approver-{number}", Role.APPROVER)
    return world


def copied_world(origin: World, database: GovernanceDatabase, directory: Path) -> World:
    """Return a world like another one, whose database was cloned, with its actors' keys."""
    copied = settings(database, directory)
    shutil.copytree(origin.application.settings.keys, copied.keys)
    return World(Application(copied), database)
