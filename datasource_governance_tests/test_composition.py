"""What the environment may say, and what it may not."""

import pytest

from datasource_governance.composition import read_settings
from datasource_governance.errors import InvalidArgumentError


@pytest.mark.parametrize("tenant", ["a", "default", "acme_eu_2", "t" * 63])
def test_a_tenant_is_named_like_a_datasource(tenant):
    assert read_settings({"GOVERNANCE_TENANT": tenant}).tenant == tenant


def test_without_a_name_the_tenant_is_the_default_one():
    assert read_settings({}).tenant == "default"


@pytest.mark.parametrize(
    "tenant",
    [
        *("", " ", "Default", "1st", "_a", "a-b", "a.b", "a/b", "a b", "default ", "a\x00", "a\n"),
        *("t" * 64, "\u0430bc", "\uff41", "a'; --"),
    ],
)
def test_another_form_of_tenant_is_refused_by_the_name_of_the_variable(tenant):
    with pytest.raises(InvalidArgumentError, match="GOVERNANCE_TENANT is ") as refused:
        read_settings({"GOVERNANCE_TENANT": tenant})

    assert "first a letter" in str(refused.value)
