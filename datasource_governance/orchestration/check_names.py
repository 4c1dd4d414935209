"""Names of asset checks for rule ids and rule types: legal for Dagster, distinct, and stable.

Source: SPEC section 15, "Check names".
"""

import hashlib
import re
from collections import Counter
from collections.abc import Sequence

from datasource_governance.domain.contract import CheckKind
from datasource_governance.domain.quality_policy import Severity

QUALITY_POLICY = "quality_policy"
SCHEMA_CLASSIFICATION = "schema_classification"
EVIDENCE = "evidence"
FIXED = (QUALITY_POLICY, SCHEMA_CLASSIFICATION, EVIDENCE)

_NOT_ALLOWED = re.compile(r"[^A-Za-z0-9_]")
_DIGITS = 8


def check_names(rule_ids: Sequence[str]) -> dict[str, str]:
    """Return the check name of every rule id, in order.

    Every character outside `[A-Za-z0-9_]` becomes `_`. Ids that then meet each other or a fixed
    name each get `_` and 8 hex digits of their own SHA-256, so a name does not depend on which
    other rule it met. If even that meets another name, all of the digest is taken.
    """
    plain = {rule_id: _NOT_ALLOWED.sub("_", rule_id) for rule_id in rule_ids}
    taken = Counter([*plain.values(), *FIXED])
    short = {
        rule_id: name if taken[name] == 1 else f"{name}_{_digest(rule_id)[:_DIGITS]}"
        for rule_id, name in plain.items()
    }
    met = Counter([*short.values(), *FIXED])
    return {
        rule_id: name if met[name] == 1 else f"{plain[rule_id]}_{_digest(rule_id)}"
        for rule_id, name in short.items()
    }


def rule_type_check_name(rule_type: str, severity: Severity) -> str:
    """Return the name of the check of all rules of one type and severity: `unique_warnings`.

    The ending keeps these names apart from each other and from the fixed ones. They never meet the
    names of rule ids, because a datasource has either those or these.
    """
    return f"{rule_type}_{severity}s"


def contract_check_name(contract: str, kind: CheckKind) -> str:
    """Return the name of a check of a contract: `contract_<id>_<kind>`.

    Of an id that is not legal as it is, hexadecimal digits tell it apart from others.
    """
    plain = _NOT_ALLOWED.sub("_", contract)
    name = plain if plain == contract else f"{plain}_{_digest(contract)[:_DIGITS]}"
    return f"contract_{name}_{kind}"


def _digest(rule_id: str) -> str:
    return hashlib.sha256(rule_id.encode()).hexdigest()
