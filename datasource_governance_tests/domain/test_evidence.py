from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasource_governance.domain.canonical import canonical_bytes, load_canonical
from datasource_governance.domain.evidence import (
    Break,
    BreakKind,
    Head,
    RowCommitment,
    check_unbroken,
    commit_columns,
    datasource_chain,
    find_chain_breaks,
    find_row_breaks,
    fold_rows,
    genesis,
    link,
    microseconds,
)
from datasource_governance.errors import GuardError
from datasource_governance_tests.domain.lifecycle import MIDDAY, TICK, sha

TENANT, CHAIN = "default", datasource_chain("orders")
START = Head(tenant=TENANT, chain=CHAIN, sequence=0, entry_hash=genesis(TENANT, CHAIN))
CELLS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.text(st.characters(codec="utf-8"), max_size=5)
    | st.binary(max_size=5)
    | st.datetimes(datetime(1, 1, 2), timezones=st.just(UTC))  # noqa: DTZ001 - Hypothesis adds the zone
)


def row(number, immutable="i", mutable="m"):
    return RowCommitment(
        table="stage",
        key=(TENANT, f"s{number}"),
        immutable=immutable and sha(immutable),
        mutable=mutable and sha(mutable),
    )


def chain(length):
    """Return entries in order and the head after them."""
    entries, head = [], START
    for number in range(1, length + 1):
        entry = link(
            head,
            kind="stage.created",
            subject=f"s{number}",
            facts={"number": number},
            rows=[row(number)],
            at=MIDDAY + number * TICK,
        )
        entries.append(entry)
        head = replace(head, sequence=entry.sequence, entry_hash=entry.entry_hash)
    return entries, head


def places(breaks):
    return [(one.kind, one.key[-1]) for one in breaks]


@given(st.integers(0, 6))
def test_an_untouched_chain_has_no_break(length):
    entries, head = chain(length)

    assert find_chain_breaks(entries, head if entries else None) == []


ALTERATIONS = {
    "previous_hash": lambda _: sha("x"),
    "kind": lambda entry: entry.kind + "x",
    "subject": lambda entry: entry.subject + "x",
    "body": lambda entry: entry.body + b" ",
    "at": lambda entry: entry.at + TICK,
    "entry_hash": lambda _: sha("x"),
    "tenant": lambda entry: entry.tenant + "x",
    "chain": lambda entry: entry.chain + "x",
}


@given(st.integers(1, 6), st.data())
@pytest.mark.parametrize("field", ALTERATIONS)
def test_altering_any_field_of_any_entry_is_found_at_that_entry(field, length, data):
    entries, head = chain(length)
    index = data.draw(st.integers(0, length - 1))
    altered = replace(entries[index], **{field: ALTERATIONS[field](entries[index])})

    breaks = find_chain_breaks([*entries[:index], altered, *entries[index + 1 :]], head)

    assert (BreakKind.ALTERED_ENTRY, str(index + 1)) in places(breaks)


@given(st.integers(1, 6), st.data())
def test_any_other_body_is_found_at_its_entry(length, data):
    entries, head = chain(length)
    index = data.draw(st.integers(0, length - 1))
    body = data.draw(st.binary().filter(lambda other: other != entries[index].body))
    altered = replace(entries[index], body=body)

    breaks = find_chain_breaks([*entries[:index], altered, *entries[index + 1 :]], head)

    assert places(breaks) == [(BreakKind.ALTERED_ENTRY, str(index + 1))]


@given(st.integers(1, 6), st.data())
def test_an_entry_rewritten_with_its_hash_is_found_where_the_chain_no_longer_follows(length, data):
    entries, head = chain(length)
    index = data.draw(st.integers(0, length - 1))
    forged = replace(entries[index], subject="forged")
    forged = replace(forged, entry_hash=forged.recomputed_hash())

    breaks = find_chain_breaks([*entries[:index], forged, *entries[index + 1 :]], head)

    last = index == length - 1
    expected = (
        [(BreakKind.WRONG_HEAD, CHAIN)] if last else [(BreakKind.ALTERED_ENTRY, str(index + 2))]
    )
    assert places(breaks) == expected


@given(st.integers(2, 6), st.data())
def test_a_deleted_entry_is_found_in_its_place(length, data):
    entries, head = chain(length)
    index = data.draw(st.integers(0, length - 1))

    breaks = find_chain_breaks([*entries[:index], *entries[index + 1 :]], head)

    assert (BreakKind.GAP, str(index + 1)) in places(breaks)


def test_a_chain_that_is_gone_is_found_by_its_head():
    _, head = chain(3)

    assert places(find_chain_breaks([], head)) == [
        (BreakKind.GAP, "1"),
        (BreakKind.WRONG_HEAD, CHAIN),
    ]


def test_a_chain_without_a_head_or_with_an_older_one_is_found():
    entries, _ = chain(3)
    _, older = chain(2)

    for head in (None, older):
        assert places(find_chain_breaks(entries, head)) == [(BreakKind.WRONG_HEAD, CHAIN)]


@given(st.integers(2, 6), st.data())
def test_the_end_of_a_chain_is_checked_without_its_beginning(length, data):
    entries, head = chain(length)
    first = data.draw(st.integers(2, length))
    rest = entries[first - 1 :]

    assert find_chain_breaks(rest, head, first=first) == []
    assert places(find_chain_breaks(rest, head))[0] == (BreakKind.GAP, "1")
    forged = link(START, kind="k", subject="s", facts={}, rows=[], at=MIDDAY)
    assert (BreakKind.GAP, str(first)) in places(find_chain_breaks([forged], head, first=first))


def test_a_break_is_reported_by_kind_and_place():
    _, head = chain(1)

    assert find_chain_breaks([], head)[0].document() == {
        "kind": "gap",
        "table": "evidence",
        "key": [TENANT, CHAIN, "1"],
        "message": "the head says 1 entries, 0 are there",
    }


def test_no_chain_begins_like_another():
    assert len({genesis(*one) for one in (("a", "bc"), ("ab", "c"), ("a", "b"))}) == 3


def test_what_travels_is_enough_to_recompute_the_hash():
    (entry,), _ = chain(1)

    document = load_canonical(canonical_bytes(entry.document()))

    travelled = replace(
        entry,
        **{name: document[name] for name in ("tenant", "chain", "sequence", "kind", "subject")},
        body=canonical_bytes(document["body"]),
        at=datetime(1970, 1, 1, tzinfo=UTC) + document["at_microseconds"] * TICK,
    )
    assert travelled.recomputed_hash() == document["entry_hash"]


@given(st.dictionaries(st.text("abc", max_size=3), CELLS, max_size=4), st.data())
def test_commitments_of_different_columns_differ(columns, data):
    other = data.draw(st.dictionaries(st.text("abc", max_size=3), CELLS, max_size=4))

    same = commit_columns("t", columns) == commit_columns("t", other)

    assert same == (typed(columns) == typed(other))
    assert commit_columns("t", dict(reversed(columns.items()))) == commit_columns("t", columns)
    assert commit_columns("u", columns) != commit_columns("t", columns)


def typed(columns):
    return {name: (type(value), value) for name, value in columns.items()}


def test_values_that_read_alike_are_committed_to_apart():
    cells = [None, "", b"", False, 0, "0", b"0", "null", "false", MIDDAY, microseconds(MIDDAY)]

    assert len({commit_columns("t", {"a": cell}) for cell in cells}) == len(cells)


def test_an_instant_is_committed_to_whatever_its_zone():
    elsewhere = MIDDAY.astimezone(timezone(timedelta(hours=5, minutes=30)))

    assert commit_columns("t", {"at": elsewhere}) == commit_columns("t", {"at": MIDDAY})


def folded(*rows):
    """Return what is known of rows after entries that speak of one each."""
    committed, head = {}, START
    for one in rows:
        entry = link(head, kind="k", subject="s", facts={}, rows=[one], at=MIDDAY)
        fold_rows(committed, entry)
    return committed


@pytest.mark.parametrize("said_later", [None, "x"])
def test_a_row_keeps_what_it_was_born_with_and_takes_over_what_changes(said_later):
    committed = folded(row(1), row(1, immutable=said_later, mutable="n"))

    assert committed == {("stage", (TENANT, "s1")): (sha("i"), sha("n"))}


def test_a_row_that_no_entry_saw_born_can_never_be_right():
    ((immutable, _),) = folded(row(1, immutable=None)).values()

    assert immutable == ""


@pytest.mark.parametrize(
    ("present", "kinds"),
    [
        ({"s1": ("i", "m")}, []),
        ({}, [BreakKind.MISSING_ROW]),
        ({"s1": ("x", "m")}, [BreakKind.ALTERED_ROW]),
        ({"s1": ("i", "x")}, [BreakKind.ALTERED_ROW]),
        ({"s1": ("i", "m"), "s2": ("i", "m")}, [BreakKind.ORPHAN_ROW]),
        ({"s2": ("i", "m")}, [BreakKind.MISSING_ROW, BreakKind.ORPHAN_ROW]),
    ],
)
def test_a_row_that_is_not_as_evidence_says_is_found(present, kinds):
    rows = {
        ("stage", (TENANT, name)): (sha(immutable), sha(mutable))
        for name, (immutable, mutable) in present.items()
    }

    assert [one.kind for one in find_row_breaks(folded(row(1)), rows)] == kinds


@pytest.mark.parametrize("body", [b"", b"[]", b'{"rows":1}', b'{"rows":[1,{"key":1}]}', b"\xff"])
def test_a_spoiled_body_speaks_of_no_row(body):
    (entry,), _ = chain(1)

    assert list(replace(entry, body=body).rows()) == []


def test_work_does_not_go_on_over_broken_evidence():
    check_unbroken([])
    broken = Break(kind=BreakKind.GAP, table="evidence", key=("a", "1"), message="gone")

    with pytest.raises(GuardError) as caught:
        check_unbroken([broken])

    assert caught.value.code == "evidence_chain_broken"
    assert caught.value.facts["breaks"] == (broken,)


def payload(number=1, **keys):
    return replace(row(number, mutable=None), table="stage_payload", **keys)


def purged(one):
    return replace(one, immutable=None, mutable=None, deleted=True)


def test_that_a_row_was_deleted_is_said_only_where_it_was():
    assert "deleted" not in row(1).document()
    assert purged(payload()).document()["deleted"] is True


@pytest.mark.parametrize("table", ["stage_payload", "materialization_payload"])
def test_a_payload_that_evidence_says_was_purged_may_be_gone_and_not_there(table):
    born = replace(payload(), table=table)
    committed = folded(born, purged(born))

    assert find_row_breaks(committed, {}) == []
    (found,) = find_row_breaks(committed, {(table, born.key): (born.immutable, None)})
    assert found.kind is BreakKind.ORPHAN_ROW
    assert "evidence says it was purged, and it is there" in found.message


def test_a_purge_holds_for_ever():
    committed = folded(payload(), purged(payload()), payload())

    assert list(committed.values()) == [None]


@pytest.mark.parametrize("table", ["stage", "materialization", "evidence", "disposition"])
def test_no_evidence_lets_anything_but_a_payload_be_gone(table):
    born = replace(row(1), table=table)
    committed = folded(born, replace(born, immutable=None, deleted=True))

    assert [one.kind for one in find_row_breaks(committed, {})] == [BreakKind.MISSING_ROW]
