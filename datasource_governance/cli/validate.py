"""`validate`: one policy over one file, without any server.

Source: SPEC sections 5 and 16.
"""

from pathlib import Path
from typing import Annotated

import typer

from datasource_governance.cli.output import JsonOption, console, counting, print_json
from datasource_governance.cli.render import change_table, coloured, rule_table
from datasource_governance.domain.quality_policy import parse_quality_policy
from datasource_governance.domain.schema_document import parse_declared_types, parse_schema
from datasource_governance.domain.validation import Outcome, Validation
from datasource_governance.errors import EXIT_NO, InvalidArgumentError
from datasource_governance.sources.batches import DEFAULT_MEMORY_BYTES
from datasource_governance.sources.limits import MEBIBYTE

PolicyOption = Annotated[Path, typer.Option("--policy", help="Quality policy, a JSON file.")]
MemoryOption = Annotated[
    int, typer.Option(min=1, help="MiB of data to hold in memory; more is read in batches.")
]


def validate(
    data: Annotated[
        str,
        typer.Argument(
            help="A CSV, Parquet or Arrow IPC file, an address with ://, or with --table or "
            "--query the SQLAlchemy URL of a database."
        ),
    ],
    policy: PolicyOption,
    previous_schema: Annotated[
        Path | None, typer.Option(help="JSON list of {name, type, nullable} to compare with.")
    ] = None,
    delimiter: Annotated[str, typer.Option(help="CSV: what separates cells.")] = ",",
    decimal: Annotated[str, typer.Option(help="CSV: the decimal sign.")] = ".",
    encoding: Annotated[str, typer.Option(help="CSV: the encoding.")] = "utf-8",
    schema: Annotated[
        Path | None, typer.Option(help="CSV: JSON list of {name, type} of declared columns.")
    ] = None,
    table: Annotated[
        str | None, typer.Option(help="SQL: a table, its rows numbered in primary-key order.")
    ] = None,
    query: Annotated[str | None, typer.Option(help="SQL: a query.")] = None,
    order_by: Annotated[
        list[str] | None, typer.Option(help="SQL: a column that orders rows; may be repeated.")
    ] = None,
    memory: MemoryOption = DEFAULT_MEMORY_BYTES // MEBIBYTE,
    json: JsonOption = False,
) -> int:
    """Validate a file, table or query against a policy. Exit 0: ready or review, 1: blocked."""
    quality_policy = parse_quality_policy(read_document(policy))
    previous = parse_schema(read_document(previous_schema)) if previous_schema else None
    types = parse_declared_types(read_document(schema)) if schema else {}

    from datasource_governance.domain.csv_options import CsvOptions
    from datasource_governance.evaluation import evaluate

    with counting("{task.completed:,} rows") as on_rows:
        if table is not None or query is not None:
            from datasource_governance.sources.sql.read import SqlSource

            source = SqlSource(data, table=table, query=query, order_by=tuple(order_by or ()))
            validation = evaluate.validate(
                quality_policy, source, previous, memory_bytes=memory * MEBIBYTE, on_rows=on_rows
            )
        else:
            validation = evaluate.validate_file(
                quality_policy,
                data,
                csv=CsvOptions(
                    delimiter=delimiter, decimal=decimal, encoding=encoding, types=types
                ),
                previous_schema=previous,
                memory_bytes=memory * MEBIBYTE,
                on_rows=on_rows,
            )
    if json:
        print_json(validation.document())
    else:
        _show(validation)
    return EXIT_NO if validation.outcome is Outcome.BLOCKED else 0


def read_document(path: Path) -> bytes:
    """Return the bytes of a JSON document.

    Raises:
        InvalidArgumentError: when the file cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        why = error.strerror
    raise InvalidArgumentError(f"{path} cannot be read: {why}")


def _show(validation: Validation) -> None:
    out = console()
    out.print(rule_table([rule.document() for rule in validation.rules]))  # type: ignore[misc]  # JSON values
    if validation.schema_diff is not None and validation.schema_diff.changes:
        out.print(change_table([one.document() for one in validation.schema_diff.changes]))  # type: ignore[misc]  # JSON values
    for notice in validation.notices:
        out.print(f"notice: {notice}", markup=False)
    out.print(
        f"{validation.row_count} rows, policy {validation.policy_version} "
        f"({validation.policy_hash[:12]}), fingerprint {validation.fingerprint[:12]}, "
        f"engine {validation.engine}",
        markup=False,
    )
    out.print(f"outcome: {coloured(validation.outcome)}")
