"""The component by which a datasource is declared in YAML, and what `dg scaffold` makes of it.

`dg` finds it through the entry point group `dagster_dg_cli.registry_modules`. It builds what
`governed_definitions` and `build_governed_asset` build; loading it connects to nothing.

Source: SPEC section 15 ("Authoring").
"""

import functools
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import dagster as dg
from pydantic import Field
from typing_extensions import override

from datasource_governance.composition import Application, Settings, read_settings
from datasource_governance.declarations import FILE_NAME, read_declaration_files
from datasource_governance.domain.datasource import Datasource
from datasource_governance.errors import InvalidPolicyError, Problem
from datasource_governance.orchestration.governed_asset import AssetKeywords, build_governed_asset
from datasource_governance.orchestration.registry import datasource_definitions, shared_definitions

_TEMPLATES = Path(__file__).parent / "scaffolding"
_KIND_TAG = "dagster/kind/"
_ABOUT_OUTPUT = ("producer", "policy", "idempotency_key", "asset")


class ScaffoldOptions(dg.Model):
    """What `dg scaffold defs datasource_governance.components.GovernedDatasource` asks for."""

    kind: Literal["published", "static"] = Field(
        default="published",
        description="published: what a function returns passes the gate; static: files are "
        "delivered and staged.",
    )


class GovernedDatasourceScaffolder(dg.Scaffolder[ScaffoldOptions]):
    """Writes a declaration, its quality policy and, where an output is published, a function."""

    @classmethod
    @override
    def get_scaffold_params(cls) -> type[ScaffoldOptions]:
        return ScaffoldOptions

    @override
    def scaffold(self, request: dg.ScaffoldRequest[ScaffoldOptions]) -> None:
        kind, folder = request.params.kind, request.target_path
        for template in sorted((_TEMPLATES / kind).iterdir()):
            text = template.read_text().replace("{{ name }}", folder.name)
            (folder / template.name.removesuffix(".txt")).write_text(text)
        attributes = {"datasource": FILE_NAME}
        if kind == "published":
            attributes["output"] = ".output.build"
        dg.scaffold_component(request, attributes)


def _beside(context: dg.ResolutionContext, name: str | None) -> Path | None:
    """Return the path of a file beside `defs.yaml`."""
    path = dg.ComponentLoadContext.from_resolution_context(context).path
    return None if name is None else (path if path.is_dir() else path.parent) / name


def _function(context: dg.ResolutionContext, name: str | None) -> Callable[..., object] | None:
    """Return a function by its dotted name; one that begins with a dot is beside `defs.yaml`."""
    if name is None:
        return None
    load = dg.ComponentLoadContext.from_resolution_context(context)
    module, _, function = name.rpartition(".")
    if name.startswith("."):
        module = f"{load.defs_relative_module_name(load.path)}{module}"
    found: Callable[..., object] = getattr(importlib.import_module(module), function)
    return found


@dg.scaffold_with(GovernedDatasourceScaffolder)
class GovernedDatasource(dg.Component, dg.Model, dg.Resolvable):
    """A governed datasource: its assets and checks, and the asset of what is published to it.

    All of a project share sensors, resources and the executor; the first of them brings these.
    """

    datasource: Annotated[
        Path,
        dg.Resolver(
            _beside,
            model_field_type=str,
            description="The declaration, a JSON file beside defs.yaml.",
        ),
    ]
    output: Annotated[
        Callable[..., Any] | None,
        dg.Resolver(
            _function,
            model_field_type=str | None,
            description="The function whose output is published: .module.function beside "
            "defs.yaml, or package.module.function. Without one nothing is.",
        ),
    ] = None
    producer: str | None = Field(default=None, description="Whose keys these are.")
    policy: Annotated[
        Path | None,
        dg.Resolver(
            _beside,
            model_field_type=str | None,
            description="A quality policy in place of the datasource's, which must allow it.",
        ),
    ] = None
    idempotency_key: str | None = Field(
        default=None, description="A template of {run}, {asset} and {partition}."
    )
    asset: dg.ResolvedAssetSpec | None = Field(
        default=None, description="The asset that publishes; named after the datasource if absent."
    )

    @override
    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Return this datasource's definitions, and what all share if it is the first.

        Raises:
            InvalidPolicyError: with every problem of the declaration; of all of them, if it is the
                first.
        """
        everywhere = context.component_tree.get_all_components(GovernedDatasource) or [self]
        is_first = everywhere[0] is self
        application = _application(read_settings())
        paths = [one.datasource for one in everywhere] if is_first else [self.datasource]
        declared = read_declaration_files(paths, "governed datasources")
        declaration = declared[self.datasource]
        own = datasource_definitions(declaration, application, _producers(self, declaration))
        if not is_first:
            return own
        producers = [
            producer for one in everywhere for producer in _producers(one, declared[one.datasource])
        ]
        shared = shared_definitions([*declared.values()], application, producers)
        return dg.Definitions.merge(own, shared)


def _producers(component: GovernedDatasource, declaration: Datasource) -> list[dg.AssetsDefinition]:
    """Return the asset that publishes to a component's datasource, if it has an output."""
    if component.output is None:
        _check_nothing_published(component)
        return []
    return [
        build_governed_asset(
            component.output,
            declaration,
            producer=component.producer,
            policy=component.policy,
            idempotency_key=component.idempotency_key,
            **_keywords(component.asset),
        )
    ]


def _check_nothing_published(component: GovernedDatasource) -> None:
    """Refuse what is about an output where there is none."""
    given = [name for name in _ABOUT_OUTPUT if getattr(component, name) is not None]
    if given:
        message = f"{', '.join(given)}: about an output, and the component has no output"
        problem = Problem(kind="invalid_value", names=tuple(given), message=message)
        raise InvalidPolicyError(f"component of {component.datasource}", [problem])


@functools.cache
def _application(settings: Settings) -> Application:
    """Return the one application of a process, so that all components share its engine."""
    return Application(settings)


def _keywords(spec: dg.AssetSpec | None) -> AssetKeywords:
    """Return the keywords of `dg.asset` that a spec stands for."""
    if spec is None:
        return {}
    return {
        "key": spec.key,
        "deps": spec.deps,
        "description": spec.description,
        "metadata": spec.metadata,
        "group_name": spec.group_name,
        "code_version": spec.code_version,
        "owners": spec.owners,
        "kinds": spec.kinds,
        "tags": {name: tag for name, tag in spec.tags.items() if not name.startswith(_KIND_TAG)},
        "automation_condition": spec.automation_condition,
        "partitions_def": spec.partitions_def,
        "freshness_policy": spec.freshness_policy,
    }
