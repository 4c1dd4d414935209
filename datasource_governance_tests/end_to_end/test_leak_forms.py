"""The search for canaries finds a value in every form that software gives to it."""

import base64
import json
from urllib.parse import quote

import pytest

from datasource_governance_tests.end_to_end.canaries import leaks, new_canary

CANARY = new_canary()
FORMS = {
    "plain": str,
    "in a sentence": lambda value: f"could not convert {value}: no",
    "repr": repr,
    "JSON": lambda value: json.dumps(str(value)),
    "hex": lambda value: str(value).encode().hex(),
    "bytea": lambda value: f"\\x{b'..'.hex()}{str(value).encode().hex().upper()}",
    "URL": lambda value: f"/datasets?cell={quote(str(value), safe='')}",
    "truncated": lambda value: f"{str(value)[:12]}…",
    "bytes": lambda value: repr(str(value).encode()),
    **{
        f"Base64 after {before} bytes": lambda value, before=before: base64.b64encode(
            bytes(before) + str(value).encode() + b"!"
        ).decode()
        for before in range(4)
    },
}


@pytest.mark.parametrize("value", CANARY.values(), ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_value_is_found_in_every_form(form, value):
    assert leaks({"place": form(value)}, CANARY.values()) == {"place": {type(value).__name__}}


def test_a_number_is_found_when_it_was_rounded():
    assert leaks({"place": f"{float(CANARY.number)}"}, CANARY.values()) == {"place": {"int"}}


def test_other_values_are_not_found():
    others = new_canary()

    assert leaks({"place": f"{others.bait} {others.values()!r}"}, CANARY.values()) == {}
