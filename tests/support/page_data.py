"""Parser of HTML files of tacho page, without their script; and a generator of pages with other data."""
import base64
import collections
import gzip
import hashlib
import html.parser
import json
import re
import struct

DATA = re.compile(r'<script type="application/octet-stream" class="data">([^<]*)</script>\n')


def numbers(data, count):
    assert not count or len(data) % count == 0, "a part of a number"
    return [sum(data[plane + i] << 8 * k for k, plane in enumerate(range(0, len(data), count))) for i in range(count)]


def signed(data, count):
    return [value >> 1 ^ -(value & 1) for value in numbers(data, count)]


def differences(data, count):
    found, last = [], 0
    for value in signed(data, count):
        last += value
        found.append(last)
    return found


FORMS = {"u": numbers, "w": numbers, "z": signed, "d": differences, "b": lambda data, count: list(data),
         "f": lambda data, count: list(struct.unpack(f"<{count}d", data))}


def planes(values):
    size = (max(values, default=0).bit_length() + 7) // 8
    return b"".join(bytes(value >> 8 * plane & 255 for value in values) for plane in range(size))


class Tags(html.parser.HTMLParser):
    """Every element of a page, its attributes, and the text of scripts and styles."""

    def __init__(self, text):
        super().__init__()
        self.found, self.inside = [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        self.inside.append((tag, dict(attributes), ""))

    def handle_endtag(self, tag):
        self.inside.append(("", {}, ""))

    def handle_data(self, data):
        if self.inside:
            tag, attributes, text = self.inside[-1]
            self.inside[-1] = (tag, attributes, text + data)

    def texts(self, tag, without=()):
        return [text for one, attributes, text in self.inside if one == tag and not set(without) & set(attributes)]


class Page:
    def __init__(self, text):
        self.text = text
        packed = b"".join(base64.b64decode(piece) for piece in DATA.findall(text))
        data = gzip.decompress(packed)
        size = struct.unpack_from("<I", data)[0]
        described = json.loads(data[4:4 + size])
        self.head, at, self.columns = described["head"], 4 + size, {}
        for name, form, count, length in described["columns"]:
            self.columns[name] = FORMS[form](data[at:at + length], count)
            at += length
        assert at == len(data), "bytes after the last column"
        self.columns["node"] = [self.columns["stack.node"][stack] for stack in self.columns["stack"]]
        whole, start, self.texts = bytes(self.columns["text.bytes"]), 0, []
        for length in self.columns["text.size"]:
            self.texts.append(whole[start:start + length].decode())
            start += length

    def events(self):
        return [self.texts[event["name"]] for event in self.head["capture"]["events"]]

    def policy(self):
        return re.search(r'Content-Security-Policy" content="([^"]*)"', self.text)[1]

    def paths(self, nodes):
        """The names of each node's call chain, root first."""
        parents, frames, root = self.columns["node.parent"], self.columns["node.frame"], len(self.columns["node.frame"]) - 1

        def path(node):
            names = []
            while node != root:
                frame = frames[node]
                name = self.texts[self.columns["frame.name"][frame]].replace(";", ":")
                names.append(name.replace(" ", "_") if self.columns["frame.kind"][frame] == ord("t") else name)
                node += parents[node]
            return tuple(reversed(names))
        known = {node: path(node) for node in set(nodes)}
        return [known[node] for node in nodes]

    def folded(self, event=0, keep=lambda sample: True):
        """{names from the root: weight} of the event's samples, as tacho folded has them."""
        columns, sums = self.columns, collections.Counter()
        for i, path in enumerate(self.paths(columns["node"])):
            if columns["event"][i] == event and columns["weight"][i] > 0 and keep(i):
                sums[path] += columns["weight"][i]
        return dict(sums)


def folded_lines(text):
    """{names from the root: weight} of folded text."""
    sums = collections.Counter()
    for line in text.splitlines():
        stack, weight = line.rsplit(" ", 1)
        sums[tuple(stack.split(";"))] += int(weight)
    return dict(sums)


def policy_hash(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def other_page(text, names, samples, columns):
    """A page like this one with other data: texts, how many samples, and the columns (name, form, values)."""
    columns = [("text.size", "u", [len(name) for name in names]), ("text.bytes", "b", "".join(names).encode()), *columns]
    packed = [(name, form, len(values), bytes(values) if form == "b" else planes(values)) for name, form, values in columns]
    event = {"name": 1, "unit": 2, "samples": samples, "stacks": True, "fields": []}
    head = {"hidden": [], "capture": {"start": "0", "left_out": 0, "lost": 0, "notes": [], "events": [event]},
            "fills": Page(text).head["fills"]}
    described = json.dumps({"columns": [[name, form, count, len(data)] for name, form, count, data in packed], "head": head})
    data = struct.pack("<I", len(described)) + described.encode() + b"".join(data for *_, data in packed)
    element = DATA.search(text)[0].replace(DATA.search(text)[1], base64.b64encode(gzip.compress(data, 1)).decode())
    before, behind = DATA.sub("", text).split("</main>\n")
    return f"{before}</main>\n{element}{behind}"


def deep_page(text, depth):
    """One sample with so many frames, called f0 to f9 by turns."""
    names = ["", "event", "ns", "deep"] + [f"f{i}" for i in range(10)]
    return other_page(text, names, 1, [
        ("frame.name", "u", [0, 3] + list(range(4, 14))), ("frame.module", "u", [0] * 12), ("frame.kind", "b", b"at" + b"u" * 10),
        ("node.parent", "u", [1] * (depth + 1) + [0]),
        ("node.frame", "u", [2 + i % 10 for i in reversed(range(depth))] + [1, 0]),
        *[(name, "u", [0]) for name in ("time", "cpu", "thread", "event", "stack.node", "stack")], ("weight", "w", [7]),
        ("threads.pid", "z", [2]), ("threads.tid", "z", [2]), ("threads.comm", "u", [3])])


def wide_page(text, samples, threads=100, functions=200):
    """Many samples, one each microsecond, by turns in the functions of threads."""
    names = ["", "event", "ns"] + [f"thread {i}" for i in range(threads)] + [f"function {i}" for i in range(functions)]
    below = functions + 1  # nodes of a thread: its functions, and its own after them
    nodes = [(functions - i if i < functions else (threads - thread) * below - functions,
              1 + threads + i if i < functions else 1 + thread) for thread in range(threads) for i in range(below)] + [(0, 0)]
    turns = [(i * 7919 % threads, i * 104729 % functions) for i in range(samples)]
    return other_page(text, names, samples, [
        ("frame.name", "u", [0, *range(3, 3 + threads + functions)]), ("frame.module", "u", [0] * (1 + threads + functions)),
        ("frame.kind", "b", b"a" + b"t" * threads + b"u" * functions),
        ("node.parent", "u", [behind for behind, _ in nodes]), ("node.frame", "u", [frame for _, frame in nodes]),
        ("time", "d", [0] + [2000] * (samples - 1)), ("cpu", "u", [1 + i % 2 for i in range(samples)]),
        ("thread", "u", [thread for thread, _ in turns]), ("event", "u", [0] * samples),
        ("stack.node", "u", range(len(nodes))), ("stack", "u", [thread * below + function for thread, function in turns]), ("weight", "w", [1000] * samples),
        ("threads.pid", "z", [2 * i + 2 for i in range(threads)]), ("threads.tid", "z", [2 * i + 2 for i in range(threads)]),
        ("threads.comm", "u", [3 + i for i in range(threads)])])
