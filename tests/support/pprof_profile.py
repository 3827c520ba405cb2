"""Reads and writes profiles of pprof, by the numbers of their fields alone."""
import gzip
from collections import Counter, defaultdict


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7f) << shift
        at, shift = at + 1, shift + 7
        if not data[at - 1] & 0x80:
            return value, at


def fields(data):
    """{number: [values]} of a message; numbers of an unknown wire type end it."""
    found, at = defaultdict(list), 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 1:
            value, at = int.from_bytes(data[at:at + 8], "little"), at + 8
        elif key & 7 == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        else:
            raise ValueError(f"wire type {key & 7}")
        found[key >> 3].append(value)
    return found


def packed(values):
    """The numbers of a repeated field."""
    numbers = []
    for data in values:
        at = 0
        while at < len(data):
            value, at = varint(data, at)
            numbers.append(value)
    return numbers


class Profile:
    """types: [(name, unit)]; samples: [(locations, values, labels)]; locations: {id: [(function, line)]}."""

    def __init__(self, data):
        whole = fields(gzip.decompress(data))
        self.strings = [text.decode() for text in whole[6]]
        text = lambda values: self.strings[values[0]] if values else ""
        self.types = [(text(type_[1]), text(type_[2])) for type_ in map(fields, whole[1])]
        self.default = text(whole[14])
        self.comments = [self.strings[number] for number in whole[13]]
        self.time, self.duration = sum(whole[9]), sum(whole[10])  # ns
        self.mappings = {one[1][0]: {"start": sum(one[2]), "limit": sum(one[3]), "file": text(one[5]), "build_id": text(one[6]),
                                     "has": [sum(one[field]) for field in (7, 8, 9, 10)]} for one in map(fields, whole[3])}
        self.functions = {one[1][0]: {"name": text(one[2]), "system": text(one[3]), "file": text(one[4])}
                          for one in map(fields, whole[5])}
        self.locations, self.places = {}, {}
        for one in map(fields, whole[4]):
            lines = [(line[1][0], sum(line[2])) for line in map(fields, one[4])]
            self.locations[one[1][0]] = [(self.functions[function], line) for function, line in lines]
            self.places[one[1][0]] = (sum(one[2]), sum(one[3]))  # mapping, address
        self.samples = []
        for one in map(fields, whole[2]):
            labels = {text(label[1]): text(label[2]) or sum(label[3]) for label in map(fields, one[3])}
            self.samples.append((packed(one[1]), packed(one[2]), labels))

    def total(self, type_):
        return sum(values[type_] for _, values, _ in self.samples)

    def self_of_functions(self, type_):
        """Sums by the function of the leaf, which is the last line of its location: calls inlined into it are before."""
        sums = Counter()
        for locations, values, _ in self.samples:
            sums[self.locations[locations[0]][-1][0]["name"]] += values[type_]
        return +sums


def encoded(number):
    """A varint."""
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7f | 0x80)
        number >>= 7
    return bytes(out + bytes([number]))


def varint_field(field, number):
    """For message(): a number."""
    return field, encoded(number), 0


def message(*parts):
    """The bytes of a message of fields: varint_field(), or (number, bytes)."""
    out = bytearray()
    for field, body, *wire in parts:
        out += encoded(field << 3 | (wire[0] if wire else 2))
        out += body if wire else encoded(len(body)) + body
    return bytes(out)
