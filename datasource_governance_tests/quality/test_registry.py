"""Providers by name: the four of this package, and those of other distributions."""

import pytest

from datasource_governance.errors import InvalidArgumentError
from datasource_governance.quality.plugin import PluginConfiguration
from datasource_governance.quality.providers.pandera import PanderaPlugin
from datasource_governance.quality.registry import load_provider, provider, provider_names
from datasource_governance_tests.quality.misbehaving import Misbehaving

HERE = "datasource_governance_tests.quality.misbehaving:Misbehaving"
MODULE = """
from datasource_governance.quality.plugin import DataQualityPlugin

class Whole(DataQualityPlugin):
    name = "whole"

    def run(self, target, expectations, folder):
        return ()

class Newer(Whole):
    api_version = "2.0"

class Later(Whole):
    api_version = "1.7"

class Unfinished(DataQualityPlugin):
    name = "unfinished"

NOT_A_CLASS = 1
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Install a distribution that declares providers: `name="module:class"`."""

    def install(distribution, **declared):
        folder = tmp_path / f"{distribution}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n"
        )
        lines = [f"{name} = {value}" for name, value in declared.items()]
        group = "[datasource_governance.data_quality]"
        (folder / "entry_points.txt").write_text("\n".join([group, *lines]))

    (tmp_path / "third_party_quality.py").write_text(MODULE)
    (tmp_path / "broken_quality.py").write_text("raise RuntimeError('zq-canary')")
    (tmp_path / "unreadable_quality.py").write_text("def (")
    monkeypatch.syspath_prepend(tmp_path)
    return install


def refused(name):
    with pytest.raises(InvalidArgumentError) as raised:
        load_provider(name)
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None
    assert "zq-canary" not in str(raised.value)
    return raised.value


def test_the_providers_of_this_package_have_the_names_of_the_specification():
    assert {"pandera", "great_expectations", "soda", "dbt", "dbt_expectations"} <= {
        *provider_names()
    }


@pytest.mark.parametrize(
    "name", ["dbt", "dbt_expectations", "great_expectations", "pandera", "soda"]
)
def test_each_can_be_loaded_and_says_what_it_is(name):
    found = load_provider(name)

    assert found.name == name.replace("dbt_expectations", "dbt")
    assert found().version


def test_a_provider_is_made_with_its_configuration():
    configuration = PluginConfiguration(timeout_seconds=7)

    made = provider("pandera", configuration)

    assert type(made) is PanderaPlugin
    assert made.configuration == configuration


def test_an_unknown_name_is_refused_with_those_that_are_known():
    error = refused("pandra")

    assert error.code == "provider_unknown"
    assert "no quality provider 'pandra'; installed are dbt, dbt_expectations" in str(error)


def test_a_distribution_can_bring_a_provider_in(installed):
    installed("third", ours=HERE, whole="third_party_quality:Whole")

    assert {"ours", "whole"} <= {*provider_names()}
    assert load_provider("ours") is Misbehaving
    assert load_provider("whole").name == "whole"


def test_a_provider_for_another_major_version_is_refused(installed):
    installed("third", newer="third_party_quality:Newer", later="third_party_quality:Later")

    error = refused("newer")
    assert error.code == "provider_incompatible"
    assert "written for version 2.0 of the interface, and this is 1.0" in str(error)
    assert load_provider("later").api_version == "1.7"


@pytest.mark.parametrize(
    "value",
    [
        "third_party_quality:Absent",
        "third_party_quality:NOT_A_CLASS",
        "third_party_quality:Unfinished",
        "absent_quality:Whole",
        "broken_quality:Whole",
        "unreadable_quality:Whole",
        "builtins:dict",
    ],
)
def test_what_is_no_provider_is_refused(value, installed):
    installed("third", odd=value)

    error = refused("odd")

    assert error.code == "provider_unknown"
    assert f"{value}, which is declared as quality provider 'odd'" in str(error)


def test_a_distribution_cannot_take_the_name_of_another_ones_provider(installed):
    installed("third", pandera=HERE)

    error = refused("pandera")

    assert error.code == "provider_ambiguous"
    assert HERE in str(error)
    assert "providers.pandera:PanderaPlugin" in str(error)


def test_the_same_class_declared_twice_is_one_provider(installed):
    installed("third", ours=HERE)
    installed("fourth", ours=HERE)

    assert load_provider("ours") is Misbehaving
