"""Reproducible damaged copies of profiles of other tools, as tacho import reads them: the seed decides what is damaged and how.

Of texts (folded stacks, JSON) tokens are changed, so that most mutants still parse and say something wrong; of pprof's
messages fields are changed and the lengths around them made right again. Any may be cut, or have bytes changed.
"""
import gzip
import random
import re

from pprof_profile import encoded, varint

TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|[\[\]{}:,;]|\b(?:null|true|false)\b|[ \n]')
NUMBERS = [b"0", b"-1", b"1", b"0.5", b"1e308", b"1e999", b"-0.0", b"4294967295", b"4294967296", b"9223372036854775807", b"9223372036854775808",
           b"-9223372036854775808", b"18446744073709551615", b"18446744073709551616", b"1" * 400, b"NaN", b"0x10"]
VALUES = [b"null", b"true", b"[]", b"{}", b'""', b"[[]]", b'{"id": 1}', b'"7"', b'"\\u0000"', b'"\\ud800"', b'"\xff\x1b"', b'"' + b"n" * 70000 + b'"']
TEXTS_OF_JSON = [b'""', b'"a;b 3"', b'"\\u0000"', b'"\\u202e\\ud800"', b'"' + b"n" * 5000 + b'"', b'"[heap]"', b'"/srv/lib.so"', b'"nanoseconds"', b'"(idle)"']
MARKS = [b"{", b"}", b"[", b"]", b":", b",", b";", b'"', b"\n", b" ", b"\0", b"\r\n"]
WORDS = [0, 1, 2, 7, 0x7f, 0x80, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff, 1 << 32, 1 << 47, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]
# Fields that are messages: of pprof's Profile (0), and of those in its fields 2 (a sample: labels) and 4 (a location: lines).
MESSAGES = {0: {1, 2, 3, 4, 5, 11}, 2: {3}, 4: {4}}


# Kinds for any bytes: functions of (bytes, random numbers).

def cut(data, random_):
    return data[:random_.randrange(len(data))]


def bits(data, random_):
    broken = bytearray(data)
    for _ in range(random_.randrange(1, 9)):
        broken[random_.randrange(len(broken))] ^= 1 << random_.randrange(8)
    return bytes(broken)


def without_part(data, random_):
    at = random_.randrange(len(data))
    return data[:at] + data[at + random_.choice([1, 2, 8, 64, 1024]):]


def doubled_part(data, random_):
    at, end = sorted(random_.randrange(len(data) + 1) for _ in range(2))
    return data[:end] + data[at:end] + data[end:] if end - at < 1 << 20 else data


ANY = [cut, bits, without_part, doubled_part]


# Kinds for texts.

def with_token(data, random_, tokens, new):
    if not tokens:
        return data
    token = random_.choice(tokens)
    return data[:token.start()] + new + data[token.end():]


def number(data, random_):
    return with_token(data, random_, [one for one in TOKEN.finditer(data) if one[0][:1] in b"-0123456789"], random_.choice(NUMBERS))


def value(data, random_):
    return with_token(data, random_, [one for one in TOKEN.finditer(data) if one[0][:1] in b'"-0123456789ntf'], random_.choice(VALUES))


def text(data, random_):
    return with_token(data, random_, [one for one in TOKEN.finditer(data) if one[0][:1] == b'"'], random_.choice(TEXTS_OF_JSON))


def small_number(data, random_):
    return with_token(data, random_, [one for one in TOKEN.finditer(data) if one[0][:1] in b"-0123456789"], b"%d" % random_.randrange(-1, 6))


def mark(data, random_):
    return with_token(data, random_, list(TOKEN.finditer(data)), random_.choice(MARKS))


def swapped(data, random_):
    tokens = list(TOKEN.finditer(data))
    if len(tokens) < 2:
        return data
    one, other = sorted(random_.sample(range(len(tokens)), 2))
    one, other = tokens[one], tokens[other]
    return data[:one.start()] + other[0] + data[one.end():other.start()] + one[0] + data[other.end():]


def nested(data, random_):
    at = random_.randrange(len(data))
    return data[:at] + random_.choice([b"[", b'{"a":', b"f;"]) * random_.choice([100, 10000, 200000]) + data[at:]


TEXTS = [number, small_number, small_number, value, text, text, mark, swapped, nested]

# Kinds for pprof: a message is a list of [field, wire type, value], and a value of a message is such a list.


def parsed(data, place=0):
    """The fields of a message; `place` is its key in MESSAGES."""
    found, at = [], 0
    while at < len(data):
        key, at = varint(data, at)
        field, wire = key >> 3, key & 7
        if wire == 0:
            body, at = varint(data, at)
        else:
            size, at = varint(data, at)
            body, at = data[at:at + size], at + size
            if field in MESSAGES.get(place, ()):
                body = parsed(body, field if place == 0 else -1)
        found.append([field, wire, body])
    return found


def written(fields):
    out = bytearray()
    for field, wire, body in fields:
        out += encoded(field << 3 | wire)
        if isinstance(body, int):
            out += encoded(body)
        else:
            body = written(body) if isinstance(body, list) else body
            out += body if wire in (1, 5) else encoded(len(body)) + body
    return bytes(out)


def lists_of(fields):
    """The message and all messages in it."""
    return [fields] + [one for _, _, body in fields if isinstance(body, list) for one in lists_of(body)]


def change_number(fields, random_):
    numbers = [one for fields_ in lists_of(fields) for one in fields_ if isinstance(one[2], int)]
    if numbers:
        one = random_.choice(numbers)
        one[2] = random_.choice([random_.choice(WORDS), one[2] + 1, max(one[2] - 1, 0), random_.choice(numbers)[2]])


def change_bytes(fields, random_):
    texts = [one for fields_ in lists_of(fields) for one in fields_ if isinstance(one[2], bytes)]
    if texts:
        one = random_.choice(texts)
        one[2] = random_.choice([b"", b"\0" * 8, b"\xff" * 10, b"\x80" * 40, b"n" * 70000, one[2] + one[2], random_.choice(texts)[2]])


def drop_field(fields, random_):
    inside = random_.choice([one for one in lists_of(fields) if one])
    del inside[random_.randrange(len(inside))]


def double_field(fields, random_):
    inside = random_.choice([one for one in lists_of(fields) if one])
    inside += [random_.choice(inside)] * random_.choice([1, 2, 1000])


def renumber_field(fields, random_):
    random_.choice(random_.choice([one for one in lists_of(fields) if one]))[0] = random_.choice([*range(1, 16), 100, 1 << 28])


def shuffle_fields(fields, random_):
    random_.shuffle(random_.choice(lists_of(fields)))


def other_wire_type(fields, random_):
    one = random_.choice(random_.choice([one for one in lists_of(fields) if one]))
    one[1] = random_.choice([0, 1, 2, 3, 5, 6, 7])
    if one[1] in (1, 5):
        one[2] = random_.randbytes(8 if one[1] == 1 else 4)
    elif isinstance(one[2], int) != (one[1] == 0):
        one[2] = random_.choice(WORDS) if one[1] == 0 else random_.randbytes(6)


FIELDS = [change_number, change_number, change_bytes, drop_field, double_field, renumber_field, shuffle_fields, other_wire_type]


def of_pprof(kind):
    def mutant(data, random_):
        fields = parsed(data)
        kind(fields, random_)
        return written(fields)
    mutant.__name__ = kind.__name__
    return mutant


PPROF = [of_pprof(kind) for kind in FIELDS]


def packed(data, random_):
    """The same in gzip, with damage in the packed bytes."""
    return random_.choice(ANY)(gzip.compress(data, mtime=0), random_)


def mutants(profiles, format_, count, seed):
    """(label, bytes), `count` of them; profiles is {name: bytes}, not packed."""
    random_ = random.Random(f"{format_} {seed}")
    kinds = (PPROF if format_ == "pprof" else TEXTS) + ANY + [packed]
    made = 0
    while made < count:
        name = random_.choice(sorted(profiles))
        broken, chosen = profiles[name], random_.choices(kinds, k=random_.choice([1, 1, 1, 2, 3]))
        try:
            for kind in chosen:
                broken = kind(broken, random_)
        except (IndexError, ValueError):  # a second change of what the first left
            continue
        if broken == profiles[name]:
            continue
        made += 1
        yield f"{format_}: {name}, {', '.join(kind.__name__ for kind in chosen)}, number {made} of seed {seed}", broken
