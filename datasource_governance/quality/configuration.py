"""Whether a quality configuration says what it must, told from its file and a manifest alone.

Source: SPEC section 14; facts on the quality plugin, 2.1; ADR-0044, `validate_config`.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from datasource_governance.domain.coverage import Dataset
from datasource_governance.domain.datasource import parse_datasource
from datasource_governance.domain.quality_expectation import ContentRule
from datasource_governance.domain.quality_gates import datasets_of
from datasource_governance.domain.quality_policy import parse_quality_policy
from datasource_governance.domain.rules import Rule
from datasource_governance.domain.strict_json import parse_json, pointer
from datasource_governance.errors import InvalidPolicyError, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class _Configured:
    """The rules of a file, and the datasource that they are for where the file says it."""

    rules: Sequence[Rule]
    datasource: str | None
    pointer: str


def configuration_problems(
    path: Path, manifest: Mapping[str, object], kinds: Collection[str]
) -> Iterator[Problem]:
    """Return everything wrong with a quality policy or a datasource declaration.

    Args:
        path: The JSON file; policies that a declaration names are read beside it.
        manifest: Ours or one of dbt; `{}` knows nothing, and no field is looked up.
        kinds: The types of rules about rows that are evaluated.
    """
    try:
        configured, datasets = _read(path), datasets_of(manifest) if manifest else ()
    except InvalidPolicyError as error:
        yield from error.problems
        return
    except OSError:
        message = f"{path.name} cannot be read"
        yield Problem(kind="unreadable", names=(path.name,), message=message)
        return
    known = _known_fields(datasets, configured.datasource)
    for place, rule in enumerate(configured.rules):
        here = configured.pointer + pointer("rules", place)
        if isinstance(rule, ContentRule) and rule.type not in kinds:
            message = f"rule {rule.id!r}: the provider does not evaluate type {rule.type}"
            yield Problem(kind="unsupported_rule", pointer=here, names=(rule.id,), message=message)
        for name in rule.fields:
            if known is not None and name not in known:
                message = f"rule {rule.id!r}: the manifest has no field {name!r}"
                yield Problem(
                    kind="unknown_field", pointer=here, names=(rule.id, name), message=message
                )


def _read(path: Path) -> _Configured:
    content = path.read_bytes()
    document = parse_json(content, what=path.name)
    if isinstance(document, dict) and "rules" not in document and "kind" in document:
        declaration = parse_datasource(content, lambda name: (path.parent / name).read_bytes())
        policy = declaration.quality_policy
        return _Configured(
            rules=() if policy is None else policy.rules,
            datasource=declaration.id,
            pointer=pointer("governance", "quality_policy"),
        )
    return _Configured(rules=parse_quality_policy(content).rules, datasource=None, pointer="")


def _known_fields(datasets: Sequence[Dataset], datasource: str | None) -> frozenset[str] | None:
    """Return the fields that there are; None where the manifest does not know.

    A policy by itself does not say which datasource it is for, so that any may have the field.
    dbt's name of a model ends with what a declaration calls it.
    """
    concerned = [
        one
        for one in datasets
        if datasource is None or datasource in (one.id, one.id.rpartition(".")[2])
    ]
    described = [one for one in concerned if one.fields]
    return frozenset(name for one in described for name in one.fields) if described else None
