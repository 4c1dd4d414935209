"""GraphQL requests, read as the webserver behind would read them, within limits. Pure.

What is looked for is found wherever it is spelled: in fragments, under aliases, in literals, in
variables and their defaults, and in every operation of a document, not only the one that is named.

Source: SPEC sections 15 (run config never reads environment variables) and 16; the GraphQL
specification of October 2021.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    GraphQLSchema,
    OperationDefinitionNode,
    OperationType,
    SelectionSetNode,
    parse,
    value_from_ast_untyped,
    visit,
)
from graphql.execution.values import get_argument_values, get_variable_values
from graphql.language import ArgumentNode, Visitor

from datasource_governance.domain import launch
from datasource_governance.errors import InvalidArgumentError

MAXIMUM_TOKENS = 20_000
MAXIMUM_DEPTH = 50
MAXIMUM_FIELDS = 50_000
"""Fields after fragments are spread; the largest pages of Dagster's UI ask for some thousands."""
MAXIMUM_RUN_CONFIG_CHARACTERS = 100_000
RUN_CONFIG = "runConfigData"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """One field at the root of a mutation, with its arguments as its resolver gets them."""

    name: str
    arguments: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class GraphQLRequest:
    """A parsed document and its variables."""

    document: DocumentNode
    variables: Mapping[str, object]

    @property
    def operations(self) -> tuple[OperationDefinitionNode, ...]:
        """Every operation of the document."""
        return tuple(
            each for each in self.document.definitions if isinstance(each, OperationDefinitionNode)
        )

    @property
    def kinds(self) -> frozenset[OperationType]:
        """The kinds of operations that occur."""
        return frozenset(operation.operation for operation in self.operations)

    def field_names(self) -> frozenset[str]:
        """Return the names, not the aliases, of all fields at any depth."""
        found = _Found()
        visit(self.document, found)
        return frozenset(found.fields)

    def mutations(self, schema: GraphQLSchema) -> tuple[Mutation, ...]:
        """Return every field at the root of every mutation.

        Raises:
            InvalidArgumentError: when variables or arguments do not fit the schema.
        """
        return tuple(
            Mutation(name=field.name.value, arguments=_arguments(schema, field, values))
            for operation in self.operations
            if operation.operation is OperationType.MUTATION
            for values in (_variable_values(schema, operation, self.variables),)
            for field in _fields(operation.selection_set, _fragments(self.document))
        )

    def reads_environment(self) -> bool:
        """Tell whether `{"env": …}` stands anywhere in a value, also in YAML run configuration."""
        found = _Found()
        visit(self.document, found)
        for operation in self.operations:
            variables = _defaults(operation) | dict(self.variables)
            for argument in found.arguments:
                value = value_from_ast_untyped(argument.value, variables)
                if reads_environment({argument.name.value: value}):
                    return True
        return reads_environment(list(self.variables.values()))


def read_request(payload: object) -> GraphQLRequest:
    """Return the request that a JSON body or WebSocket payload holds.

    Raises:
        InvalidArgumentError: for a list of requests, a query by reference, variables that are no
            object, a document that does not parse or is too large.
    """
    if not isinstance(payload, Mapping) or not isinstance(payload.get("query"), str):
        raise InvalidArgumentError("a GraphQL request is one object with its query written out")
    variables = payload.get("variables") or {}
    if not isinstance(variables, Mapping):
        raise InvalidArgumentError("the variables of a GraphQL request are an object")
    request = GraphQLRequest(_parse(payload["query"]), variables)
    _check_size(request)
    return request


def reads_environment(value: object) -> bool:
    """Tell whether `{"env": …}` stands anywhere in a JSON value.

    Text under the key `runConfigData` is read as the YAML that it is.

    Raises:
        InvalidArgumentError: when such text is too large or cannot be read.
    """
    return launch.reads_environment(value, _written_out)


def _written_out(key: object, value: object) -> object:
    return _yaml(value) if key == RUN_CONFIG and isinstance(value, str) else value


def _yaml(text: str) -> object:
    from dagster_graphql.schema.runs import parse_run_config_input

    # Merge keys can multiply the work of reading with every line.
    if len(text) > MAXIMUM_RUN_CONFIG_CHARACTERS or "<<" in text:
        raise InvalidArgumentError(
            f"run configuration has at most {MAXIMUM_RUN_CONFIG_CHARACTERS} characters and no <<"
        )
    try:
        read: object = parse_run_config_input(text, raise_on_error=False)
    except (ValueError, RecursionError):
        read = None
    if read is None:
        raise InvalidArgumentError("the run configuration is not readable YAML")
    return read


class _Found(Visitor):
    """All fields and arguments of a document."""

    def __init__(self) -> None:
        super().__init__()
        self.fields: list[str] = []
        self.arguments: list[ArgumentNode] = []

    def enter_field(self, node: FieldNode, *_: object) -> None:
        self.fields.append(node.name.value)

    def enter_argument(self, node: ArgumentNode, *_: object) -> None:
        self.arguments.append(node)


def _parse(query: str) -> DocumentNode:
    try:
        return parse(query, no_location=True, max_tokens=MAXIMUM_TOKENS)
    except (GraphQLError, RecursionError):
        pass
    raise InvalidArgumentError(
        f"the query is no GraphQL document of at most {MAXIMUM_TOKENS} tokens"
    )


def _check_size(request: GraphQLRequest) -> None:
    fragments = _fragments(request.document)
    left = MAXIMUM_FIELDS
    for operation in request.operations:
        for depth in _depths(operation.selection_set, fragments, 1):
            left -= 1
            # A fragment that contains itself is as deep as one likes.
            if left < 0 or depth > MAXIMUM_DEPTH:
                raise InvalidArgumentError(
                    f"a GraphQL request has at most {MAXIMUM_FIELDS} fields with fragments spread, "
                    f"nested at most {MAXIMUM_DEPTH} deep"
                )


_Fragments = Mapping[str, FragmentDefinitionNode]


def _fragments(document: DocumentNode) -> _Fragments:
    found = [each for each in document.definitions if isinstance(each, FragmentDefinitionNode)]
    named = {each.name.value: each for each in found}
    if len(named) != len(found):
        raise InvalidArgumentError("a GraphQL document names each fragment once")
    return named


def _depths(selection: SelectionSetNode, fragments: _Fragments, depth: int) -> Iterator[int]:
    """Yield the depth of every selection once per way that leads to it."""
    for each in selection.selections:
        yield depth
        below = _below(each, fragments)
        if below is not None:
            yield from _depths(below, fragments, depth + 1)


def _fields(selection: SelectionSetNode, fragments: _Fragments) -> Iterator[FieldNode]:
    """Yield the fields of a selection with its fragments spread, whatever types they are on."""
    for each in selection.selections:
        if isinstance(each, FieldNode):
            yield each
        elif (below := _below(each, fragments)) is not None:
            yield from _fields(below, fragments)


def _below(selection: object, fragments: _Fragments) -> SelectionSetNode | None:
    if isinstance(selection, FragmentSpreadNode):
        fragment = fragments.get(selection.name.value)
        return fragment.selection_set if fragment else None
    found: SelectionSetNode | None = getattr(selection, "selection_set", None)
    return found


def _defaults(operation: OperationDefinitionNode) -> dict[str, object]:
    return {
        definition.variable.name.value: value_from_ast_untyped(definition.default_value)
        for definition in operation.variable_definitions or ()
        if definition.default_value is not None
    }


def _variable_values(
    schema: GraphQLSchema, operation: OperationDefinitionNode, variables: Mapping[str, object]
) -> dict[str, object]:
    values = get_variable_values(schema, operation.variable_definitions or (), dict(variables))
    if isinstance(values, list):
        raise InvalidArgumentError("the variables of the GraphQL request do not fit its operation")
    return values


def _arguments(
    schema: GraphQLSchema, field: FieldNode, values: dict[str, object]
) -> Mapping[str, object]:
    definition = schema.mutation_type.fields.get(field.name.value) if schema.mutation_type else None
    if definition is None:
        return {}
    try:
        return get_argument_values(definition, field, values)
    except GraphQLError:
        pass
    raise InvalidArgumentError(f"the arguments of {field.name.value} do not fit the schema")
