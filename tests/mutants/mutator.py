"""Reproducible damaged copies of captures: the seed decides what is damaged and how.

A kind is a function of (bytes, random numbers) that returns the broken bytes. Those in TOLD break a number that says
where something is or how long: no command may pass over them in silence.
"""
import random
import struct

NASTY = [0, 1, 7, 8, 0x7F, 0x80, 0xFF, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]
HEAD_SIZE, PIPE_SIZE = 104, 16


def is_pipe(data):
    return struct.unpack_from("<Q", data, 8)[0] == PIPE_SIZE


def records(data):
    """(offset, type, size) of every record that stands open in the file."""
    begin, end = (PIPE_SIZE, len(data)) if is_pipe(data) else (lambda at, size: (at, at + size))(*struct.unpack_from("<QQ", data, 40))
    found = []
    while begin + 8 <= end:
        kind, _, size = struct.unpack_from("<IHH", data, begin)
        if size < 8:
            break
        found.append((begin, kind, size))
        begin += size
        if kind == 66:  # TRACING_DATA: its payload follows
            begin += (struct.unpack_from("<I", data, begin - size + 8)[0] + 7) & ~7
    return found


def with_number(data, at, form, value):
    width = 8 * struct.calcsize(form)
    broken = bytearray(data)
    struct.pack_into("<" + form, broken, at, value & ((1 << width) - 1))
    return bytes(broken)


def other_number(random_, old, form):
    limit = (1 << 8 * struct.calcsize(form)) - 1
    new = random_.choice([random_.choice(NASTY), old + random_.choice([-8, -4, -1, 1, 4, 8]), 2 * old]) & limit
    return new if new != old else old ^ 8


def change(data, random_, at, form):
    return with_number(data, at, form, other_number(random_, struct.unpack_from("<" + form, data, at)[0], form))


def header_field(data, random_):
    """Size of the header or of an attr; offset and size of attrs or data. A size of 16 would be a pipe's."""
    if is_pipe(data):
        return None
    broken = change(data, random_, random_.choice([8, 16, 24, 32, 40, 48]), "Q")
    return None if is_pipe(broken) else broken


def section_place(data, random_):
    """Offset or size of a header section. The last section's end is the file's: up to 7 bytes may pad it."""
    if is_pipe(data):
        return None
    at, size = struct.unpack_from("<QQ", data, 40)
    count = sum(bin(word).count("1") for word in struct.unpack_from("<4Q", data, 72))
    field = at + size + 16 * random_.randrange(count) + random_.choice([0, 8])
    broken = change(data, random_, field, "Q")
    old, new = (struct.unpack_from("<Q", text, field)[0] for text in (data, broken))
    return broken if abs(new - old) >= 8 else None


def record_size(data, random_):
    """Size of a record: too small for a header, or reaching into the next ones."""
    at, _, size = random_.choice(records(data))
    return with_number(data, at + 6, "H", random_.choice([0, 1, 7, size + 8, size + 1, 2 * size, 0x7FFF, 0xFFFF]))


def torn(data, random_):
    """Ends somewhere; not where a pipe could end soundly."""
    if is_pipe(data):
        at, _, size = random_.choice(records(data))
        return data[:at + random_.randrange(1, size)]
    return data[:random_.randrange(len(data) - 8)]


def bits(data, random_):
    broken = bytearray(data)
    for _ in range(random_.randrange(1, 9)):
        broken[random_.randrange(len(broken))] ^= 1 << random_.randrange(8)
    return bytes(broken)


def numbers(data, random_):
    form = random_.choice("HIQ")
    width = struct.calcsize(form)
    return with_number(data, random_.randrange(len(data) // width) * width, form, random_.choice(NASTY))


def record_numbers(data, random_):
    """A word of a record's body: counts, sizes, addresses."""
    at, _, size = random_.choice([record for record in records(data) if record[2] >= 16])
    return change(data, random_, at + 8 + 4 * random_.randrange((size - 8) // 4), "I")


def record_type(data, random_):
    at, _, _ = random_.choice(records(data))
    return with_number(data, at, "I", random_.choice([*range(1, 23), *range(64, 85), 200, 5000, 0xFFFFFFFF]))


def cut_out(data, random_):
    at = random_.randrange(len(data))
    return data[:at] + data[at + random_.choice([1, 8, 64, 4096]):]


def doubled(data, random_):
    at = random_.randrange(len(data))
    return data[:at + random_.choice([1, 8, 64, 4096])] + data[at:]


def attribute(data, random_):
    """A word of an event's attribute."""
    if is_pipe(data):
        at, _, size = next(record for record in records(data) if record[1] == 64)
        return change(data, random_, at + 8 + 4 * random_.randrange((size - 8) // 4), "I")
    at, size = struct.unpack_from("<QQ", data, 24)
    return change(data, random_, at + 8 * random_.randrange(size // 8), "Q")


TOLD = [header_field, section_place, record_size, torn]
OTHERS = [bits, numbers, record_numbers, record_type, cut_out, doubled, attribute]


def mutants(captures, count, seed):
    """(label, is told, bytes), `count` of them; captures is {name: bytes}."""
    random_ = random.Random(seed)
    made = 0
    while made < count:
        name = random_.choice(sorted(captures))
        kind = random_.choice(TOLD + OTHERS)
        broken = kind(captures[name], random_)
        if broken is None or broken == captures[name]:
            continue
        made += 1
        yield f"{name}, {kind.__name__}, number {made} of seed {seed}", kind in TOLD, broken
