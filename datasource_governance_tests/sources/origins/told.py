"""Functions that origins are read by, as a project would have them."""

import sys

import pandas as pd
import pyarrow as pa

from datasource_governance import NOT_MODIFIED, OriginData
from datasource_governance.errors import GovernanceError

CANARY = "zq-canary-7"


def conditional(version):
    if version == "v1":
        return NOT_MODIFIED
    return OriginData(data=pa.table({"a": [1, 2]}), version="v1")


def frame(_version):
    return OriginData(data=pd.DataFrame({"a": [1, 2]}))


def unchanged(_version):
    return NOT_MODIFIED


def failing(_version):
    value = CANARY
    raise ValueError(value)


def failing_as_ours(_version):
    raise GovernanceError(CANARY, code=CANARY)


def leaving(_version):
    sys.exit(CANARY)


def nothing(_version): ...


def rows(_version):
    return [{"a": CANARY}]


def list_in_frame(_version):
    return OriginData(data=[CANARY])


def blank_version(_version):
    return OriginData(data=pa.table({"a": [1]}), version="")


def long_version(_version):
    return OriginData(data=pa.table({"a": [1]}), version="v" * 1001)


def longest_version(_version):
    return OriginData(data=pa.table({"a": [1]}), version="v" * 1000)


def unprintable_version(_version):
    return OriginData(data=pa.table({"a": [1]}), version="v\n1")


def unreadable_object(_version):
    return OriginData(data=pd.DataFrame({"a": [CANARY, object()]}))


NO_FUNCTION = CANARY
