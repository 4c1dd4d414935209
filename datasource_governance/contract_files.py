"""Read contracts from files: YAML or JSON, as the Open Data Contract Standard has them.

A document is held to the standard's own JSON Schema and models first, then to what is made of it
here.

Source: SPEC section 14; Open Data Contract Standard 3.1.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from datasource_governance.domain.canonical import Json
from datasource_governance.domain.contract import Contract
from datasource_governance.domain.contract_document import parse_contract
from datasource_governance.domain.strict_json import parse_json, pointer
from datasource_governance.errors import InvalidPolicyError, Problem
from datasource_governance.yaml_documents import json_from_yaml


def read_contract(content: bytes, what: str = "contract") -> Contract:
    """Read a contract; `what` names it in messages.

    Raises:
        InvalidPolicyError: with every problem of one kind at once: what is no YAML, what the
            standard refuses (`odcs_invalid`), or what `parse_contract` does.
    """
    return parse_contract(read_odcs(content, what))


def read_odcs(content: bytes, what: str = "contract") -> Mapping[str, Json]:
    """Read a document of the standard, of whatever it is about.

    Raises:
        InvalidPolicyError: as `read_contract`.
    """
    document = parse_json(json_from_yaml(content, what=what), what=what)
    if not isinstance(document, dict):
        raise InvalidPolicyError(what, [Problem(kind="odcs_invalid", message="it is no object")])
    if problems := [*_problems(document)]:
        raise InvalidPolicyError(what, problems)
    return document


def _problems(document: Mapping[str, Json]) -> Iterator[Problem]:
    """Yield what the standard refuses; the words of its libraries quote the document, ours do not.

    Version 3.0 is not held to the schema, which is the newest one's, but to the models alone.
    """
    from open_data_contract_standard.model import OpenDataContractStandard
    from pydantic import ValidationError

    found = []
    if not str(document.get("apiVersion")).startswith("v3.0"):
        found = [
            (tuple(one.absolute_path), str(one.validator))
            for one in _schema().iter_errors(document)
        ]
    try:
        OpenDataContractStandard.model_validate(document)
    except ValidationError as error:
        found += [
            (tuple(one["loc"]), str(one["type"])) for one in error.errors(include_input=False)
        ]
    for place, kind in dict.fromkeys(found):
        message = f"the standard does not allow it ({kind})"
        yield Problem(kind="odcs_invalid", pointer=pointer(*place), message=message)


@cache
def _schema() -> Any:  # noqa: ANN401 - of a library that is imported when it is needed
    import json
    from importlib.resources import files

    from jsonschema.validators import validator_for

    schema = json.loads((files("open_data_contract_standard") / "schema.json").read_bytes())
    return validator_for(schema)(schema)
