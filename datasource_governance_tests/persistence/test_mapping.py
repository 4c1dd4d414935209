"""Rows become domain values and the same rows again, column by column."""

import pytest
from sqlalchemy import select

from datasource_governance.domain.actor import Role
from datasource_governance.domain.approval import Verdict
from datasource_governance.domain.attestation import KeyKind
from datasource_governance.domain.canonical import canonical_bytes
from datasource_governance.domain.materialization import Disposition
from datasource_governance.domain.policy_version import PolicyKind, PolicySource
from datasource_governance.domain.publication import PublicationState
from datasource_governance.domain.retention import Action, RetentionClass, TargetKind
from datasource_governance.domain.stage import StageState
from datasource_governance.domain.validation import Outcome
from datasource_governance.persistence import mapping, tables
from datasource_governance.persistence.connection import Connection

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

# By table: to a value, back to a row, and the columns that a value does not have.
MAPPED = {
    "actor": (mapping.actor, mapping.flat_row, set()),
    "actor_key": (mapping.actor_key, mapping.actor_key_row, set()),
    "attestation": (mapping.attestation, mapping.attestation_row, {"stored_at"}),
    "datasource": (mapping.target, mapping.target_row, set()),
    "decision": (mapping.decision, mapping.decision_row, set()),
    "materialization": (mapping.materialization, mapping.partitioned_row, set()),
    "disposition": (mapping.disposed_target, mapping.flat_row, set()),
    "frozen_evidence": (mapping.freeze, mapping.flat_row, set()),
    "retention_application": (mapping.application, mapping.flat_row, set()),
    "policy_version": (mapping.policy_version, mapping.policy_version_row, set()),
    "role_grant": (mapping.grant, mapping.flat_row, set()),
    "publication": (mapping.publication, mapping.partitioned_row, set()),
    "stage": (mapping.stage, mapping.partitioned_row, set()),
}
# By table: attributes that are words of the domain, not texts.
WORDS = {
    "actor_key": {"kind": KeyKind},
    "decision": {"verdict": Verdict},
    "disposition": {
        "kind": TargetKind,
        "retention_class": RetentionClass,
        "action": Action,
    },
    "materialization": {"disposition": Disposition},
    "policy_version": {"kind": PolicyKind, "source": PolicySource},
    "publication": {"policy_source": PolicySource, "state": PublicationState},
    "role_grant": {"role": Role},
    "stage": {"state": StageState, "outcome": Outcome},
}


def stored(world, name):
    connection = Connection(world.application.engine, "default")
    connection.begin()
    rows = connection.execute(select(tables.metadata.tables[f"governance.{name}"])).mappings().all()
    connection.close()
    return [dict(row) for row in rows]


@pytest.mark.parametrize("table", MAPPED)
def test_every_row_of_the_story_survives_the_way_there_and_back(told_world, table):
    to_value, to_row, not_mapped = MAPPED[table]
    rows = stored(told_world, table)

    returned = [to_row(to_value(row)) for row in rows]

    left_out = {"tenant", *not_mapped}
    assert rows
    assert returned == [
        {name: value for name, value in row.items() if name not in left_out} for row in rows
    ]


@pytest.mark.parametrize("table", WORDS)
def test_words_are_members_of_their_enumeration(told_world, table):
    to_value, _, _ = MAPPED[table]

    values = [to_value(row) for row in stored(told_world, table)]

    assert values
    for name, enumeration in WORDS[table].items():
        assert {type(getattr(value, name)) for value in values} == {enumeration}


def test_every_entry_of_the_story_has_the_hash_of_its_content(told_world):
    entries = [mapping.entry(row) for row in stored(told_world, "evidence")]

    assert entries
    assert [entry.recomputed_hash() for entry in entries] == [entry.entry_hash for entry in entries]


def test_a_key_says_when_it_was_revoked(told_world):
    with told_world.application.work() as work:
        revoked = {key.actor for key in work.authority.keys(None) if key.revoked_at is not None}

    assert revoked == {"leaver"}


def test_settings_that_are_no_object_are_refused(told_world):
    row = stored(told_world, "datasource")[0] | {"settings": canonical_bytes(["manual"])}

    with pytest.raises(TypeError, match="settings are a JSON object"):
        mapping.target(row)
