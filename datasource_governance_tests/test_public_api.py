"""The public names: what may not change without a release that says so."""

import inspect

import datasource_governance
from datasource_governance import errors


def test_the_package_has_exactly_these_public_names():
    assert datasource_governance.__all__ == [
        "NOT_MODIFIED",
        "GovernanceError",
        "GovernedOutput",
        "OriginData",
        "SqlSource",
        "build_governed_asset",
        "governed_asset",
        "governed_definitions",
        "pandera_schema",
        "parse_quality_policy",
        "producer_evidence",
        "publish",
        "read_current",
        "read_declarations",
        "validate",
        "validate_file",
    ]


def test_every_public_name_is_found_and_documented():
    for name in datasource_governance.__all__:
        assert inspect.getdoc(getattr(datasource_governance, name)), name


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(datasource_governance, "no_such_name")


def test_errors_are_exactly_these_and_each_has_a_stable_code():
    found = {
        name: value.code
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, errors.GovernanceError)
    }

    assert found == {
        "EvaluationError": "not_evaluated",
        "GovernanceError": "governance_error",
        "GuardError": "refused",
        "InvalidArgumentError": "invalid_argument",
        "InvalidPolicyError": "invalid_document",
        "NotFoundError": "not_found",
        "PluginExecutionError": "provider_failed",
        "ProblemsError": "governance_error",
        "ServiceUnavailableError": "service_unavailable",
        "UnreadableSourceError": "unreadable_source",
    }
