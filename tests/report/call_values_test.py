#!/usr/bin/env python3
"""Function prototypes: what tacho-report reads of a program's, and the argument values that tacho calls makes from them and the registers in a
capture has."""
import json
import shutil
import struct
import subprocess
import unittest

import made_capture as made
import made_payload
import programs
from made_payload import Field

PROGRAM = r"""
#include <stdbool.h>
enum kind { PLAIN, BOLD = 4 };
enum flags { READ = 1, WRITE = 2, SYNC = 8 };
struct pair { long a, b; };
struct large { long all[3]; };
typedef unsigned char byte;
int numbers(int a, unsigned short b, long long c, byte d) { return a + b + (int)c + d; }
bool words(const char *text, char c, bool is, enum kind kind) { return text[0] == c && is && kind; }
double mixed(double x, int n, float y, struct pair pair, void *end) { return x + n + y + pair.a + (end != 0); }
struct large memory(struct large in, enum flags flags) { in.all[0] += flags; return in; }
const char *named(int n) { return n ? "one" : 0; }
void nothing(void) {}
long seven(long a, long b, long c, long d, long e, long f, long g) { return a + b + c + d + e + f + g; }
int main(void) { return 0; }
"""
# By type code, as report/decode/prototype_text.h has them.
WANTED = {
    "numbers": ["i4 int", "0 i4 int a", "1 u2 short unsigned int b", "2 i8 long long int c", "3 u1 byte d"],
    "words": ["b1 _Bool", "0 t8 const char * text", "1 c1 char c", "2 b1 _Bool is", "3 e4:0 kind kind"],
    "mixed": [None, "- f8 double x", "0 i4 int n", "- f4 float y", "- s8 pair pair", "3 p8 void * end"],
    "memory": [None, "- s8 large in", "1 e4:1 flags flags"],
    "named": ["t8 const char *", "0 i4 int n"],
    "nothing": [None],
    "seven": ["i8 long int", *(f"{i} i8 long int {name}" for i, name in enumerate("abcdef")), "- i8 long int g"],
}

CALL = [Field("time", unit="ns", role="value"), Field("function", role="function", format="uaddr"), Field("depth", role="depth"),
        Field("ret", role="returned", format="hex"), Field("regs", count=6, role="arguments", format="hex"),
        Field("t1", made_payload.TEXT, 1, 16, role="argument_text"), Field("t2", made_payload.TEXT, 1, 16, role="argument_text"),
        Field("rt", made_payload.TEXT, 1, 16, role="returned_text"), Field("unread", role="unread_texts")]
ATTACHMENTS = 225
LARGE = 2**64


def zstd(content, blanks=0):
    """A zstd frame with the bytes uncompressed, followed by line feeds in RLE blocks (four bytes for each 128 KiB)."""
    most = 1 << 17
    blocks = [(0, content[at:at + most], len(content[at:at + most])) for at in range(0, len(content), most)]
    blocks += [(1, b"\n", min(most, blanks - at)) for at in range(0, blanks, most)]
    blocks = blocks or [(0, b"", 0)]
    return struct.pack("<IBI", 0xFD2FB528, 0xA0, len(content) + blanks) + b"".join(
        struct.pack("<I", (i == len(blocks) - 1) | kind << 1 | size << 3)[:3] + body for i, (kind, body, size) in enumerate(blocks))


def attachments(blanks=0, **content_by_origin):
    body = struct.pack("<II", 1, len(content_by_origin))
    for origin, content in content_by_origin.items():
        packed, size = zstd(content, blanks), len(content) + blanks
        body += struct.pack("<IIQQ", len("prototypes"), len(origin), size, len(packed)) + b"prototypes" + origin.encode() + packed
        body += bytes(-len(body) % 8)
    return body


@unittest.skipUnless(shutil.which("cc") and shutil.which("nm") and shutil.os.uname().machine == "x86_64", "needs cc, and x86-64")
class Prototypes(programs.Scratch):
    def setUp(self):
        super().setUp()
        (self.folder / "typed.c").write_text(PROGRAM)

    def ask(self, *flags):
        subprocess.run(["cc", "-O1", *flags, "-no-pie", "-o", "typed", "typed.c"], cwd=self.folder, check=True)
        names = [line.split() for line in subprocess.run(["nm", "typed"], cwd=self.folder, check=True, capture_output=True,
                                                         text=True).stdout.splitlines()]
        self.offsets = {line[2]: int(line[0], 16) - 0x400000 for line in names if len(line) == 3 and line[2] in WANTED}
        done = self.run_program(programs.BIN / "tacho-report", "prototypes", "./typed",
                                *map(str, sorted(self.offsets.values())), "12345678")
        return done.stdout.decode()

    def test_are_what_the_source_says(self):
        found, function = {}, None
        lines = self.ask("-g").splitlines()
        for line in lines:
            what, *fields = line.split("\t")
            if what == "function":
                function = next(name for name, at in self.offsets.items() if str(at) == fields[0])
                found[function] = [" ".join(fields[1:]) or None]
            elif what == "argument":
                found[function].append(" ".join(fields))
        self.assertEqual(found, WANTED)
        self.assertEqual([line for line in lines if line.startswith("enum")],
                         ["enum\t0\tPLAIN\t4\tBOLD", "enum\t1\tREAD\t2\tWRITE\t8\tSYNC"])

    def test_of_a_program_without_debugging_information_are_none(self):
        self.assertEqual(self.ask(), "")

    def test_more_than_a_mebibyte_is_not_printed(self):
        longest = max(self.ask("-g").split("function\t")[1:], key=len)
        offset = longest.split("\t")[0].strip()
        for count, fits in ((10, True), ((2 << 20) // len(longest), False)):
            said = self.run_program(programs.BIN / "tacho-report", "prototypes", "./typed", *[offset] * count).stdout.decode()
            self.assertEqual(said.count("function\t"), count if fits else 0)
            self.assertEqual(said == "too-long\n", not fits)

    def test_an_unreadable_file_is_reported(self):
        done = self.run_program(programs.BIN / "tacho-report", "prototypes", "./nosuch", "1")
        self.assertTrue(done.stdout.decode().startswith("error\t"), done.stdout)


class Values(programs.Scratch):
    FUNCTION = made.START + 0x10a0

    def calls(self, types, registers=(), returned=0, texts=(b"", b"", b""), words=(), function=FUNCTION, status=0, others=None,
              blanks=0, unread=0):
        capture = made_payload.capture(call=CALL)
        capture.features[ATTACHMENTS] = attachments(blanks, **(others or {}), **{made.PROGRAM: types})
        registers = [*registers, *[0] * 6][:6]
        capture.sample(0, raw=struct.pack("<QQQQ6Q16s16s16sQ", 1000, function, 1, returned % LARGE, *(one % LARGE for one in registers),
                                          *texts, unread))
        (self.folder / "perf.data").write_bytes(capture.file())
        return self.tacho("calls", *words, status=status).stdout.decode()

    def shown(self, types, *args, **more):
        """The call as replayed, without its name."""
        return self.calls(types, *args, **more).splitlines()[1].split("  ", 3)[-1].split("(", 1)[1]

    def function(self, lines, returned=""):
        return f"function\t{0x10a0}{returned}\n{lines}".encode()

    def one(self, code, bits, texts=(b"", b"", b"")):
        return self.shown(self.function(f"argument\t0\t{code}\tsome type\tx\n"), [bits], texts=texts)

    def test_numbers_have_the_size_and_sign_of_their_type(self):
        garbage = 0xdeadbeef00000000
        for code, bits, text in (("i4", garbage | 0xffffffff, "-1"), ("u4", garbage | 0xffffffff, "4294967295"), ("i8", -3, "-3"),
                                 ("u8", -1, str(LARGE - 1)), ("u1", 0x1ff, "255"), ("i2", 0x18000, "-32768"), ("b1", 0x100, "false"),
                                 ("b1", 1, "true"), ("c1", ord("x"), "'x'"), ("c1", 10, "10"), ("c1", ord("'"), "'\\''"),
                                 ("p8", 0x7ffe10, "0x7ffe10"), ("p8", 0, "NULL"), ("f8", 5, "?"), ("s8", 5, "?")):
            self.assertEqual(self.one(code, bits), f"x={text});", code)

    def test_texts_are_what_the_arguments_pointed_to(self):
        types = self.function("argument\t1\tt8\tchar *\tb\nargument\t0\tt8\tchar *\ta\nargument\t2\tt8\tchar *\tc\n", "\tt8\tchar *")
        self.assertEqual(self.shown(types, [0x10, 0x20, 0x30], 0x40, (b'in "quotes"', b"second\x1b", b"back")),
                         'b="second\\x1b", a="in \\"quotes\\"", c=0x30) = "back";')
        self.assertEqual(self.shown(types, [0, 0x20, 0x30], 0, (b"", b"x", b"")), 'b="x", a=NULL, c=0x30) = NULL;')

    def test_enumerations_have_names(self):
        lines = b"enum\t0\tNONE\t1\tREAD\t2\tWRITE\t-1\tBAD\n" + self.function("argument\t0\te4:0\tf\tx\n")
        for bits, text in ((0, "NONE"), (1, "READ"), (3, "READ|WRITE"), (0xffffffff, "BAD"), (8, "8"), (9, "9")):
            self.assertEqual(self.shown(lines, [bits]), f"x={text});")

    def test_values_outside_registers_are_unknown(self):
        types = self.function("argument\t-\tf8\tdouble\tx\nargument\t0\ti4\tint\tn\nargument\t9\ti8\tlong\tlate\n")
        self.assertEqual(self.shown(types, [7]), "x=?, n=7, late=?);")

    def test_without_types_calls_are_as_before(self):
        for types in (b"", self.function("")[:5], b"function\t1\nargument\t0\ti4\tint\tn\n"):
            self.assertEqual(self.shown(types, [7]), ");")
        types = self.function("argument\t0\ti4\tint\tn\n", "\ti4\tint")
        self.assertEqual(self.shown(types, [7], 9), "n=7) = 9;")
        self.assertEqual(self.shown(types, [7], 9, words=("--no-values",)), ");")
        self.assertEqual(self.shown(types, [7], 9, function=self.FUNCTION + 1), ");")

    def test_json_and_chrome_have_them(self):
        types = b"enum\t4\tBOLD\n" + self.function(
            "argument\t0\ti4\tint\tn\nargument\t1\te4:0\tkind\tkind\nargument\t2\tb1\tbool\tis\nargument\t-\tf8\tdouble\tx\n", "\tt8\tchar *")
        row = json.loads(self.calls(types, [-1, 4, 1], 0x10, (b"", b"", b"back"), words=("--json",)))
        self.assertEqual(row["arguments"], [{"name": "n", "type": "int", "value": -1}, {"name": "kind", "type": "kind", "value": "BOLD"},
                                            {"name": "is", "type": "bool", "value": True}, {"name": "x", "type": "double"}])
        self.assertEqual(row["returned"], {"type": "char *", "value": "back"})
        self.assertEqual((row["regs2"], row["ret"]), ("0x4", "0x10"))
        spans = json.loads(self.calls(types, [-1, 4, 1], 0x10, (b"", b"", b"back"), words=("--chrome",)))["traceEvents"]
        self.assertEqual(spans[-1]["args"], {"n": -1, "kind": "BOLD", "is": True, "returned": "back"})

    def test_json_has_what_json_has_for_it(self):
        """A null pointer is null, a char is a string of one character, and quotes are escaped once."""
        types = b"enum\t1\ta\"b\n" + self.function("argument\t0\tt8\tchar *\tt\nargument\t1\tp8\tvoid *\tp\nargument\t2\tc1\tchar\tc\n"
                                                    "argument\t3\te4:0\tkind\tkind\nargument\t4\tt8\tchar *\tt\n", "\tp8\tvoid *")
        for words, get in ((("--json",), lambda text: [one["value"] for one in json.loads(text)["arguments"]]),
                           (("--chrome",), lambda text: list(json.loads(text)["traceEvents"][-1]["args"].values())[:5])):
            values = get(self.calls(types, [0x10, 0, ord("'"), 1, 0], 0, (b'a"b', b"", b""), words=words))
            self.assertEqual(values, ['a"b', None, "'", 'a"b', None])
        self.assertIsNone(json.loads(self.calls(types, [0x10], 0, (b"", b"", b""), words=("--json",)))["returned"]["value"])

    def test_a_text_that_could_not_be_read_is_its_address(self):
        types = self.function("argument\t0\tt8\tchar *\ta\nargument\t1\tt8\tchar *\tb\n", "\tt8\tchar *")
        for unread, wanted in ((0, 'a="", b="x") = "";'), (1, 'a=0x10, b="x") = "";'), (2, 'a="", b=0x20) = "";'), (4, 'a="", b="x") = 0x30;')):
            self.assertEqual(self.shown(types, [0x10, 0x20], 0x30, (b"", b"x", b""), unread=unread), wanted)
        row = json.loads(self.calls(types, [0x10, 0x20], 0x30, (b"", b"x", b""), unread=1, words=("--json",)))
        self.assertEqual([one["value"] for one in row["arguments"]], ["0x10", "x"])
        self.assertNotIn("unread", row)

    def test_an_object_is_looked_for_where_arguments_are(self):
        types = self.function("argument\t1\tp8\tvoid *\tp\n", "\tp8\tvoid *")
        nothing = self.function("argument\t1\tp8\tvoid *\tp\n")
        for types, registers, returned, calls in ((types, [0x10, 0x20], 0x30, {"0x20", "0x30"}), (nothing, [0x10, 0x20], 0x30, {"0x20"}),
                                                  (b"", [0x10, 0x20], 0x30, {"0x10", "0x20", "0x30"})):
            found = {one for one in ("0x10", "0x20", "0x30") if self.calls(types, registers, returned, words=("--object", one)).count("\n") > 1}
            self.assertEqual(found, calls)

    def test_types_that_would_take_too_much_are_left_out(self):
        types = self.function("argument\t0\ti4\tint\tn\n")
        self.assertEqual(self.shown(types, [7], blanks=20 << 20), "n=7);")
        self.assertEqual(self.shown(types, [7], blanks=30 << 20), ");")  # of a kilobyte
        many = b"enum\n" * (1 << 20)
        self.assertEqual(self.shown(types, [7], others={"another": many[:-100]}), "n=7);")
        self.assertEqual(self.shown(types, [7], others={"another": many}), ");")

    def test_each_name_is_unique_in_an_object(self):
        names = ["pid", "duration", "pid", "arguments", "object.pid", "pid"]
        capture = made_payload.capture(call=CALL[:3] + [Field(name) for name in names])
        capture.sample(0, raw=struct.pack("<QQQ6Q", 1000, self.FUNCTION, 1, *range(10, 16)))
        (self.folder / "perf.data").write_bytes(capture.file())
        pairs = json.loads(self.tacho("calls", "--json").stdout, object_pairs_hook=list)
        row = dict(pairs)
        self.assertEqual(len(row), len(pairs))
        self.assertEqual((row["pid"], row["duration"]), (made.PID, 1000))
        self.assertEqual([row[name] for name in ("object.pid", "object.duration", "object.pid.2", "object.arguments", "object.object.pid",
                                                 "object.pid.3")], list(range(10, 16)))

    def test_values_that_no_call_has_are_refused(self):
        many, text = Field("many", size=1, count=1021), Field("t", made_payload.TEXT, 1, 16, role="argument_text")
        returned = Field("r", made_payload.TEXT, 1, 16, role="returned_text")
        for more, status in (([text, returned, returned, text], 0), ([text] * 4, 1), ([text] * 3 + [Field("much", size=1, count=2000)], 1)):
            capture = made_payload.capture(call=CALL[:3] + [many] + more)
            capture.sample(0, raw=struct.pack("<QQQ", 1000, self.FUNCTION, 1) + bytes(1200))
            (self.folder / "perf.data").write_bytes(capture.file())
            done = self.tacho("calls", status=status)
            self.assertEqual("has more than 1024 values" in done.stderr.decode(), status != 0, more)

    def test_lines_that_cannot_be_are_left_out(self):
        for line in ("argument\t0\ti3\tint\tn\n", "argument\t0\tz4\tint\tn\n", "argument\t0\te4:7\tkind\tn\n", "argument\t0\te4\tkind\tn\n",
                     "argument\t0\t\tint\tn\n", "argument\t0\ti\tint\tn\n"):
            self.assertEqual(self.shown(self.function(line), [7]), "n=?);", line)
        for line in ("argument\n", "argument\t0\ti4\tint\n", "nonsense\t\t\n", "enum\n", "\n", "function\n", "function\tx\nargument\t0\ti4\tint\tn\n"):
            self.assertEqual(self.shown(self.function("") + line.encode(), [7]), ");", line)
        many = self.function("argument\t0\ti4\tint\tn\n" * 1000)
        self.assertEqual(self.shown(many, [7], words=("--wide",)).count("n=7"), 64)


if __name__ == "__main__":
    programs.main()
