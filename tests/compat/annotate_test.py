#!/usr/bin/env python3
"""tacho annotate --stdio beside perf annotate --stdio: the same percentages at the same addresses, the same source lines with
perf's counters. And elsewhere, from packed code, the same text without the program and its source."""
import json
import os
import re
import shutil
import signal
import subprocess
import time
import unittest
from collections import Counter
from pathlib import Path

import made_vmlinux
import programs
from page_data import Page

LOOP = """
#include <stdlib.h>
static volatile long sink;
static inline __attribute__((always_inline)) long twist(long x)
{
\tx ^= x << 13;
\treturn x;
}
__attribute__((noinline)) long sum(const int *p, int n)
{
  long t = 0;

  for (int i = 0; i < n; i++)
    t += twist(p[i]);
  return t;
}
__attribute__((noinline)) long mix(long x)
{
  for (int i = 0; i < 50; i++) {
    x = x * 3 + 1;
    if (x & 1)
      x >>= 1;
    else
      sink = x;
  }
  return x;
}
int main(void)
{
  static int a[4096];
  long t = 0;
  for (int k = 0; k < 30000; k++) {
    t += sum(a, 4096) + mix(k);
  }
  return t == 1;
}
"""


def many_functions(count):
    """A program with `count` functions of about equal cost."""
    bodies = ("x ^= x << (i & 7); x += {0};", "if (x & {0}) x = x * 3 + 1; else x >>= 1;", "x += (x >> 3) ^ (i * {0});",
              "for (int k = 0; k < 2; k++) x = x * 31 + {0};")
    functions = "".join(f"__attribute__((noinline)) unsigned long f{i}(unsigned long x)\n{{\n  for (int i = 0; i < 300; i++) {{\n"
                        f"    {bodies[i % len(bodies)].format(i + 3)}\n  }}\n  return x;\n}}\n" for i in range(count))
    calls = "".join(f"    t += f{i}(t + k);\n" for i in range(count))
    return f"{functions}int main(void)\n{{\n  unsigned long t = 1;\n  for (int k = 0; k < 60000; k++) {{\n{calls}  }}\n  return t == 1;\n}}\n"


SHAPES = """
#include <algorithm>
#include <memory>
#include <vector>
namespace geo {
struct Shape { virtual ~Shape() = default; virtual double area(int) const = 0; };
struct Square : Shape {
  double side;
  explicit Square(double x) : side(x) {}
  double area(int k) const override { double s = 0; for (int i = 0; i < k; ++i) s += side * side + i; return s; }
};
template <class T> __attribute__((noinline)) T total(const std::vector<T>& v) {
  T sum{};
  for (const T& x : v)
    sum += std::max(T(1), std::min(x, T(100)));
  return sum;
}
}
int main() {
  std::vector<std::unique_ptr<geo::Shape>> shapes;
  for (int i = 0; i < 100; ++i) shapes.push_back(std::make_unique<geo::Square>(i));
  std::vector<int> v(5000);
  double t = 0;
  for (int k = 0; k < 400; ++k) {
    for (auto& s : shapes) t += s->area(500);
    for (size_t i = 0; i < v.size(); ++i) v[i] = int(i * 7919 % 5003) + k;
    std::sort(v.begin(), v.end(), [](int a, int b) { return (a ^ 5) < (b ^ 5); });
    t += geo::total(v);
  }
  return t == 1;
}
"""

RUST = """
use std::collections::HashMap;
trait Area { fn area(&self, n: u64) -> u64; }
struct Square { side: u64 }
impl Area for Square {
    #[inline(never)]
    fn area(&self, n: u64) -> u64 { (0..n).fold(0, |sum, i| sum.wrapping_add(self.side * self.side ^ i)) }
}
#[inline(never)]
fn total(values: &[u64]) -> u64 {
    values.iter().filter(|value| *value % 3 != 0).map(|value| value.rotate_left(7)).fold(0, u64::wrapping_add)
}
#[inline(never)]
fn count(values: &[u64]) -> usize {
    let mut seen = HashMap::new();
    for value in values { *seen.entry(value % 97).or_insert(0u32) += 1; }
    seen.len()
}
fn main() {
    let shapes: Vec<Box<dyn Area>> = (0..50).map(|side| Box::new(Square { side }) as Box<dyn Area>).collect();
    let values: Vec<u64> = (0..4000).collect();
    let mut sum = 0u64;
    for round in 0..5000 {
        for shape in &shapes { sum = sum.wrapping_add(shape.area(300 + round % 300)); }
        sum = sum.wrapping_add(total(&values)).wrapping_add(count(&values) as u64);
    }
    std::process::exit((sum == 1) as i32);
}
"""

# An instruction: a column for each event, the address, the text.
INSTRUCTION = re.compile(r"^((?: +[\d.]+)+) : +([0-9a-f]+):")
TITLE = re.compile(r"^ (Percent|Samples|Period) +\|")


def functions(text):
    """The lines of each function, those of instructions without their texts; by the line that names it. A counter before the
    name of a function is left out, as perf counts rows of the line table that only have another discriminator."""
    found, lines = {}, []
    for line in text.decode().split("\n"):
        if TITLE.match(line):
            lines = [line]
            continue
        instruction = INSTRUCTION.match(line)
        named = re.match(r"^ +: \d+ +([0-9a-f]{16}) <", line)
        if named:
            found[named[1]] = lines
            line = line.split(" <")[0]  # objdump may choose another of several names of an address
        if instruction:
            line = instruction[0]
        elif line.endswith("):"):
            line = re.sub(r": \d+ +", ": ", line)
        lines.append(line.rstrip())
    return found


@programs.needs_root
@programs.needs_perf
@unittest.skipUnless(shutil.which("objdump") and shutil.which("c++"), "needs objdump (binutils) and a C++ compiler")
class Annotate(programs.Scratch):
    def build(self, name, source, *options):
        ending = "cc" if "std::" in source else "c"
        written = self.folder / f"{name}.{ending}"
        written.write_text(source)
        self.run_program("c++" if ending == "cc" else "cc", *options, "-o", self.folder / name, written)
        return self.folder / name

    def record(self, program, *options):
        capture = self.folder / f"{program.name}.data"
        self.perf("record", "-F", "1999", *(options or ["-e", "cpu-clock:u"]), "-o", capture, "--", program)
        return capture

    def empty(self):
        folder = self.folder / "empty"
        folder.mkdir(exist_ok=True)
        return folder

    def compare(self, capture, *options, limit="1", module=None):
        """The addresses of the functions that have the same percentages and source lines."""
        words = ["annotate", "-i", capture, "--stdio", "--percent-limit", limit, "-d", module or capture.stem, *options]
        expected = functions(self.perf(*words, "--stdio-color", "never").stdout)
        made = functions(self.tacho(*words).stdout)
        self.assertTrue(expected, "perf shows no function")
        for address, lines in expected.items():
            with self.subTest(capture=capture.name, function=address, options=options):
                self.assertEqual("\n".join(made.get(address, [])), "\n".join(lines))
        return list(expected)

    def test_c(self):
        program = self.build("loop", LOOP, "-O1", "-g")
        capture = self.record(program)
        for options in [[], ["-n"], ["--show-total-period"], ["--no-source"], ["-P"], ["--percent-type", "local-hits"], ["--percent-type", "global-period"]]:
            self.compare(capture, *options)

    def test_a_pack_without_code_hides_no_line(self):
        """It has lines of sampled addresses; those of other instructions are in the program."""
        for name, source, options in (("loop", LOOP, ["-O1", "-g"]), ("shapes", SHAPES, ["-std=c++17", "-O2", "-g"]), ("plain", LOOP, ["-O1"])):
            bare = self.record(self.build(name, source, *options))
            self.tacho("pack", "-q", bare, "-o", "packed.data", status=None)
            texts = [self.tacho("annotate", "-i", capture, "--stdio", "-d", name).stdout for capture in (bare, "packed.data")]
            self.assertIn(b" : ", texts[0])
            self.assert_same_text(texts[1], texts[0])

    def test_a_pack_has_the_line_where_a_function_starts(self):
        def lines_of(*capture):
            self.tacho("page", "-i", *capture, "-o", "page.html", status=None)
            page = Page((self.folder / "page.html").read_text())
            return {page.texts[name]: page.texts[line] for name, line in zip(page.columns["frame.name"], page.columns["frame.line"])}
        capture = self.record(self.build("loop", LOOP, "-O1", "-g"))
        lines = lines_of(capture)
        self.assertRegex(lines["sum"], r"^loop\.c:\d+$")
        self.tacho("pack", "-q", capture, "-o", "packed.data", status=None)
        self.assertNotIn("sum", lines_of(capture, "--symfs", self.empty()))
        self.assertEqual(lines_of("packed.data", "--symfs", self.empty())["sum"], lines["sum"])

    def test_the_summary_by_lines(self):
        capture = self.record(self.build("loop", LOOP, "-O1", "-g"))
        def summary(text):
            """Lines with equal percents have no order of their own: by name."""
            parts = re.findall(r"Sorted summary.*?\n\n(.*?)\n [PS]", text.decode(), re.DOTALL)
            return ["\n".join(sorted(part.splitlines(), key=lambda line: (-float(line.split()[0]), line))) for part in parts]
        words = ["annotate", "-i", capture, "--stdio", "-l", "sum"]
        expected = summary(self.perf(*words, "--stdio-color", "never").stdout)
        self.assertTrue(expected and "loop.c:" in expected[0])
        self.assertEqual(summary(self.tacho(*words).stdout), expected)

    def test_thirty_symbols_of_eight_programs(self):
        """C, also without position independence, without debug information and stripped, C++ with inlined calls, Rust, code of
        a JIT and the kernel: at least thirty symbols, each with perf's numbers."""
        programs_ = {"C": self.symbols_of_c, "not position independent, DWARF 4": self.symbols_of_a_fixed_program,
                     "without debug information": self.symbols_of_a_bare_program, "C++": self.symbols_of_cxx,
                     "a stripped library": self.symbols_of_a_stripped_library, "a JIT": self.symbols_of_a_jit}
        lacking = []
        for tool, kind, symbols in (("rustc", "Rust", self.symbols_of_rust), ("bpftrace", "the kernel", self.symbols_of_the_kernel)):
            if shutil.which(tool):
                programs_[kind] = symbols
            else:
                lacking.append(f"{kind} needs {tool}")
        compared = {}
        for kind, symbols in programs_.items():
            with self.subTest(kind=kind):
                compared[kind] = symbols()
        counts = {kind: len(symbols) for kind, symbols in compared.items() if symbols}
        print(f"compared with perf annotate: {counts}")
        if lacking:
            self.skipTest("; ".join(lacking))
        self.assertGreaterEqual(len(counts), 8, counts)
        self.assertGreaterEqual(sum(counts.values()), 30, counts)

    def symbols_of_c(self):
        return self.compare(self.record(self.build("many", many_functions(14), "-O1", "-g")))

    def symbols_of_a_fixed_program(self):
        return self.compare(self.record(self.build("fixed", LOOP, "-O2", "-g", "-gdwarf-4", "-no-pie")))

    def symbols_of_cxx(self):
        return self.compare(self.record(self.build("shapes", SHAPES, "-std=c++17", "-O2", "-g")))

    def symbols_of_a_bare_program(self):
        return self.compare(self.record(self.build("bare", LOOP, "-O1")))

    def symbols_of_rust(self):
        (self.folder / "areas.rs").write_text(RUST)
        # rustup uses HOME, which tests change.
        self.run_program("env", f"RUSTUP_HOME={os.environ.get('RUSTUP_HOME', Path.home() / '.rustup')}", "rustc", "-g", "-C", "opt-level=2",
                         "-o", self.folder / "areas", self.folder / "areas.rs")
        symbols = self.compare(self.record(self.folder / "areas"))
        self.assertGreaterEqual(len(symbols), 3)
        return symbols

    def symbols_of_a_stripped_library(self):
        head, functions_, main = LOOP.partition("__attribute__((noinline)) long sum")
        body, _, main = (functions_ + main).partition("int main(void)")
        self.build("liboften.so", head + body, "-O2", "-g", "-shared", "-fPIC")
        self.run_program("strip", self.folder / "liboften.so")
        declared = "long sum(const int *p, int n);\nlong mix(long x);\nint main(void)"
        program = self.build("calls", declared + main, "-O1", "-Wl,--no-as-needed", f"-L{self.folder}", "-loften", f"-Wl,-rpath,{self.folder}")
        symbols = self.compare(self.record(program), module="liboften.so")
        self.assertGreaterEqual(len(symbols), 2)
        return symbols

    def symbols_of_a_jit(self):
        program = self.folder / "jitter"
        self.run_program("cc", "-O1", "-o", program, Path(__file__).with_name("jitter.c"))
        dumps = self.folder / "dumps"
        dumps.mkdir()
        capture, injected = self.folder / "capture.data", self.folder / "injected.data"
        self.perf("record", "-k", "mono", "-F", "1999", "-e", "cpu-clock:u", "-o", capture, "--", program, dumps)
        self.perf("inject", "--jit", "-i", capture, "-o", injected)
        compared = []
        for name in ("first(int)", "jit::second", "third"):
            there = self.perf("annotate", "-i", injected, "--stdio", "--stdio-color", "never", "-n", name, status=None).stdout.decode()
            expected = [(int(offset, 16), int(count)) for count, offset in re.findall(r"^ +(\d+) : +([0-9a-f]+):", there, re.M)]
            if not expected:
                continue  # no sample hit it
            # From the files made by perf, and from the jitdump only.
            for one in (injected, capture):
                lines = json.loads(self.tacho("annotate", "-i", one, "--json", name).stdout)["lines"]
                made = [(line["offset"], line.get("counts", [{"samples": 0}])[0]["samples"]) for line in lines]
                self.assertEqual(made, [(offset - expected[0][0], count) for offset, count in expected], (name, one.name))
            compared.append(name)
        self.assertGreater(len(compared), 1)
        return compared

    def symbols_of_the_kernel(self):
        capture, kernel = self.folder / "kernel.data", self.folder / "vmlinux"
        self.perf("record", "-F", "1999", "-e", "cpu-clock:k", "-o", capture, "--", "dd", "if=/dev/zero", "of=/dev/null", "bs=64", "count=500000")
        names = re.findall(r"\[k\] (\w+)", self.perf("report", "-i", capture, "--stdio", "--sort", "sym").stdout.decode())
        # Names of only one function.
        alone = Counter(name for _, _, name in made_vmlinux.symbols())
        if not made_vmlinux.make(kernel, [name for name in names if alone[name] == 1][:8]):
            print("bpftrace does not read the kernel's code here")
            return []
        def counts(text):
            found = {}
            for line in text.decode().splitlines():
                if named := re.match(r"^ +: \d+ +[0-9a-f]{16} <([^>]*)>", line):
                    lines = found.setdefault(named[1], [])
                if row := re.match(r"^ +(\d+) : +([0-9a-f]+):", line):
                    lines.append((row[2], row[1]))
            return found
        words = ["annotate", "-i", capture, "-k", kernel, "--stdio", "-n", "--percent-limit", "2"]
        expected = counts(self.perf(*words, "--stdio-color", "never").stdout)
        made = counts(self.tacho(*words, status=None).stdout)
        self.assertGreaterEqual(len(expected), 4)
        # The same code as a core file, with the names of kallsyms.
        core = bytearray(kernel.read_bytes())
        core[16] = 4  # ET_CORE
        (self.folder / "kcore").write_bytes(core)
        from_core = counts(self.tacho(*words[:3], "--kcore", self.folder / "kcore", *words[5:], status=None).stdout)
        symbols = sorted(set(expected) & set(names[:8]))
        for name in symbols:
            self.assertEqual(made.get(name), expected[name], name)
            self.assertEqual(from_core.get(name), expected[name], name)
        return symbols

    @unittest.skipUnless(shutil.which("bpftrace"), "needs bpftrace")
    def test_bpf_programs(self):
        """perf of Debian refuses to annotate a BPF program, as it is built without the disassembler that it has for them. What
        it knows are the addresses of its samples: each instruction has as many here."""
        said = self.folder / "bpftrace.out"
        with said.open("wb") as out:
            tracer = subprocess.Popen(["bpftrace", "-e", "tracepoint:syscalls:sys_enter_read { @[comm, pid] = count();"
                                       " @t[nsecs / 1000000 % 100] = count(); }"], stdout=out, stderr=out)
        try:
            end = time.monotonic() + 30
            while b"Attaching" not in said.read_bytes():
                if tracer.poll() is not None or time.monotonic() > end:
                    self.skipTest("bpftrace attaches nothing here: " + said.read_text()[-200:])
                time.sleep(0.1)
            time.sleep(1)
            capture = self.folder / "bpf.data"
            self.perf("record", "-F", "1999", "-e", "cpu-clock:k", "-o", capture, "--", "dd", "if=/dev/zero", "of=/dev/null", "bs=1",
                      "count=600000")
        finally:
            tracer.send_signal(signal.SIGINT)
            tracer.wait(30)
        hits = Counter(re.findall(r"^ *([0-9a-f]+) (bpf_prog_\w+_sys_enter_read) ", self.perf("script", "-i", capture, "-F", "ip,sym,dso").stdout.decode(),
                                  re.M))
        self.assertGreater(sum(hits.values()), 10)
        name = next(iter(hits))[1]
        there = self.perf("annotate", "-i", capture, "--stdio", "--stdio-color", "never", "-n", name, status=None)
        if b"link with binutils's libopcode to enable BPF annotation" not in there.stderr + there.stdout:
            rows = re.findall(r"^ +(\d+) : +([0-9a-f]+):", there.stdout.decode(), re.M)
            self.assertEqual({(address, name): int(count) for count, address in rows if count != "0"}, dict(hits))
        function = json.loads(self.tacho("annotate", "-i", capture, "--json", name).stdout)
        made = {(f"{int(line['address'], 16):x}", name): line["counts"][0]["samples"] for line in function["lines"] if "counts" in line}
        self.assertEqual(made, dict(hits))
        percents = {line["address"]: line["counts"][0]["percent"] for line in function["lines"] if "counts" in line}
        self.assertAlmostEqual(sum(percents.values()), 100)
        self.assertGreater(len(percents), 3)

    def test_groups(self):
        program = self.build("loop", LOOP, "-O1", "-g")
        self.compare(self.record(program, "-e", "{cpu-clock:u,task-clock:u}"))

    def test_elsewhere_the_same_text(self):
        program = self.build("shapes", SHAPES, "-std=c++17", "-O2", "-g")
        capture = self.record(program)
        forms = [[], ["--stdio"], ["--json"], ["--asm-raw", "-M", "intel"]]
        here = [self.tacho("annotate", "-i", capture, "--percent-limit", "1", *form).stdout for form in forms]
        self.assertIn(b"std::min", here[0])
        self.tacho("pack", capture, "--level", "code")
        packed = self.folder / "packed.data"
        self.tacho("pack", capture, "-o", packed)  # once more, from the pack itself
        program.unlink()
        (self.folder / "shapes.cc").unlink()
        empty = self.empty()
        for one in [capture, packed]:
            for form, expected in zip(forms, here):
                with self.subTest(form=form, capture=one.name):
                    there = self.tacho("annotate", "-i", one, "--symfs", empty, "--percent-limit", "1", *form).stdout
                    self.assertEqual(there.decode(), expected.decode())

    def test_source_goes_with_a_part_of_the_capture_and_is_not_given_away(self):
        program = self.build("loop", LOOP, "-O1", "-g")
        capture = self.record(program)
        self.tacho("pack", capture, "--level", "code")
        self.tacho("convert", "-i", capture, "-o", "part.data", "--time", "0%-50%")
        self.tacho("redact", capture, "public.data", status=None)
        for name, has_source in ((capture, True), ("part.data", True), ("public.data", False)):
            with self.subTest(capture=name):
                self.assertEqual(b"\nsource: 1 file " in self.tacho("doctor", name, status=None).stdout, has_source)
                text = self.tacho("annotate", "-i", name, "--symfs", self.empty(), "sum", status=None).stdout
                self.assertEqual(b"t += twist(p[i]);" in text, has_source)

    def test_no_other_file_is_shown_or_packed_as_source(self):
        secret = self.folder / "secret"
        secret.write_text("nobody else's\n" * 100)
        source = LOOP.replace("__attribute__((noinline)) long mix", f'# 1 "{secret}"\n__attribute__((noinline)) long mix', 1)
        program = self.build("liar", source, "-O1", "-g")
        capture = self.record(program)
        self.assertNotIn(b"nobody else", self.tacho("annotate", "-i", capture, "mix").stdout)
        self.tacho("pack", capture, "--level", "code")
        self.assertNotIn(b"nobody else", self.tacho("annotate", "-i", capture, "--symfs", self.empty(), "mix").stdout)

    def test_json_adds_up(self):
        program = self.build("loop", LOOP, "-O1", "-g")
        capture = self.record(program)
        text = self.tacho("annotate", "-i", capture, "--json", "--dso", "loop").stdout.decode()
        for function in map(json.loads, text.splitlines()):
            event = function["events"][0]
            counts = [line["counts"][0] for line in function["lines"] if "counts" in line]
            self.assertEqual(sum(count["samples"] for count in counts), event["samples"])
            self.assertEqual(sum(count["period"] for count in counts), event["period"])
            self.assertAlmostEqual(sum(count["percent"] for count in counts), 100, places=6)


if __name__ == "__main__":
    programs.main()
