"""How far receivers got with the outbox, in Postgres. None of it is told to evidence.

An outbox number that is visible has all earlier ones of its datasource visible: a number is taken
under the datasource's lock, and were it not, the unique key would make the second writer wait for
the first. So a position never steps over an event that commits later.

Source: ports.outbox.Deliveries, which says what each method promises.
"""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Select, and_, func, insert, select, update
from sqlalchemy.dialects import postgresql

from datasource_governance.domain.event import Event
from datasource_governance.domain.outbox import Backlog, DeadLetter, Position
from datasource_governance.persistence import tables
from datasource_governance.persistence.rows import Row, Rows

_EVENT = [
    tables.outbox.c[name].label(f"event_{name}")
    for name in ("id", "datasource", "type", "body", "created_at")
]


class PostgresDeliveries:
    """See ports.outbox.Deliveries."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def backlogs(self, receiver: str) -> Sequence[Backlog]:
        return [_backlog(receiver, row) for row in self._rows.all(self._backlogs(receiver))]

    def position(self, receiver: str, datasource: str) -> Position:
        table = tables.outbox_position
        row = self._rows.first(self._rows.of(table, receiver=receiver, datasource=datasource))
        if row is None:
            return Position(receiver=receiver, datasource=datasource)
        return Position(**{name: value for name, value in row.items() if name != "tenant"})

    def keep(self, position: Position) -> None:
        table = tables.outbox_position
        moved = {
            "delivered": position.delivered,
            "attempts": position.attempts,
            "retry_at": position.retry_at,
        }
        self._rows.connection.execute(
            postgresql.insert(table)
            .values(
                tenant=self._rows.tenant,
                receiver=position.receiver,
                datasource=position.datasource,
                **moved,
            )
            .on_conflict_do_update(index_elements=table.primary_key, set_=moved)
        )

    def set_aside(self, letter: DeadLetter) -> None:
        self._rows.connection.execute(
            insert(tables.dead_letter).values(
                tenant=self._rows.tenant,
                receiver=letter.receiver,
                event=letter.event.id,
                attempts=letter.attempts,
                problem=letter.problem,
                at=letter.at,
            )
        )

    def dead_letters(self) -> Sequence[DeadLetter]:
        table = tables.dead_letter
        query = self._dead().order_by(table.c.at, table.c.event, table.c.receiver)
        return [_dead_letter(row) for row in self._rows.all(query)]

    def dead_letter(self, receiver: str, event: str) -> DeadLetter:
        table = tables.dead_letter
        query = self._dead().where(table.c.receiver == receiver, table.c.event == event)
        return _dead_letter(
            self._rows.one(query, f"dead letter {event!r} of receiver {receiver!r}")
        )

    def resolve(self, letter: DeadLetter, now: datetime) -> None:
        table = tables.dead_letter
        named = self._rows.mine(table, receiver=letter.receiver, event=letter.event.id)
        self._rows.connection.execute(update(table).where(named).values(accepted_at=now))

    def _backlogs(self, receiver: str) -> Select[tuple[object, ...]]:
        source, event, place = tables.datasource, tables.outbox, tables.outbox_position
        events = and_(self._rows.mine(event), event.c.datasource == source.c.id)
        delivered = func.coalesce(place.c.delivered, 0)
        # Subqueries of one value each are looked up in the index by datasource and number, so that
        # this costs the same however many events there are. Not `number = delivered + 1`: an
        # addition can fail and tell of rows, so row-level security keeps it away from the index.
        last = select(func.coalesce(func.max(event.c.number), 0)).where(events)
        since = (
            select(event.c.created_at)
            .where(events, event.c.number > delivered)
            .order_by(event.c.number)
            .limit(1)
        )
        return (
            select(
                source.c.id.label("datasource"),
                delivered.label("delivered"),
                func.coalesce(place.c.attempts, 0).label("attempts"),
                place.c.retry_at,
                last.scalar_subquery().label("last"),
                since.scalar_subquery().label("since"),
            )
            .join_from(
                source,
                place,
                and_(self._rows.mine(place, receiver=receiver), place.c.datasource == source.c.id),
                isouter=True,
            )
            .where(self._rows.mine(source))
            .order_by(source.c.id)
        )

    def _dead(self) -> Select[tuple[object, ...]]:
        letter, event = tables.dead_letter, tables.outbox
        columns = (letter.c.receiver, letter.c.attempts, letter.c.problem, letter.c.at)
        return (
            select(*columns, *_EVENT)
            .join_from(letter, event, and_(self._rows.mine(event), event.c.id == letter.c.event))
            .where(self._rows.mine(letter), letter.c.accepted_at.is_(None))
        )


def _backlog(receiver: str, row: Row) -> Backlog:
    return Backlog(
        position=Position(
            receiver=receiver,
            datasource=row["datasource"],
            delivered=row["delivered"],
            attempts=row["attempts"],
            retry_at=row["retry_at"],
        ),
        waiting=row["last"] - row["delivered"],
        since=row["since"],
    )


def _dead_letter(row: Row) -> DeadLetter:
    return DeadLetter(
        receiver=row["receiver"],
        event=Event(**{column.name.removeprefix("event_"): row[column.name] for column in _EVENT}),
        attempts=row["attempts"],
        problem=row["problem"],
        at=row["at"],
    )
