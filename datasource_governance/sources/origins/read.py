"""Read a declared origin of any kind.

Source: SPEC section 11.
"""

from collections.abc import Mapping

from datasource_governance.domain.csv_options import CsvOptions
from datasource_governance.domain.origin import Origin, PythonOrigin, SqlOrigin
from datasource_governance.errors import InvalidArgumentError
from datasource_governance.sources.origins.address import read_address
from datasource_governance.sources.origins.answer import Answer
from datasource_governance.sources.origins.function import ask_function


def read_origin(
    origin: Origin, csv: CsvOptions, environment: Mapping[str, str], version: str | None = None
) -> Answer | None:
    """Return what an origin says, or None where it is still in the version that is named.

    A query is always run. `environment` has the variable that names its database.

    Raises:
        InvalidArgumentError: the variable is not set, its URL is not of a known database, or there
            is no such function.
        UnreadableSourceError: it cannot be read now, or what it says is refused.
    """
    if isinstance(origin, SqlOrigin):
        return _queried(origin, environment)
    if isinstance(origin, PythonOrigin):
        return ask_function(origin, version)
    return read_address(origin, csv, version)


def _queried(origin: SqlOrigin, environment: Mapping[str, str]) -> Answer:
    from datasource_governance.sources.sql.read import SqlSource, read_sql

    url = environment.get(origin.url_variable)
    if not url:
        raise InvalidArgumentError(
            f"{origin.url_variable} is not set; it is to hold the SQLAlchemy URL of the origin"
        )
    source = SqlSource(url=url, query=origin.query, order_by=origin.order_by)
    rows = read_sql(source)
    return Answer(name="query", table=rows.table, rows_numbered=rows.rows_numbered)
