"""Make a new input of an old one: a few edits, each of which a parser may not expect."""

import json
import struct
from collections.abc import Callable, Sequence
from random import Random

from datasource_governance_tests.fuzzing.campaign import Sample

MAXIMUM_BYTES = 16 * 1024
"""Small inputs are judged fast, and say as much; time limits are those of small inputs."""

_EDITS = (1, 1, 1, 2, 3, 5)
_BYTES = (0, 1, 0x7F, 0x80, 0xFE, 0xFF)
_WORDS = (0, 1, -1, 2**7, 2**15, 2**31 - 1, -(2**31), 2**20)
_LONGEST_CUT = 64

Edit = Callable[[bytes, int, Random], bytes]
Breed = Callable[[Sample, Sequence[Sample], Random], bytes]


def breed_bytes(sample: Sample, pool: Sequence[Sample], random: Random) -> bytes:
    """Damage bytes without knowing what they mean."""
    content = sample.content
    for _ in range(random.choice(_EDITS)):
        place = random.randrange(len(content) + 1)
        content = random.choice(_BYTE_EDITS)(content, place, random)
    if random.random() < 0.05:
        other = random.choice(pool).content
        content = content[: random.randrange(len(content) + 1)] + other[len(content) // 2 :]
    return content[:MAXIMUM_BYTES]


def breed_text(pieces: Sequence[bytes]) -> Breed:
    """Return a breeder that puts pieces of a language into a text, and keeps it one, mostly."""

    def breed(sample: Sample, _pool: Sequence[Sample], random: Random) -> bytes:
        content = sample.content
        for _ in range(random.choice(_EDITS)):
            place = random.randrange(len(content) + 1)
            if random.random() < 0.6:
                content = content[:place] + random.choice(pieces) + content[place:]
            else:
                content = random.choice((_cut, _repeat, _move))(content, place, random)
        return content[:MAXIMUM_BYTES]

    return breed


def _flip(content: bytes, place: int, random: Random) -> bytes:
    return _over(
        content, place, bytes(byte ^ 1 << random.randrange(8) for byte in content[place:][:1])
    )


def _byte(content: bytes, place: int, random: Random) -> bytes:
    return _over(content, place, bytes([random.choice((*_BYTES, random.randrange(256)))]))


def _word(content: bytes, place: int, random: Random) -> bytes:
    form = random.choice(("<i", ">i", "<q"))
    return _over(content, place // 4 * 4, struct.pack(form, random.choice(_WORDS)))


def _cut(content: bytes, place: int, random: Random) -> bytes:
    return content[:place] + content[place + random.randint(1, _LONGEST_CUT) :]


def _end(content: bytes, place: int, random: Random) -> bytes:
    return content[:place] if random.random() < 0.2 else _cut(content, place, random)


def _repeat(content: bytes, place: int, random: Random) -> bytes:
    piece = content[place : place + random.randint(1, _LONGEST_CUT)]
    return content[:place] + piece * random.randint(2, 4) + content[place + len(piece) :]


def _move(content: bytes, place: int, random: Random) -> bytes:
    start = random.randrange(len(content) + 1)
    return _over(content, place, content[start : start + random.randint(1, _LONGEST_CUT)])


def _over(content: bytes, place: int, piece: bytes) -> bytes:
    return content[:place] + piece + content[place + len(piece) :]


_BYTE_EDITS: tuple[Edit, ...] = (_flip, _flip, _byte, _byte, _word, _cut, _end, _repeat, _move)


def breed_json(words: Sequence[str], atoms: Sequence[str]) -> Breed:
    """Return a breeder of JSON texts that knows the words of a language.

    Args:
        words: texts that are keys or values of the language.
        atoms: JSON texts of values that are hard to read.
    """
    literals = [*map(json.dumps, words), *atoms]

    def breed(sample: Sample, pool: Sequence[Sample], random: Random) -> bytes:
        document = _document(sample.content)
        if document is None or random.random() < 0.25:
            return _spliced(breed_bytes(sample, pool, random), literals, random)
        for _ in range(random.choice(_EDITS)):
            other = random.choice(_nodes(_document(random.choice(pool).content)))
            document = _grafted(document, literals, other, random)
        return _written(document, random)[:MAXIMUM_BYTES]

    return breed


def _spliced(content: bytes, literals: Sequence[str], random: Random) -> bytes:
    place = random.randrange(len(content) + 1)
    return (
        content[:place] + random.choice(literals).encode(errors="surrogatepass") + content[place:]
    )


class _Object(list):
    """The members of an object, in which a key may be repeated."""


class _Literal(str):
    """A value as it is to be written."""

    __slots__ = ()


def _document(content: bytes) -> object:
    try:
        return json.loads(
            content, object_pairs_hook=_Object, parse_int=_Literal, parse_float=_Literal
        )
    except (ValueError, RecursionError):
        return None


def _nodes(value: object) -> list[object]:
    members = [item for _, item in value] if isinstance(value, _Object) else value
    below = members if isinstance(members, list) else []
    return [value, *(node for item in below for node in _nodes(item))]


def _grafted(value: object, literals: Sequence[str], other: object, random: Random) -> object:
    """Return the document with one value or key put in, taken away, repeated or replaced."""
    if not isinstance(value, list) or not value or random.random() < 0.1:
        literal = _Literal(random.choice(literals))
        return random.choice((literal, other, [value], _Object([["x", value]])))
    place = random.randrange(len(value))
    before, here, after = value[:place], value[place], value[place + 1 :]
    if random.random() < 0.4:
        return type(value)([*before, *random.choice(([], [here, here], [here, *before])), *after])
    if not isinstance(value, _Object):
        return [*before, _grafted(here, literals, other, random), *after]
    key, member = here
    within = [key, _grafted(member, literals, other, random)]
    renamed, added = ([_Literal(random.choice(literals)), one] for one in (member, other))
    return _Object([*before, *random.choice(([within], [renamed], [here, added])), *after])


def _written(value: object, random: Random) -> bytes:
    return _text(value, random.random() < 0.1).encode(errors="surrogatepass")


def _text(value: object, escaped: bool) -> str:
    if isinstance(value, _Literal):
        return str(value)
    if isinstance(value, _Object):
        return "{" + ",".join(f"{_text(k, escaped)}:{_text(v, escaped)}" for k, v in value) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_text(item, escaped) for item in value) + "]"
    return json.dumps(value, ensure_ascii=escaped)
