"""Watches in Postgres: claims without overlap, rhythms without drift."""

from collections import defaultdict
from datetime import UTC, datetime, timedelta

import pytest

from datasource_governance.domain.contract import CheckKind
from datasource_governance.domain.contract_judgement import next_planned
from datasource_governance_tests.domain.contracts import odcs

START = datetime(2026, 12, 1, tzinfo=UTC)
MONTH = timedelta(days=30)
TICK = timedelta(minutes=5)
CONTRACTS = 50
RHYTHMS = {
    CheckKind.FRESHNESS: timedelta(minutes=15),
    CheckKind.SCHEMA_DRIFT: timedelta(minutes=60),
    CheckKind.QUALITY: timedelta(minutes=360),
    CheckKind.AVAILABILITY: timedelta(minutes=5),
}


@pytest.fixture
def watched(world):
    def watch(count, **given):
        world.set_clock(START)
        documents = [odcs(id=f"contract-{number:02}", **given) for number in range(count)]
        world.declare(kind="published", contracts=documents)
        return world

    return watch


class Daemon:
    """Claims what is due, and gives back what it ran: what it does in between takes no time."""

    def __init__(self, world):
        self.work = world.application.work()
        self.ran = defaultdict(list)

    def claim(self, now, number):
        self.work.__enter__()
        self.claims = self.work.contracts.claim(f"{number}", now, 500)
        return len(self.claims)

    def end(self, now, *, dies=False):
        """Commit the claims; then give them back, unless it dies meanwhile."""
        self.work.commit()
        self.work.__exit__(None, None, None)
        if dies or not self.claims:
            return
        with self.work as work:
            for claim in self.claims:
                next_due = next_planned(claim.planned_for, claim.interval, now)
                work.contracts.give_back(claim, next_due)
                self.ran[claim.contract, claim.kind].append(claim.planned_for)
            work.commit()


def test_a_month_of_fifty_contracts_misses_and_doubles_nothing(watched):
    world = watched(CONTRACTS)
    daemons = [Daemon(world), Daemon(world)]
    deaths = 0

    for tick in range(MONTH // TICK):
        now = START + tick * TICK
        # Whoever dies is replaced by another process, which knows nothing of what came before.
        dies = tick % 97 == 5
        deaths += both_tick(daemons, now, tick, dies=dies)
        if dies:
            both_tick(daemons, now + timedelta(minutes=2), tick, dies=False)

    assert deaths > 50
    ran = defaultdict(list)
    for daemon in daemons:
        for key, instants in daemon.ran.items():
            ran[key] += instants
    assert len(ran) == CONTRACTS * len(RHYTHMS)
    for (_, kind), instants in ran.items():
        assert sorted(instants) == [
            START + times * RHYTHMS[kind] for times in range(MONTH // RHYTHMS[kind])
        ]


def both_tick(daemons, now, tick, *, dies):
    """Let both claim at the same time; tell whether one died with claims in its hands."""
    first, second = daemons
    claimed = first.claim(now, f"{tick}-a")
    second.claim(now, f"{tick}-b")
    first.end(now, dies=dies)
    second.end(now)
    return dies and claimed > 0


def test_another_version_is_due_at_once_and_the_same_one_keeps_its_rhythm(watched):
    world = watched(1)
    later = START + timedelta(minutes=2)
    daemon = Daemon(world)
    daemon.claim(START, 1)
    daemon.end(START)
    world.set_clock(later)

    world.declare(kind="published", contracts=[odcs(id="contract-00")])
    assert daemon.claim(later, 2) == 0
    daemon.end(later)

    tightened = odcs(id="contract-00", version="1.0.1", tags=["reviewed"])
    world.declare(kind="published", contracts=[tightened])
    assert daemon.claim(later, 3) == len(RHYTHMS)
    daemon.end(later)
