#!/usr/bin/env python3
"""Probe arguments by their names in debugging information: the program prints its arguments, and every
sample has the same, whichever compiler made it and however hard it optimised."""
import os
import random
import re
import shutil
import subprocess
import unittest
from pathlib import Path

import programs

C = r"""
#include <stdint.h>
#include <stdio.h>
struct head { uint16_t kind; int32_t length; unsigned flag : 3; };
struct request { const char* path; struct head head; char text[16]; struct request* next; union { long number; }; };
struct point { int x, y; };
struct wide { long a, b, c; };
struct mixed { double d; long n; };
enum mode { READ = 1, WRITE = -2 };
__attribute__((noinline)) long handle(struct request* request, const char* name, int32_t size, struct point at,
                                      enum mode mode, struct wide w, struct mixed m, uint8_t last, int seventh) {
  __asm__ volatile("" ::: "memory");
  return request->head.length + name[0] + size + at.x + at.y + mode + w.b + m.n + last + seventh + (long)m.d;
}
__attribute__((noinline)) struct wide big(int first, double f, short second) {
  struct wide w = {first, second, (long)f};
  __asm__ volatile("" ::: "memory");
  return w;
}
__attribute__((noinline)) static long local(long used, struct point at) {
  __asm__ volatile("" ::"r"(used), "r"(at.x) : "memory");
  return used + at.y;
}
long (*volatile by_pointer)(long, struct point) = local;
int main(void) {
  struct request inner = {"inner path", {7, -70, 1}, "inner text", 0, {5}};
  struct request request = {"the path", {3, 1234, 2}, "the text", &inner, {-6}};
  long sum = 0;
  for (int i = 0; i < 3; ++i) {
    struct point at = {i + 10, -i};
    struct wide w = {100 + i, 200 + i, 300 + i};
    struct mixed m = {0.5, 4000 + i};
    const enum mode mode = i == 0 ? READ : WRITE;
    request.head.length += i;
    printf("length=%d path=\"%s\" text=\"%s\" inner=%d number=%ld name=\"%s\" size=%d x=%d y=%d mode=%d b=%ld n=%ld last=%d seventh=%d\n",
           request.head.length, request.path, request.text, inner.head.kind, request.number, "a name", i - 1, at.x, at.y, mode,
           w.b, m.n, 250 + i, -7 - i);
    printf("big first=%d second=%d\n", i, -i);
    printf("local used=%d y=%d\n", 70 + i, at.y);
    sum += handle(&request, "a name", i - 1, at, mode, w, m, 250 + i, -7 - i);
    sum += big(i, 2.0, -i).b + by_pointer(70 + i, at);
  }
  fflush(stdout);
  return sum == 0;
}
"""
# A probe takes twelve arguments.
HANDLE = ("request->head.length, path=request->path:string, request->text, inner=request->next->head.kind, request->number, size",
          "name:string, at.x, at.y, mode, w.b, m.n, last, seventh")
CPP = r"""
#include <cstdio>
#include <string>
namespace shop {
#ifdef __clang__
#define KEPT __attribute__((noinline))
#else
#define KEPT __attribute__((noipa))  /* no copy with other arguments in its place */
#endif
struct Base { long id; };
struct Item : Base { int price; explicit Item(int p) : Base{900 + p}, price(p) {} ~Item() { price = 0; } };
class Till {
 public:
  KEPT long sell(Item item, const Item& offer, int count) {
    __asm__ volatile("" ::: "memory");
    return total += item.price * count + offer.price;
  }
  int total = 11;
};
}
int main() {
  shop::Till till;
  for (int i = 1; i < 4; ++i) {
    std::printf("total=%d price=%d id=%d offer=%d count=%d\n", till.total, i * 2, 900 + i * 2, i * 3, i);
    till.sell(shop::Item(i * 2), shop::Item(i * 3), i);
  }
  std::fflush(stdout);
}
"""
SELL = "_ZN4shop4Till4sellENS_4ItemERKS1_i"
UPROBES = Path("/sys/bus/event_source/devices/uprobe/type")
RECORDS = programs.needs_root(programs.needs_btf(unittest.skipUnless(UPROBES.exists(), "needs uprobes")(lambda test: test)))


def builds():
    for compiler in ("cc", "clang"):
        if shutil.which(compiler):
            yield from ((compiler, level) for level in ("-O0", "-O2"))


def values(line):
    return dict(re.findall(r'(\w+)=("[^"]*"|\S+)', line))


@unittest.skipUnless(os.uname().machine == "x86_64", "arguments are found on x86-64 alone")
class NamedArguments(programs.Scratch):
    def build(self, source, compiler, *options, name="program"):
        suffix = "cc" if "namespace" in source else "c"
        compiler = {"cc": "c++", "clang": "clang++"}[compiler] if suffix == "cc" else compiler
        (self.folder / f"{name}.{suffix}").write_text(source)
        subprocess.run([compiler, "-g", *options, "-o", self.folder / name, self.folder / f"{name}.{suffix}"], check=True)

    def ask(self, name, *wanted, function="handle", program="program"):
        """The lines of tacho-report with the locations of arguments."""
        symbols = self.run_program("nm", "program").stdout.decode()
        start = int(re.search(rf"([0-9a-f]+) [tT] {function}\n", symbols).group(1), 16)
        headers = self.run_program("readelf", "-lW", "program").stdout.decode()
        for offset, address, size in re.findall(r"LOAD +(0x\w+) (0x\w+) 0x\w+ (0x\w+)", headers):
            if int(address, 16) <= start < int(address, 16) + int(size, 16):
                start += int(offset, 16) - int(address, 16)
                break
        return self.run_program(programs.BIN / "tacho-report", "parameters", self.folder / program, start, function, *wanted,
                                status=None).stdout.decode().splitlines()

    def test_where_they_are(self):
        for compiler, level in builds():
            with self.subTest(compiler=compiler, level=level):
                self.build(C, compiler, level)
                reported = self.ask("program", "request", "size", "at.y", "w.b", "m.n", "last", "request->next->text", "request->path")
                self.assertEqual(reported, ["value rdi 0 8 pointer register 0", "value rdx 0 4 signed register 0",
                                        "value rcx 32 4 signed register 0", "value rsp 0 8 signed memory 16",
                                        "value r9 0 8 signed register 0", "value rsp 0 1 unsigned memory 32",
                                        "value rdi 0 8 text address 20 40", "value rdi 0 8 pointer memory 0"])
                # The first register has the address of the result.
                self.assertEqual(self.ask("program", "first", "second", function="big"),
                                 ["value rsi 0 4 signed register 0", "value rdx 0 2 signed register 0"])

    def test_unavailable_arguments_are_named(self):
        self.build(C, "cc", "-O2")
        for wanted, words in {"m.d": "floating point", "w": "name a member, as with a dot or ->: a, b, c",
                              "request->head.flag": "bit field", "at.z": "there is x, y", "size->x": "is no pointer",
                              "nosuch": "the function has request (request *), name (const char *), size (int32_t), at (point)",
                              "?": "the function has request", "request->": "is no name"}.items():
            self.assertIn(words, "".join(self.ask("program", wanted)), wanted)
        self.run_program("strip", "-g", "-o", "bare", "program")
        self.assertIn("it has no debugging information (compile with -g", "".join(self.ask("program", "size", program="bare")))

    def test_debugging_information_apart_and_packed(self):
        self.build(C, "cc", "-O2", "-Wl,--build-id")
        self.run_program("objcopy", "--only-keep-debug", "--compress-debug-sections", "program", "program.debug")
        self.run_program("strip", "-g", "-o", "bare", "program")
        self.run_program("objcopy", "--add-gnu-debuglink=program.debug", "bare")
        self.assertEqual(self.ask("program", "at.y", program="bare"), ["value rcx 32 4 signed register 0"])

    def test_damaged_information_costs_nothing_more(self):
        self.build(C, "cc", "-O2")
        whole = bytearray((self.folder / "program").read_bytes())
        sections = self.run_program("readelf", "-SW", "program").stdout.decode()
        places = [(int(offset, 16), int(size, 16)) for offset, size in
                  re.findall(r"\.debug_(?:info|abbrev|loclists|str)\s+PROGBITS\s+\w+ (\w+) (\w+)", sections)]
        self.assertGreater(len(places), 2, sections)
        dice = random.Random(10)
        for _ in range(60):
            mutant = bytearray(whole)
            for _ in range(dice.randint(1, 8)):
                offset, size = dice.choice(places)
                mutant[offset + dice.randrange(size)] = dice.randrange(256)
            (self.folder / "mutant").write_bytes(mutant)
            reported = self.ask("program", "request->next->text", "at.y", "seventh", program="mutant")
            self.assertTrue(reported and all(line.startswith(("value ", "error ")) for line in reported), reported)

    def test_they_are_listed(self):
        self.build(C, "cc", "-O2")
        lines = self.tacho("list", "-v", "uprobe:./program:handle").stdout.decode().splitlines()
        self.assertRegex(lines[0], r"^  uprobe:\./program:handle +\[Function\]$")
        self.assertIn("the function has request (request *), name (const char *), size (int32_t)", lines[1])
        self.assertIn("uprobe:./program:local ", self.tacho("list", "uprobe:./program:l*").stdout.decode())
        self.assertIn(b"did you mean 'handle'?", self.tacho("list", "uprobe:./program:hnadle", status=1).stderr)
        self.assertIn(b"no such file", self.tacho("list", "uprobe:./nosuch:f", status=1).stderr.lower())

    def recorded(self, event):
        done = self.run_program(programs.BIN / "tacho-record", "-o", "n.data", "-e", event, "--", "./program")
        text = self.tacho("script", "-i", "n.data", "-F", "event,payload").stdout.decode()
        return done.stdout.decode().splitlines(), [values(line.split(": ", 1)[1]) for line in text.splitlines() if "=" in line]

    @RECORDS
    def test_samples_have_what_the_program_called_with(self):
        for compiler, level in builds():
            with self.subTest(compiler=compiler, level=level):
                self.build(C, compiler, level)
                halves = [self.recorded(f"uprobe:./program:handle({wanted})") for wanted in HANDLE]
                seen = [first | second for first, second in zip(halves[0][1], halves[1][1], strict=True)]
                self.assertEqual(seen, [values(line) for line in halves[0][0] if line.startswith("length=")])
                self.assertEqual(len(seen), 3)
                for function, wanted in (("big", "first, second"), ("local", "used, at.y")):
                    said, seen = self.recorded(f"uprobe:./program:{function}({wanted})")
                    self.assertEqual(seen, [values(line) for line in said if line.startswith(function + " ")], function)

    @RECORDS
    def test_unavailable_arguments_are_refused(self):
        self.build(C, "cc", "-O2")
        self.run_program("strip", "-g", "-o", "bare", "program")
        for event, words in {"program:handle(size, at.z)": "): 'at.z': there is no member 'z'; there is x, y",
                             "program:handle(?)": "): the function has request (request *), name",
                             "bare:handle(size)": "'size': it has no debugging information (compile with -g, or install its debug "
                                                  "symbols); say where it is: size=arg1, or size=%di",
                             "program:handle+4(size)": "name registers, as %di"}.items():
            done = self.run_program(programs.BIN / "tacho-record", "-o", "n.data", "-e", f"uprobe:./{event}", "--", "true", status=1)
            self.assertIn(words, done.stderr.decode(), event)

    @RECORDS
    def test_of_cpp_by_reference_and_in_classes(self):
        for compiler, level in builds():
            if shutil.which({"cc": "c++", "clang": "clang++"}[compiler]) is None:
                continue
            with self.subTest(compiler=compiler, level=level):
                self.build(CPP, compiler, level)
                said, seen = self.recorded(f"uprobe:./program:{SELL}(this->total, item.price, item.id, offer=offer.price, count)")
                self.assertEqual(seen, [values(line) for line in said])
                self.assertEqual(len(seen), 3)


if __name__ == "__main__":
    programs.main()
