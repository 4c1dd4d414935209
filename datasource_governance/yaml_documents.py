"""YAML as the JSON that it stands for, so that one strict reader reads both.

It is respelled, not loaded: repeated keys stay repeated for the reader to find. What JSON has no
word for is refused, and so are aliases, with which a small document can be a huge one. A day
is the text that it is written as.

Source: SPEC section 2, "Strict means"; YAML 1.1, as PyYAML reads it.
"""

from typing import TYPE_CHECKING, Final

from datasource_governance.domain.canonical import canonical_bytes
from datasource_governance.domain.strict_json import MAXIMUM_DEPTH, MAXIMUM_DOCUMENT_BYTES
from datasource_governance.errors import InvalidPolicyError, Problem

if TYPE_CHECKING:
    import yaml

_TAG = "tag:yaml.org,2002:"
_TEXTS: Final = frozenset({f"{_TAG}str", f"{_TAG}timestamp"})
_OTHERS: Final = frozenset({f"{_TAG}{name}" for name in ("bool", "float", "int", "null")})


def json_from_yaml(content: bytes, *, what: str) -> str:
    """Return JSON text of a YAML document; whether it is strict JSON the reader of that says.

    Raises:
        InvalidPolicyError: it is larger than 1 MiB, nested deeper than 32, not UTF-8, not YAML, or
            has an alias, a merge, a tag or a key that JSON has no word for; the message says on
            which line, and holds nothing of the document.
    """
    import yaml

    if len(content) > MAXIMUM_DOCUMENT_BYTES:
        raise _refused(what, f"{len(content)} bytes, the limit is {MAXIMUM_DOCUMENT_BYTES}")
    problem = "it is empty"
    try:
        text = content.decode("utf-8")
        _check(text, what)
        if (node := yaml.compose(text, Loader=yaml.SafeLoader)) is not None:
            return _spelled(node, what)
    except UnicodeDecodeError as error:
        problem = f"not UTF-8 at byte {error.start + 1}"
    except yaml.MarkedYAMLError as error:
        problem = (
            "not YAML" if error.problem_mark is None else f"not YAML {_at(error.problem_mark)}"
        )
    except yaml.YAMLError:
        problem = "not YAML"
    raise _refused(what, problem)


def _check(text: str, what: str) -> None:
    """Refuse, before anything recurses into it, what is too deep or refers to another part."""
    import yaml

    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise _refused(what, f"an alias {_at(event.start_mark)}")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAXIMUM_DEPTH:
            raise _refused(what, f"nested deeper than {MAXIMUM_DEPTH} {_at(event.start_mark)}")


def _spelled(node: "yaml.Node", what: str) -> str:
    import yaml

    if isinstance(node, yaml.MappingNode) and node.tag == f"{_TAG}map":
        members = (f"{_key(key, what)}:{_spelled(value, what)}" for key, value in node.value)
        return f"{{{','.join(members)}}}"
    if isinstance(node, yaml.SequenceNode) and node.tag == f"{_TAG}seq":
        return f"[{','.join(_spelled(item, what) for item in node.value)}]"
    if node.tag in _TEXTS:
        return canonical_bytes(node.value).decode()
    if node.tag not in _OTHERS:
        raise _refused(what, f"a tag that JSON has no word for {_at(node.start_mark)}")
    try:
        return canonical_bytes(yaml.SafeLoader("").construct_object(node)).decode()
    except (ValueError, KeyError):
        pass
    raise _refused(what, f"a value that JSON has no word for {_at(node.start_mark)}")


def _key(node: "yaml.Node", what: str) -> str:
    if node.tag != f"{_TAG}str":
        raise _refused(what, f"a key that is not a text {_at(node.start_mark)}")
    return _spelled(node, what)


def _at(mark: "yaml.Mark") -> str:
    return f"at line {mark.line + 1}, column {mark.column + 1}"


def _refused(what: str, message: str) -> InvalidPolicyError:
    return InvalidPolicyError(what, [Problem(kind="invalid_yaml", message=message)])
