#!/usr/bin/env python3
"""Names with every byte value, everywhere in a capture: no command prints a byte to which a
terminal would react, all text is UTF-8, and JSON always parses. --raw-names prints the bytes."""
import json
import struct

import programs

HOSTILE = bytes(range(1, 256)) + "\u202e\u2028\u0085\ufeff".encode() + b"\xc3\xa9 \xe2\x82"  # NUL ends a name
UNSAFE = {*range(0x20), *range(0x7F, 0xA0), *range(0x200B, 0x2010), *range(0x2028, 0x202F), *range(0x2060, 0x206A),
          0xFEFF} - {ord("\n"), ord("\t")}
SAMPLE_TYPE = 1 << 16 | 1 | 2 | 4 | 1 << 7 | 1 << 8 | 1 << 5 | 1 << 10  # IDENTIFIER IP TID TIME CPU PERIOD CALLCHAIN RAW
SAMPLE_ID_ALL = 1 << 18
FORMAT = b"""name: ev
ID: 42
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:char text[288];\toffset:8;\tsize:288;\tsigned:0;

print fmt: "text=%s", REC->text
"""


def u32(*values):
    return struct.pack(f"<{len(values)}I", *values)


def u64(*values):
    return struct.pack(f"<{len(values)}Q", *values)


def padded(data, to=8):
    return data + bytes(-len(data) % to)


def header_string(text):
    text = padded(text + b"\0", 64)
    return u32(len(text)) + text


def counted(text):
    return u32(len(text)) + text


def record(kind, misc, body):
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def trailer(event):  # TID TIME CPU IDENTIFIER
    return u32(7, 7) + u64(1) + u32(0, 0) + u64(event)


def attr(kind, config):
    return struct.pack("<IIQQQQQ", kind, 128, config, 1, SAMPLE_TYPE, 0, SAMPLE_ID_ALL).ljust(128, b"\0")


def sample(event, time, raw, chain=(0x1010, 0x2010, 0x3010)):
    raw = padded(u32(len(raw)) + raw)
    raw = u32(len(raw) - 4) + raw[4:]
    body = u64(event, chain[0]) + u32(7, 7) + u64(time) + u32(0, 0) + u64(5)
    return record(9, 2, body + u64(len(chain) + 1, 2**64 - 512, *chain) + raw)


def mmap(start, name):
    head = u32(7, 7) + u64(start, 0x1000, 0) + u32(0, 0) + u64(0, 0) + u32(5, 2)
    return record(10, 2, head + padded(name + b"\0") + trailer(1))


def tracing_data():
    texts = b"\x17\x08\x44tracing0.6\0" + bytes([0, 8]) + u32(4096)
    texts += b"header_page\0" + u64(0) + b"header_event\0" + u64(0)
    return texts + u32(0) + u32(1) + b"sys\0" + u32(1) + u64(len(FORMAT)) + FORMAT + u32(0) + u32(0) + u64(0)


def payload_schemas():
    def field(name, kind, offset, bits, count=1, enumerators=()):
        head = counted(name) + bytes([kind, 0, 0, 0]) + u32(offset, bits, count) + 3 * counted(HOSTILE)
        return head + u32(len(enumerators)) + b"".join(u64(value) + counted(label) for value, label in enumerators)
    fields = [field(b"number", 0, 0, 32), field(HOSTILE, 2, 32, 32, 1, [(9, HOSTILE)]), field(b"text", 3, 64, 8, 288)]
    return padded(u32(1, 1) + counted(b"mine" + HOSTILE) + counted(HOSTILE) + u32(296, len(fields)) + b"".join(fields))


def capture():
    names = [b"clock" + HOSTILE, b"sys:ev", b"mine" + HOSTILE]
    attrs = [attr(1, 0), attr(2, 42), attr(1, 10)]
    text = HOSTILE.ljust(288, b"\0")
    data = record(3, 0, u32(7, 7) + padded(HOSTILE + b"\0") + trailer(1))
    data += mmap(0x1000, b"//anon") + mmap(0x2000, b"/lib/" + HOSTILE) + mmap(0x3000, HOSTILE)
    data += sample(1, 1000, HOSTILE) + sample(2, 2000, struct.pack("<HHi", 42, 0, 7) + text)
    data += sample(3, 3000, u32(77, 9) + text)
    data += record(17, 0, u64(0xFFFFFFFFC0000000) + u32(64) + struct.pack("<HH", 1, 0) + padded(HOSTILE + b"\0") + trailer(1))
    data += record(19, 0, u64(5) + padded(HOSTILE + b"\0") + trailer(1))
    features = {
        1: tracing_data(),
        3: header_string(HOSTILE), 4: header_string(HOSTILE), 5: header_string(HOSTILE), 6: header_string(HOSTILE),
        8: header_string(HOSTILE), 9: header_string(HOSTILE),
        11: u32(2) + 2 * header_string(HOSTILE),
        12: u32(3, 128) + b"".join(a + u32(1) + header_string(n) + u64(i) for i, (a, n) in enumerate(zip(attrs, names), 1)),
        15: u32(1, 4) + header_string(HOSTILE),
        224: payload_schemas(),
    }
    ids_at = 104
    attrs_at = ids_at + 8 * len(attrs)
    data_at = attrs_at + 144 * len(attrs)
    table_at = data_at + len(data)
    body_at = table_at + 16 * len(features)
    table, bodies = b"", b""
    for bit in sorted(features):
        table += u64(body_at + len(bodies), len(features[bit]))
        bodies += features[bit]
    bits = sum(1 << bit for bit in features)
    head = b"PERFILE2" + u64(104, 144, attrs_at, 144 * len(attrs), data_at, len(data), 0, 0)
    head += bits.to_bytes(32, "little")
    entries = b"".join(a + u64(ids_at + 8 * i, 8) for i, a in enumerate(attrs))
    return head + u64(1, 2, 3) + entries + data + table + bodies


class HostileNames(programs.Scratch):
    TEXTS = [
        ["script"], ["script", "--importer"], ["script", "-F", "+payload", "--show-task-events", "--show-mmap-events",
                                               "--show-bpf-events", "--show-cgroup-events", "--header"],
        ["script", "-G", "--show-mmap-events"], ["folded"], ["folded", "--all", "--tid", "--inline", "--context"],
        ["folded", "--event-filter", "sys:ev"], ["report", "--stdio", "-g", "none"],
        ["report", "--stdio", "-g", "none", "--sort", "comm,dso,sym,pid"], ["report", "--stats"],
        ["report", "--header-only", "-I"], ["dump"], ["header"], ["header", "-I"], ["evlist"], ["evlist", "-v"],
        ["evlist", "--trace-fields"], ["hist", "--field", "number"], ["hist", "--field", "number", "--by", "comm"],
        ["heatmap", "--field", "number"], ["heatmap", "--offset"], ["heatmap", "--svg"], ["heatmap", "--field", "number", "--box", "..,.."],
        ["script", "-F", "hw:comm,addr", "-F", "sw:comm,addr", "-F", "trace:comm,addr"],
    ]
    JSONS = [["script", "--json"], ["script", "--json", "-F", "+srcline", "-G"], ["dump", "--json"], ["header", "--json"],
             ["evlist", "--json"], ["hist", "--json", "--field", "number"], ["hist", "--json", "--field", "number", "--by", "comm"],
             ["heatmap", "--json", "--field", "number"], ["heatmap", "--json", "--offset", "--box", "..,.."],
             ["table", "--json", "--by", "comm"], ["report", "--json"], ["script", "--json", "--columns", "auto"]]

    def setUp(self):
        super().setUp()
        self.capture = self.folder / "hostile.data"
        self.capture.write_bytes(capture())
        (self.folder / "perf-7.map").write_bytes(b"1000 1000 " + HOSTILE.replace(b"\n", b"") + b"\n")

    def run_on_it(self, words):
        here = [] if words[0] in ("dump", "header", "evlist", "hist", "table") else ["--perf-map-dir", self.folder]
        done = self.tacho(*words, *here, "-i", self.capture, status=None)
        self.assertIn(done.returncode, (0, 3), done.stderr)
        return done

    def assert_safe(self, output):
        for number, line in enumerate(output.decode("utf-8").split("\n"), 1):  # strict: raises if it is not UTF-8
            unsafe = {hex(ord(c)) for c in line if ord(c) in UNSAFE}
            self.assertEqual(unsafe, set(), f"line {number}: {ascii(line)}")

    def test_no_text_lets_a_raw_byte_through(self):
        for words in self.TEXTS:
            with self.subTest(words=words):
                done = self.run_on_it(words)
                self.assertNotEqual(done.stdout, b"")
                self.assert_safe(done.stdout)
                self.assert_safe(done.stderr)

    def test_names_do_come_through_made_safe(self):
        self.assertIn(b"\\x01\\x02\\x03", self.run_on_it(["script"]).stdout)
        self.assertIn("é \\xe2\\x82".encode(), self.run_on_it(["script", "-F", "comm"]).stdout)

    def test_json_always_parses_and_is_safe(self):
        for words in self.JSONS + [[*words, "--raw-names"] for words in self.JSONS if words[0] != "script"]:
            with self.subTest(words=words):
                done = self.run_on_it(words)
                self.assert_safe(done.stdout)
                lines = done.stdout.decode("utf-8").splitlines() if words[0] not in ("header", "report") else [done.stdout]
                self.assertTrue(lines)
                for line in lines:
                    json.loads(line)

    def test_json_texts_give_every_byte_back(self):
        sample_object = json.loads(self.run_on_it(["script", "--json"]).stdout.splitlines()[2])
        for text in (sample_object["comm"], sample_object["fields"]["text"], sample_object["stack"][2]["dso"]):
            back = text.encode().decode("latin-1").encode("ascii", "backslashreplace")
            back = back.decode("unicode_escape").encode("latin-1")
            self.assertEqual(back, HOSTILE)

    def test_raw_names_gives_the_bytes(self):
        self.assertIn(HOSTILE, self.run_on_it(["script", "--raw-names"]).stdout)
        self.assertIn(b"/lib/" + HOSTILE, self.run_on_it(["script", "--raw-names"]).stdout)

    def test_as_perf_implies_raw_names(self):
        for words in [["script"], ["report", "--stdio"]]:
            with self.subTest(words=words):
                self.assertIn(HOSTILE[14:30], self.run_on_it([*words, "--as-perf"]).stdout)
                self.assertNotIn(HOSTILE[14:30], self.run_on_it(words).stdout)
        for view in ("script", "report", "folded", "evlist"):
            self.assertIn(b"--as-perf", self.tacho(view, "--help").stdout)
        self.assertIn(b"--as-perf does not go with --json",
                      self.tacho("script", "--json", "--as-perf", status=1).stderr)


if __name__ == "__main__":
    programs.main()
