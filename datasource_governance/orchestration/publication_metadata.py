"""What Dagster shows of a governed asset, of what it published and of what needs review.

Source: SPEC section 15 ("publication"; "Metadata worth looking at").
"""

from dataclasses import replace

import dagster as dg

from datasource_governance.domain.datasource import Datasource
from datasource_governance.domain.materialization import provenance_of
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


def publication_metadata(published: Published, declared: QualityPolicy | None) -> Metadata:
    """Return the metadata of what a governed asset published: those of `current`, and the gate."""
    materialization, validation = published.materialization, published.validation
    rules = metadata.rules_of(validation)
    return {
        **metadata.materialization_metadata(materialization, provenance_of(materialization)),
        metadata.REPLAYED: published.replayed,
        metadata.OUTCOME: str(validation["outcome"]),
        metadata.FAILED_RULES: sum(rule["status"] != "passed" for rule in rules),
        metadata.RULES: metadata.rule_table(rules),
        metadata.SCHEMA_DIFF: metadata.change_table(validation["schema_diff"]),
        metadata.POLICY_DRIFT: metadata.policy_drift(metadata.policy_hash_of(validation), declared),
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
    page = f"{webserver.rstrip('/')}/governance/stages/{published.stage}"
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
