"""Defects of which a target must find every one."""

import itertools
import os
import time
from dataclasses import replace

from datasource_governance.domain.quality_policy import parse_quality_policy
from datasource_governance.errors import InvalidPolicyError
from datasource_governance.sources.refusal import refused
from datasource_governance_tests.fuzzing.judging import CANARY, check_refusal

UNDAMAGED = b"a,s\n1,x\n2,y\n"
_serial = itertools.count()


def stumbles_over_a_reserved_key(document):
    if isinstance(document, bytes) and b'"$integer"' in document:
        raise KeyError(document)
    return parse_quality_policy(document)


def quotes_what_is_no_json(document):
    try:
        return parse_quality_policy(document)
    except InvalidPolicyError as error:
        quoted = [replace(one, message=str(document)) for one in error.problems]
    raise InvalidPolicyError("policy", quoted)


def keeps_a_cause(document):
    try:
        return parse_quality_policy(document)
    except InvalidPolicyError as error:
        raise InvalidPolicyError("policy", error.problems) from error


def says_nothing(_document):
    raise InvalidPolicyError("policy", [])


def takes_its_time(document):
    end = time.thread_time() + 0.05
    while time.thread_time() < end:
        pass
    return parse_quality_policy(document)


def hashes_differently(document):
    return replace(parse_quality_policy(document), hash=str(next(_serial)))


def dies_of_damage(sample):
    if sample.content != UNDAMAGED:
        os.abort()
    return ()


def hangs(_sample):
    time.sleep(600)


def fails(sample):
    raise ValueError(sample.content)


def quotes_a_cell(sample):
    check_refusal(refused("a.csv", "malformed_csv", f"{CANARY} is no number"), sample)


def keeps_the_context(sample):
    refusal = refused("a.csv", "malformed_csv", "no number")
    refusal.__context__ = ValueError(sample.content)
    check_refusal(refusal, sample)
