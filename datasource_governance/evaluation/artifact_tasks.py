"""What a child process does with an artifact: describe it, validate it, or read some of it.

Each takes the open file and arguments in JSON, and answers in JSON or as an Arrow IPC stream.

Source: SPEC sections 3, "Hostile files", and 10.
"""

import tempfile
from collections.abc import Mapping
from typing import Any, BinaryIO

from datasource_governance.domain.artifact import MediaType
from datasource_governance.domain.canonical import canonical_bytes
from datasource_governance.domain.quality_policy import parse_quality_policy
from datasource_governance.errors import EvaluationError
from datasource_governance.evaluation.detect import logical_type
from datasource_governance.sources.child import write_table
from datasource_governance.sources.limits import TOO_LARGE, plain_bytes
from datasource_governance.sources.open_files import read_footer, scan_open
from datasource_governance.sources.refusal import refused

Arguments = Mapping[str, Any]


def describe(file: BinaryIO, arguments: Arguments, answer: BinaryIO) -> None:
    """Answer with the fields, the rows and the nulls that the file's own account has."""
    footer = read_footer(file, MediaType(arguments["media_type"]))
    described = {
        "fields": [[field.name, str(logical_type(field))] for field in footer.schema],
        "row_count": footer.row_count,
        "with_nulls": sorted(footer.with_nulls),
        "without_nulls": sorted(footer.without_nulls),
    }
    answer.write(canonical_bytes(described))


def validate(file: BinaryIO, arguments: Arguments, answer: BinaryIO) -> None:
    """Answer with the validation of all rows, compared with no other schema."""
    from datasource_governance.evaluation.evaluate import validate_open

    # Keys that must be unique may need as much room as the rows.
    tempfile.tempdir = arguments["folder"]
    policy = parse_quality_policy(arguments["policy"])
    media_type, memory_bytes = MediaType(arguments["media_type"]), arguments["memory_bytes"]
    try:
        validation = validate_open(policy, file, media_type, memory_bytes=memory_bytes)
    except EvaluationError as error:
        raise refused("content", error.code, str(error)) from None
    answer.write(canonical_bytes(validation.document()))


def read(file: BinaryIO, arguments: Arguments, answer: BinaryIO) -> None:
    """Answer with all rows of some columns, or of all, unless they take more than is allowed."""
    import pyarrow as pa

    most = arguments["maximum_bytes"]
    batches = scan_open(file, MediaType(arguments["media_type"]), columns=arguments["columns"])
    tables, size = [batches.schema.empty_table()], 0
    for table in batches:
        size += plain_bytes(table)
        if size > most:
            raise refused("content", TOO_LARGE, f"more than {most} bytes in memory")
        tables.append(table)
    write_table(pa.concat_tables(tables), answer)
