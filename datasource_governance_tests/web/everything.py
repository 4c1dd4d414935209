"""GraphQL that asks for everything which the schema offers about something, to a depth."""

from collections.abc import Collection, Iterator

from graphql import (
    GraphQLField,
    GraphQLInterfaceType,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLSchema,
    GraphQLUnionType,
    get_named_type,
    is_leaf_type,
)


def everything(
    schema: GraphQLSchema, kind: str, depth: int, *, without: Collection[str] = ()
) -> str:
    """Return a selection of all fields of a type that need no argument, `depth` objects deep.

    `without` names fields that are not asked for, as `field` on whatever type or `Type.field`.
    """
    return _Selection(schema, frozenset(without)).of(schema.type_map[kind], depth)


class _Selection:
    def __init__(self, schema: GraphQLSchema, without: frozenset[str]) -> None:
        self._schema = schema
        self._without = without

    def of(self, kind: object, depth: int) -> str:
        parts = "".join(self._parts(kind, depth))
        return f"{{ __typename {parts}}}"

    def _parts(self, kind: object, depth: int) -> Iterator[str]:
        if isinstance(kind, GraphQLInterfaceType | GraphQLUnionType):
            for one in self._schema.get_possible_types(kind):
                yield f"... on {one.name} {self.of(one, depth)} "
        if isinstance(kind, GraphQLObjectType):
            for name, field in kind.fields.items():
                is_left_out = not self._without.isdisjoint({name, f"{kind.name}.{name}"})
                if not is_left_out and not _needs_arguments(field):
                    yield from self._field(kind, name, get_named_type(field.type), depth)

    def _field(
        self, kind: GraphQLObjectType, name: str, below: object, depth: int
    ) -> Iterator[str]:
        # Fields of one name on several types of a union may be of different types.
        alias = f"{kind.name}_{name}: {name}"
        if is_leaf_type(below):
            yield f"{alias} "
        elif depth:
            yield f"{alias} {self.of(below, depth - 1)} "


def _needs_arguments(field: GraphQLField) -> bool:
    return any(isinstance(given.type, GraphQLNonNull) for given in field.args.values())
