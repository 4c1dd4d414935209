"""What Dagster shows of a governed asset, of what it published and of what needs review.

Source: SPEC section 15 ("publication"; "Metadata worth looking at").
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import dagster as dg

from datasource_governance.domain.canonical import Json
from datasource_governance.domain.datasource import Datasource
from datasource_governance.domain.materialization import Materialization, provenance_of
from datasource_governance.domain.notification import stage_page
from datasource_governance.domain.quality_policy import QualityPolicy
from datasource_governance.orchestration import metadata
from datasource_governance.orchestration.metadata import Metadata
from datasource_governance.services.publishing import Published


def author_metadata(
    datasource: Datasource, producer: str, supplied: QualityPolicy | None
) -> Metadata:
    """Return the definition metadata of a governed asset: whose it is, and what judges it."""
    judged = datasource if supplied is None else replace(datasource, quality_policy=supplied)
    return {
        metadata.DATASOURCE: datasource.id,
        metadata.PRODUCER: producer,
        **metadata.policy_metadata(judged),
    }


def metadata_problems(told: Mapping[Any, Any]) -> list[str]:
    """Return what is wrong with metadata of an author, so that what Dagster shows of us is ours.

    Nothing is quoted but keys.
    """
    names = [name for name in told if isinstance(name, str)]
    ours = [name for name in names if name.startswith(f"{metadata.NAMESPACE}/")]
    unknown = [name for name in names if not _is_shown(name, told[name])]
    return [
        *(["a key of metadata is no text"] if len(names) < len(told) else []),
        *(f"the metadata key {name!r} is one of this package" for name in ours),
        *(f"metadata {name!r} is of a type that Dagster does not show" for name in unknown),
    ]


def _is_shown(name: str, value: object) -> bool:
    try:
        dg.AssetObservation("told", metadata={name: value})  # type: ignore[dict-item]  # just what is asked
    except Exception:  # noqa: BLE001 - any type has any error, and may quote itself
        return False
    return True


def declared_hash(definition: Mapping[str, Any]) -> str | None:
    """Return the hash of the quality policy that a governed asset's definition metadata name."""
    policies: dg.TableMetadataValue | None = definition.get(metadata.POLICIES)
    records = policies.records if policies else ()
    hashes = (one.data["hash"] for one in records if one.data["policy"] == "quality")
    found = next(hashes, None)
    return None if found is None else str(found)


def publication_metadata(published: Published, declared: QualityPolicy | None) -> Metadata:
    """Return the metadata of what a governed asset published: those of `current`, and the gate."""
    policy_hash = declared.hash if declared else None
    return output_metadata(
        published.materialization, published.validation, policy_hash, replayed=published.replayed
    )


def output_metadata(
    materialization: Materialization,
    validation: Mapping[str, Json],
    declared: str | None,
    *,
    replayed: bool = False,
) -> Metadata:
    """Return the metadata of an output; `declared` is the hash of the policy that is expected."""
    rules = metadata.rules_of(validation)
    return {
        **metadata.materialization_metadata(materialization, provenance_of(materialization)),
        metadata.REPLAYED: replayed,
        metadata.OUTCOME: str(validation["outcome"]),
        **metadata.score_metadata(validation),
        metadata.FAILED_RULES: sum(rule["status"] != "passed" for rule in rules),
        metadata.RULES: metadata.rule_table(rules),
        metadata.SCHEMA_DIFF: metadata.change_table(validation["schema_diff"]),
        metadata.POLICY_DRIFT: metadata.policy_hash_of(validation) != declared,
    }


def review_metadata(
    published: Published, declared: QualityPolicy | None, webserver: str
) -> Metadata:
    """Return the metadata of what needs review; `webserver` has the page for deciding about it.

    Without a stage nobody decides: the producer publishes again with evidence.
    """
    told = publication_metadata(published, declared)
    if published.stage is None:
        again = "Publish it again under a new key, with evidence for every rule of the policy."
        return {metadata.NEXT_STEP: again, **told}
    page = stage_page(webserver, published.stage)
    step = (
        f"Waits for approval: [decide]({page}), or "
        f"`datasource-governance approve {published.stage} --reason …`, or `reject`."
    )
    return {
        metadata.NEXT_STEP: dg.MetadataValue.md(step),
        metadata.DECISION_PAGE: dg.MetadataValue.url(page),
        metadata.STAGE_ID: published.stage,
        **told,
    }
