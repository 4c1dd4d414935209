"""A second verifier of exported evidence, which shares no line with the package.

Written from the published formats: DSSE v1.0, in-toto Statement v1, the JSON Schema of promotion
evidence and `docs/explanation/evidence.md`. It needs JSON, SHA-256 and Ed25519, believes two public
keys, the exporter's and the founding administrator's, and refuses everything that does not follow.
"""

import json
from dataclasses import dataclass, field

from datasource_governance_tests.public_formats import (
    RefusedError,
    check_signature,
    committed,
    decoded,
    framed,
    key_id,
    microseconds,
    opened,
    require,
)

PREDICATE = {
    *("tenant", "materialization", "stage", "approval", "grants", "policies"),
    *("attestations", "keys", "authority", "evidence"),
}
POLICY_DOMAINS = {
    "quality": "datasource_governance/quality_policy/v1",
    "approval": "datasource_governance/approval_policy/v1",
}
ROLES = {
    "stage.create": "steward",
    "stage.refresh": "steward",
    "stage.approve": "approver",
    "stage.reject": "approver",
    "stage.promote": "operator",
}
LAUNCHED = {"stage": ("stage", "refresh_stage"), "current": ("promote",)}
"""How the names of jobs begin by the last part of the asset that they are about."""


@dataclass
class Entry:
    """One link, whose hash was computed again."""

    tenant: str
    fields: dict
    body: dict = field(init=False)

    def __post_init__(self) -> None:
        given = self.fields
        body = given["body"].encode()
        self.body = json.loads(body)
        computed = framed(
            "datasource_governance/evidence/v1",
            self.tenant.encode(),
            given["chain"].encode(),
            given["sequence"].to_bytes(8, "big"),
            given["previous_hash"].encode(),
            given["kind"].encode(),
            given["subject"].encode(),
            given["at_microseconds"].to_bytes(8, "big", signed=True),
            body,
        )
        require(computed == given["entry_hash"], "an entry's hash is not its content's")
        said = self.body["kind"], self.body["subject"]
        require(said == (given["kind"], given["subject"]), "an entry contradicts itself")
        require(len(given) == 8, "fields of an entry")

    @property
    def kind(self) -> str:
        return self.fields["kind"]

    @property
    def facts(self) -> dict:
        return self.body["facts"]

    @property
    def at(self) -> int:
        return self.fields["at_microseconds"]

    def commits_to(self, table: str, columns: dict, *key: str) -> None:
        """Require that the entry commits to a row, new with it, that has these columns."""
        (row,) = [
            row
            for row in self.body["rows"]
            if (row["table"], row["key"]) == (table, [self.tenant, *key])
        ] or [{"immutable": None}]
        whole = {"tenant": self.tenant, **columns}
        require(row["immutable"] == committed(table, whole), f"{table} is not as committed to")

    def attestations(self) -> list[str]:
        return [row["key"][-1] for row in self.body["rows"] if row["table"] == "attestation"]


class Verifier:
    """What one statement proves."""

    def __init__(self, statement: dict, founder: bytes) -> None:
        require(set(statement) == {"_type", "subject", "predicateType", "predicate"}, "statement")
        require(statement["_type"] == "https://in-toto.io/Statement/v1", "type")
        require(
            statement["predicateType"] == "urn:datasource-governance:promotion-evidence:v1",
            "type of the predicate",
        )
        self.statement, self.founder = statement, founder
        self.predicate = predicate = statement["predicate"]
        require(set(predicate) == PREDICATE, "predicate")
        self.tenant = predicate["tenant"]
        self.stage, self.made = predicate["stage"], predicate["materialization"]
        self.evidence = [Entry(self.tenant, one) for one in predicate["evidence"]]
        self.authority = [Entry(self.tenant, one) for one in predicate["authority"]]
        self.promotion = self.evidence[-1]
        self.attestations: dict[str, dict] = {}
        self.keys: dict[str, dict] = {}

    def verify(self) -> None:
        self.check_links()
        self.read_keys()
        self.read_attestations()
        self.check_kept()
        self.check_authority()
        self.check_stage()
        self.check_materialization()
        self.check_policies()
        self.check_approval()

    def check_links(self) -> None:
        chain = f"datasource/{self.stage['datasource']}"
        require(self.evidence[0].kind == "stage.created", "the first entry creates the stage")
        require(self.promotion.kind == "stage.promoted", "the last entry promotes it")
        for entry in (self.evidence[0], self.promotion):
            require(entry.fields["subject"] == self.stage["id"], "subject of the entries")
        for before, after in zip(self.evidence, self.evidence[1:], strict=False):
            require(after.fields["previous_hash"] == before.fields["entry_hash"], "link")
            require(after.fields["sequence"] == before.fields["sequence"] + 1, "sequence")
        require({one.fields["chain"] for one in self.evidence} == {chain}, "chain")
        require({one.fields["chain"] for one in self.authority} == {"tenant"}, "tenant's chain")

    def read_keys(self) -> None:
        for key in self.predicate["keys"]:
            require(set(key) == {"id", "actor", "kind", "public_key"}, "fields of a key")
            require(key_id(decoded(key["public_key"])) == key["id"], "id of a key")
            self.keys[key["id"]] = key

    def read_attestations(self) -> None:
        for one in self.predicate["attestations"]:
            require(set(one) == {"id", "claims", "signature"}, "fields of an attestation")
            signed = one["claims"].encode()
            claims = json.loads(signed)
            key = self.keys[claims["key"]]
            require(
                framed("datasource_governance/attestation/v1", signed) == one["id"], "attestation"
            )
            check_signature(decoded(key["public_key"]), decoded(one["signature"]), signed)
            require(claims["tenant"] == self.tenant, "tenant of an attestation")
            require(key["kind"] == "gateway" or key["actor"] == claims["actor"], "whose key")
            self.attestations[one["id"]] = claims

    def check_kept(self) -> None:
        """Require the attestation of every entry that rests on one."""
        about = [one for one in self.evidence if one.fields["subject"] == self.stage["id"]]
        for entry in (*self.authority, *about):
            require(set(entry.attestations()) <= set(self.attestations), "an attestation is gone")

    def check_authority(self) -> None:
        """Require that every key was registered, and every signer granted the role, by somebody."""
        founding = self.authority[0]
        genesis = framed("datasource_governance/genesis/v1", self.tenant.encode(), b"tenant")
        require(founding.kind == "tenant.founded", "the tenant's founding")
        place = founding.fields["sequence"], founding.fields["previous_hash"]
        require(place == (1, genesis), "the tenant's first entry")
        require(founding.facts["key"] == key_id(self.founder), "key of the founder")
        for key in self.keys.values():
            registered = self.facts_of_key(key["id"])
            kind = registered.get("kind", "actor")
            require((key["actor"], key["kind"]) == (registered["actor"], kind), "owner of a key")
        for claims in self.attestations.values():
            if claims["action"] != "run.launch":  # needs what the run did, which is held there
                self.require_role(claims["actor"], ROLES.get(claims["action"], "administrator"))

    def facts_of_key(self, key: str) -> dict:
        for entry in self.authority:
            if entry.facts.get("key") != key:
                continue
            if entry.kind == "tenant.founded":
                return entry.facts
            if entry.kind == "key.registered":
                self.require_signed(entry, "key.register", {"registered_key": key})
                return entry.facts
        raise RefusedError("a key was never registered")

    def require_role(self, actor: str, role: str) -> None:
        for entry in self.authority:
            if (entry.facts.get("actor"), entry.facts.get("role")) != (actor, role):
                continue
            if entry.kind == "tenant.founded":
                return
            if entry.kind == "actor.granted":
                self.require_grant(entry)
                return
        raise RefusedError(f"nobody gave {actor} the role {role}")

    def require_grant(self, entry: Entry) -> None:
        said = {name: entry.facts[name] for name in ("actor", "role", "datasource")}
        self.require_signed(entry, "actor.grant", said)

    def require_signed(self, entry: Entry, action: str, subject: dict) -> None:
        """Require that an entry rests on what its author signed."""
        claims = [self.attestations[one] for one in entry.attestations()]
        require(
            any(
                claim["action"] == action
                and claim["actor"] == entry.facts["author"]
                and claim["subject"].items() >= subject.items()
                for claim in claims
            ),
            f"nobody signed {entry.kind}",
        )

    def check_stage(self) -> None:
        columns = {name: value for name, value in self.stage.items() if name != "fingerprint"}
        self.evidence[0].commits_to("stage", columns, self.stage["id"])
        hashed = framed("datasource_governance/validation/v1", columns["validation"].encode())
        require(hashed == columns["validation_hash"], "hash of the validation")
        fingerprint = {
            **{
                name: columns[name]
                for name in (
                    *("datasource", "schema", "payload_sha256", "row_count", "byte_count"),
                    *("base", "creator", "quality_policy_hash", "policy_source"),
                    "evaluator_version",
                )
            },
            "tenant": self.tenant,
            "stage": columns["id"],
            "payload": columns["payload_fingerprint"],
            **self.published(columns),
        }
        spelled = json.dumps(
            fingerprint, sort_keys=True, separators=(",", ":"), ensure_ascii=False
        ).encode()
        require(
            framed("datasource_governance/stage/v1", spelled) == self.stage["fingerprint"],
            "fingerprint of the stage",
        )
        if columns["attestation_id"] is not None:
            claims = self.attestations[columns["attestation_id"]]
            require(claims["actor"] == columns["creator"], "who brought the delivery")
            if claims["action"] == "run.launch":
                self.require_launch(claims, "stage", "steward")
            else:
                file = {"file_sha256": columns["delivery_sha256"]}
                meant = ("stage.create", file)
                if "origin" in columns:
                    meant = ("stage.refresh", {"origin": columns["origin"]})
                subject = {"datasource": columns["datasource"], **meant[1]}
                require((claims["action"], claims["subject"]) == (meant[0], subject), "delivery")

    def published(self, columns: dict) -> dict:
        """Return what the fingerprint covers of a stage that a producer's output waits in."""
        if "publication" not in columns:
            return {}
        artifact = columns.get("artifact")
        domain = "datasource_governance/artifact_reference/v1"
        return {
            "publication": columns["publication"],
            "partition": columns.get("partition", ""),
            "artifact_hash": framed(domain, artifact.encode()) if artifact else None,
        }

    def require_launch(self, claims: dict, asset: str, role: str) -> None:
        """Require that the webserver signed for a launch of exactly this, by who may do it."""
        launched, datasource = claims["subject"], self.stage["datasource"]
        require(self.keys[claims["key"]]["kind"] == "gateway", "a launch is a gateway's to sign")
        require(set(launched) == {"run_id", "job", "assets", "config_hash"}, "fields of a launch")
        meant = (
            f"{datasource}/{asset}" in launched["assets"]
            if launched["assets"]
            else launched["job"] in [f"{name}_{datasource}" for name in LAUNCHED[asset]]
        )
        require(meant, "what was launched")
        self.require_role(claims["actor"], role)

    def subject(self) -> dict:
        """Return what decisions and promotions of the stage are bound to."""
        names = ("datasource", "quality_policy_hash", "approval_policy_hash", "base")
        bound = {name: self.stage[name] for name in names}
        return {**bound, "stage": self.stage["id"], "stage_fingerprint": self.stage["fingerprint"]}

    def check_materialization(self) -> None:
        made, facts = self.made, self.promotion.facts
        self.promotion.commits_to("materialization", made, made["id"])
        if "artifact" not in made:
            payload = {"materialization": made["id"], "payload": made["payload_sha256"]}
            self.promotion.commits_to("materialization_payload", payload, made["id"])
        for name in ("partition", "artifact"):
            require(made.get(name) == self.stage.get(name), f"{name} is the stage's")
        for name in ("payload_fingerprint", "payload_sha256", "row_count", "schema", "byte_count"):
            require(made[name] == self.stage[name], f"{name} is the stage's")
        meant = (made["id"], self.stage["id"], self.stage["fingerprint"])
        said = facts["materialization"], facts["stage"], facts["stage_fingerprint"]
        require(said == meant, "the promotion")
        require(made["created_by"] == facts["actor"], "who promoted")
        if facts["actor"] != "system":
            self.check_promoter(facts)
        (subject,) = self.statement["subject"]
        require(set(subject) == {"name", "digest"}, "fields of the subject")
        require(subject["name"] == f"{made['datasource']}/{made['id']}", "name of the subject")
        digests = {
            "sha256": made["payload_sha256"],
            "datasourceGovernancePayloadV1": made["payload_fingerprint"],
        }
        require(subject["digest"] == digests, "digests of the subject")

    def check_promoter(self, facts: dict) -> None:
        provenance = json.loads(self.made["provenance"])
        require(provenance["promotion_attestation"] == facts["attestation"], "who promoted")
        claims = self.attestations[facts["attestation"]]
        require(claims["actor"] == facts["actor"], "promoter")
        if claims["action"] == "run.launch":
            self.require_launch(claims, "current", "operator")
            return
        require(self.promotion.attestations() == [facts["attestation"]], "kept with the promotion")
        signed = claims["action"], claims["subject"]
        require(signed == ("stage.promote", self.subject()), "promotion")

    def check_policies(self) -> None:
        bound = {
            kind: self.stage[f"{kind}_policy_hash"]
            for kind in ("quality", "approval")
            if self.stage[f"{kind}_policy_hash"] is not None
        }
        for policy in self.predicate["policies"]:
            require(set(policy) == {"kind", "hash", "text"}, "fields of a policy")
            hashed = framed(POLICY_DOMAINS[policy["kind"]], policy["text"].encode())
            require(hashed == policy["hash"] == bound.pop(policy["kind"]), "policy")
            self.require_applied(policy)
        require(not bound, "every policy is there")

    def require_applied(self, policy: dict) -> None:
        """Require that somebody, whose role was looked at, signed to bring a policy into force."""
        applied = [
            claims["subject"][f"{policy['kind']}_policy"]
            for claims in self.attestations.values()
            if claims["action"] == "datasource.apply"
            and claims["subject"]["datasource"] == self.stage["datasource"]
        ]
        require(policy["hash"] in applied, "nobody applied a policy")

    def check_approval(self) -> None:
        approval = self.predicate["approval"]
        said = "not required" if approval is None else approval
        require(said == self.promotion.facts["approval"], "the quorum that held")
        grants = {one["grant"]: one for one in self.predicate["grants"]}
        require(len(grants) == len(self.predicate["grants"]), "a grant is there once")
        if approval is None:
            require(not self.stage["approval_required"] and not grants, "no approval was required")
            return
        policy = {one["kind"]: json.loads(one["text"]) for one in self.predicate["policies"]}
        require(approval["required"] == policy["approval"]["required_approvals"], "required")
        actors = {one["actor"] for one in approval["approvals"]}
        require(len(actors) == len(approval["approvals"]) >= approval["required"], "a quorum")
        if policy["approval"]["separation_of_duties"]:
            require(self.stage["creator"] not in actors, "duties are separated")
        require(set(grants) == {one["authority"] for one in approval["approvals"]}, "grants")
        for one in approval["approvals"]:
            self.check_decision(one, grants[one["authority"]])

    def check_decision(self, decision: dict, grant: dict) -> None:
        (entry,) = [
            one for one in self.evidence if one.facts.get("decision") == decision["decision"]
        ]
        require(entry.kind == "stage.decided" and entry.facts["verdict"] == "approve", "verdict")
        for name in ("actor", "authority", "reason_hash", "expires_at"):
            require(entry.facts[name] == decision[name], f"{name} of a decision")
        require(microseconds(decision["decided_at"]) == entry.at, "instant of a decision")
        if decision["expires_at"] is not None:
            require(self.promotion.at < microseconds(decision["expires_at"]), "not expired")
        claims = self.attestations[decision["attestation"]]
        subject = {**self.subject(), "reason_hash": decision["reason_hash"]}
        signed = claims["actor"], claims["action"], claims["subject"]
        require(signed == (decision["actor"], "stage.approve", subject), "what was signed")
        require(decision["attestation"] in entry.attestations(), "kept with the decision")
        self.check_grant(grant, decision["actor"])

    def check_grant(self, grant: dict, actor: str) -> None:
        (entry,) = [one for one in self.authority if one.fields["sequence"] == grant["sequence"]]
        require(entry.kind == "actor.granted", "entry of a grant")
        said = {name: entry.facts[name] for name in ("grant", "actor", "role", "datasource")}
        require({**said, "sequence": grant["sequence"]} == grant, "a grant")
        require((grant["actor"], grant["role"]) == (actor, "approver"), "whose grant")
        require(grant["datasource"] in (None, self.stage["datasource"]), "reach of a grant")
        withdrawn = [
            one.at
            for one in self.authority
            if one.kind == "actor.withdrawn" and one.facts["grant"] == grant["grant"]
        ]
        require(all(self.promotion.at < at for at in withdrawn), "a grant was withdrawn")
        self.require_grant(entry)


def verify(envelope: bytes, *, exporter: bytes, founder: bytes) -> dict:
    """Return the statement, or refuse it. Both keys are 32 raw bytes, trusted beforehand."""
    try:
        statement = opened(envelope, exporter)
        Verifier(statement, founder).verify()
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise RefusedError(f"malformed: {type(error).__name__}") from error
    return statement
