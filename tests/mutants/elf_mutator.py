"""Reproducible damaged copies of ELF files: the seed decides what is damaged and how. 64 bit, little-endian."""
import random
import struct

NASTY = [0, 1, 7, 8, 0x7F, 0x80, 0xFF, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]
HEADER_FIELDS = [(4, "B"), (5, "B"), (16, "H"), (18, "H"), (32, "Q"), (40, "Q"), (52, "H"), (54, "H"), (56, "H"), (58, "H"), (60, "H"), (62, "H")]
PROGRAM_HEADER, SECTION_HEADER = 56, 64
READ_BY_US = (b".debug_", b".eh_frame", b".symtab", b".strtab", b".shstrtab", b".note", b".dynsym")


def section_headers(data):
    """(name, place of the header, offset, size) of each section."""
    table, = struct.unpack_from("<Q", data, 40)
    count, names = struct.unpack_from("<HH", data, 60)
    rows = [(table + SECTION_HEADER * i, *struct.unpack_from("<I20xQQ", data, table + SECTION_HEADER * i)) for i in range(count)]
    texts = rows[names][2]
    return [(data[texts + name:data.index(b"\0", texts + name)], place, offset, size) for place, name, offset, size in rows]


def changed(data, random_, at, form):
    limit = (1 << 8 * struct.calcsize(form)) - 1
    old, = struct.unpack_from("<" + form, data, at)
    new = random_.choice([random_.choice(NASTY), old + random_.choice([-8, -1, 1, 8]), 2 * old, random_.getrandbits(64)]) & limit
    broken = bytearray(data)
    struct.pack_into("<" + form, broken, at, new)
    return bytes(broken)


def header(data, random_):
    return changed(data, random_, *random_.choice(HEADER_FIELDS))


def segment(data, random_):
    table, = struct.unpack_from("<Q", data, 32)
    count, = struct.unpack_from("<H", data, 56)
    return changed(data, random_, table + 4 * random_.randrange(PROGRAM_HEADER * count // 4), "I")


def section(data, random_):
    _, place, _, _ = random_.choice(section_headers(data))
    return changed(data, random_, place + 4 * random_.randrange(SECTION_HEADER // 4), "I")


def read_section(data, random_):
    """(offset, size) of a section that tacho reads."""
    _, _, offset, size = random_.choice([row for row in section_headers(data) if row[0].startswith(READ_BY_US) and row[3] >= 16])
    return offset, size


def begin_of_section(data, random_):
    offset, size = read_section(data, random_)
    return changed(data, random_, offset + 4 * random_.randrange(min(size // 4, 16)), "I")


def inside_section(data, random_):
    offset, size = read_section(data, random_)
    broken = bytearray(data)
    for _ in range(random_.randrange(1, 9)):
        broken[offset + random_.randrange(size)] = random_.choice([0, 0x7F, 0x80, 0xFF, random_.getrandbits(8)])
    return bytes(broken)


def shifted(data, random_):
    """Bytes of a section moved, so that lengths and references in it lead elsewhere."""
    offset, size = read_section(data, random_)
    at, width = offset + random_.randrange(size - 8), random_.choice([1, 4, 8])
    return data[:at] + data[at + width:offset + size] + bytes(width) + data[offset + size:]


def cut(data, random_):
    return data[:random_.randrange(len(data))]


KINDS = [header, segment, section, begin_of_section, begin_of_section, inside_section, inside_section, shifted, cut]


def mutants(files, count, seed):
    """(name, label, bytes), `count` of them; files is {name: bytes}."""
    random_ = random.Random(seed)
    made = 0
    while made < count:
        name = random_.choice(sorted(files))
        kind = random_.choice(KINDS)
        broken = kind(files[name], random_)
        if broken == files[name]:
            continue
        made += 1
        yield name, f"{name}, {kind.__name__}, number {made} of seed {seed}", broken
