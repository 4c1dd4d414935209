"""Artifact references: complete, immutable, read strictly, and bound to a datasource."""

import dataclasses
import json
from datetime import UTC, datetime, timedelta

import pytest

from datasource_governance.domain.artifact import (
    MAXIMUM_RESUME_CHECKPOINT_BYTES,
    Description,
    KeptObject,
    MediaType,
    datasource_fingerprint,
    orphans,
    parse_artifact_reference,
)
from datasource_governance.domain.canonical import canonical_bytes
from datasource_governance.errors import InvalidPolicyError
from datasource_governance_tests.builders import schema
from datasource_governance_tests.domain.artifacts import reference

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
SCHEMA = schema(id="integer", note="string?")


def problems_of(**changes):
    """Return the problems of a reference's document with some keys replaced, or left out."""
    document = {**reference().document(), **changes}
    kept = {key: value for key, value in document.items() if value is not ...}
    with pytest.raises(InvalidPolicyError) as refused:
        parse_artifact_reference(kept)
    return {(one.kind, one.pointer) for one in refused.value.problems}


@pytest.mark.parametrize("checkpoint", [None, "page 7\n", "é" * 2048])
@pytest.mark.parametrize("media_type", MediaType)
def test_a_reference_is_read_from_its_own_document(checkpoint, media_type):
    written = reference(resume_checkpoint=checkpoint, media_type=media_type)

    assert parse_artifact_reference(written.document()) == written
    assert parse_artifact_reference(canonical_bytes(written.document())) == written


def test_the_digest_of_a_reference_is_a_matter_of_its_content_and_does_not_change():
    assert reference().hash == reference().hash
    assert reference().hash == "aaaeaa67ed9ae6cdd8a55b9c1c43de17a31d49cecd7564ed2d6e4e81959c85ac"


@pytest.mark.parametrize(
    "change",
    [
        {"backend": "s3"},
        {"locator": "orders/b"},
        {"sha256": "b" * 64},
        {"schema": schema(id="integer?")},
        {"datasource_fingerprint": "b" * 64},
        {"row_count": 4},
        {"byte_count": 4},
        {"media_type": MediaType.ARROW_FILE},
        {"resume_checkpoint": "page 7"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_every_fact_of_a_reference_is_in_its_digest(change):
    assert reference(**change).hash != reference().hash


def test_a_reference_cannot_be_changed_and_shows_no_checkpoint():
    written = reference(resume_checkpoint="token of the producer")

    with pytest.raises(dataclasses.FrozenInstanceError):
        written.locator = "other"
    assert "token" not in repr(written)


def test_everything_that_is_wrong_is_said_at_once():
    assert problems_of(
        backend="S3!",
        locator="../x",
        sha256="A" * 64,
        schema=[{"name": "id", "type": "int", "nullable": 1}],
        datasource_fingerprint=...,
        row_count=-1,
        byte_count=True,
        media_type="application/x-python-pickle",
        resume_checkpoint=None,
        more=1,
    ) == {
        ("invalid_value", "/backend"),
        ("invalid_value", "/locator"),
        ("invalid_value", "/sha256"),
        ("invalid_value", "/schema/0/type"),
        ("invalid_value", "/schema/0/nullable"),
        ("missing_key", ""),
        ("invalid_value", "/row_count"),
        ("invalid_value", "/byte_count"),
        ("invalid_value", "/media_type"),
        ("invalid_value", "/resume_checkpoint"),
        ("unknown_key", "/more"),
    }


@pytest.mark.parametrize("format_", ["datasource_governance/artifact_reference/v2", 1, None])
def test_another_format_is_not_guessed_at(format_):
    assert ("invalid_value", "/format") in problems_of(format=format_)


def test_a_reference_that_repeats_a_key_is_refused():
    text = json.dumps(reference().document())

    with pytest.raises(InvalidPolicyError) as refused:
        parse_artifact_reference(text.replace("{", '{"backend": "local", ', 1))

    assert [one.kind for one in refused.value.problems] == ["duplicate_key"]


@pytest.mark.parametrize("checkpoint", ["x" * 4096, "é" * 2048])
def test_a_checkpoint_of_4_kibibytes_is_the_longest(checkpoint):
    assert len(checkpoint.encode()) == MAXIMUM_RESUME_CHECKPOINT_BYTES
    document = reference(resume_checkpoint=checkpoint).document()

    assert parse_artifact_reference(document).resume_checkpoint == checkpoint
    assert problems_of(resume_checkpoint=f"{checkpoint}x") == {
        ("invalid_value", "/resume_checkpoint")
    }


@pytest.mark.parametrize(
    "locator", ["", "/", "a/", "/a", "a//b", "a/../b", ".", "A", "a b", "a\n", "s3://a", "x" * 201]
)
def test_what_no_backend_makes_is_no_locator(locator):
    assert problems_of(locator=locator) == {("invalid_value", "/locator")}


def test_a_fingerprint_is_of_tenant_datasource_and_schema():
    mine = datasource_fingerprint("acme", "orders", SCHEMA)
    others = {
        datasource_fingerprint("other", "orders", SCHEMA),
        datasource_fingerprint("acme", "customers", SCHEMA),
        datasource_fingerprint("acme", "orders", schema(id="integer")),
        datasource_fingerprint("acmeo", "rders", SCHEMA),
    }

    assert mine not in others
    assert len(others) == 4
    made = reference(schema=SCHEMA, datasource_fingerprint=mine)
    assert made.is_of("acme", "orders")
    assert not made.is_of("acme", "customers")
    assert not made.is_of("other", "orders")


@pytest.mark.parametrize(
    ("found", "otherwise"),
    [
        ({}, None),
        ({"row_count": 4}, "it has 4 rows"),
        ({"schema": schema(id="number", note="string?")}, "it has other fields"),
        ({"schema": schema(note="string?", id="integer")}, "it has other fields"),
        ({"schema": schema(id="integer")}, "it has other fields"),
        ({"schema": schema(id="integer?", note="string")}, None),
        ({"with_nulls": frozenset({"note"})}, None),
        ({"with_nulls": frozenset({"id"})}, "it has nulls in fields that have none"),
    ],
)
def test_a_file_contradicts_its_reference_in_words(found, otherwise):
    described = Description(**{"schema": SCHEMA, "row_count": 3, "with_nulls": frozenset()} | found)

    assert described.contradicts(reference(schema=SCHEMA, row_count=3)) == otherwise


def kept(locator, hours_ago):
    at = NOON - timedelta(hours=hours_ago)
    return KeptObject(locator=locator, byte_count=1, changed_at=at)


def test_orphans_are_unreferenced_and_older_than_the_instant_oldest_first():
    objects = [kept("a/new", 0), kept("a/old", 2), kept("a/named", 3), kept("a/oldest", 4)]

    found = orphans(objects, {"a/named"}, before=NOON - timedelta(hours=1))

    assert [one.locator for one in found] == ["a/oldest", "a/old"]
    assert orphans(objects, set(), before=NOON - timedelta(hours=4)) == ()
