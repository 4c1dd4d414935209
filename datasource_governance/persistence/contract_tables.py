"""The tables of contracts: checks and violations, which are governed, and watches, which are not.

Source: persistence.tables, where all tables are together.
"""

from sqlalchemy import ARRAY, BigInteger, Double, Integer, LargeBinary, Text

from datasource_governance.persistence.columns import (
    INSTANT,
    key,
    mutable,
    optional,
    required,
    table,
)

contract_check = table(
    "contract_check",
    key("id"),
    required("datasource"),
    required("contract"),
    required("kind"),
    optional("planned_for", INSTANT),
    required("started_at", INSTANT),
    required("finished_at", INSTANT),
    required("status"),
    optional("severity"),
    required("body", LargeBinary),
)

contract_violation = table(
    "contract_violation",
    key("id"),
    required("datasource"),
    required("contract"),
    required("kind"),
    required("severity"),
    required("enforcement"),
    required("message"),
    required("opened_by"),
    required("opened_at", INSTANT),
)

violation_resolution = table(
    "violation_resolution",
    key("violation"),
    optional("resolved_by"),
    required("resolved_at", INSTANT),
)

contract_watch = table(
    "contract_watch",
    key("datasource"),
    key("contract"),
    key("kind"),
    mutable("contract_hash", Text),
    mutable("interval_seconds", Integer),
    mutable("timeout_seconds", Integer),
    mutable("next_due", INSTANT, nullable=True),
    mutable("current", Text, nullable=True),
    mutable("claim", Text, nullable=True),
    mutable("claimed_until", INSTANT, nullable=True),
    mutable("checks", BigInteger),
    mutable("failures", BigInteger),
    mutable("errors", BigInteger),
    mutable("seconds", Double),
    mutable("durations", ARRAY(BigInteger)),
    mutable("consecutive_failures", Integer),
    mutable("last_status", Text, nullable=True),
    mutable("last_severity", Text, nullable=True),
    mutable("last_at", INSTANT, nullable=True),
    mutable("last_used", Integer, nullable=True),
    mutable("last_score", Double, nullable=True),
    mutable("violation", Text, nullable=True),
)
