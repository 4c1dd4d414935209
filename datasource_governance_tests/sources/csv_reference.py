"""Strict CSV, one character after the other: slow, and plainly what the specification says."""

LINE_ENDS = ("\r\n", "\n", "\r")


class MalformedError(ValueError):
    """A quote is not closed, or text follows a closing quote."""


def parse_records(text, delimiter=","):
    """Return lists of cells; a blank line is an empty list."""
    records, record, place = [], [], 0
    while place < len(text):
        started_quoted = text[place] == '"'
        cell, place = quoted(text, place + 1) if started_quoted else plain(text, place, delimiter)
        record.append(cell)
        end = line_end(text, place)
        if place < len(text) and text[place] == delimiter:
            place += 1
            if place < len(text):
                continue
            record.append("")
        elif place < len(text) and not end:
            raise MalformedError
        is_blank = record == [""] and not started_quoted
        records.append([] if is_blank else record)
        record, place = [], place + len(end)
    return records


def quoted(text, place):
    cell = ""
    while place < len(text):
        if text[place] != '"':
            cell += text[place]
            place += 1
        elif text[place : place + 2] == '""':
            cell += '"'
            place += 2
        else:
            return cell, place + 1
    raise MalformedError


def plain(text, place, delimiter):
    start = place
    while place < len(text) and text[place] not in f"\r\n{delimiter}":
        place += 1
    return text[start:place], place


def line_end(text, place):
    return next((end for end in LINE_ENDS if text.startswith(end, place)), "")


def parse_table(text, delimiter=","):
    """Return header and rows of cells, None for empty; or the kind of the first refusal."""
    records = parse_records(text, delimiter)
    while records and not records[0]:
        records.pop(0)
    while records and not records[-1]:
        records.pop()
    if not records:
        return "no_header"
    header, *rest = records
    if len(header) == 1:
        rest = [record or [""] for record in rest]
    rows = [record for record in rest if record]
    if any(len(row) != len(header) for row in rows):
        return "ragged_row"
    return header, [[cell or None for cell in row] for row in rows]
