#!/usr/bin/env python3
"""BPF objects of users: values for their globals."""
import subprocess
import unittest

import programs

GLOBALS = r"""
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <tacho/event.h>

enum mode { QUIET, LOUD = 7 };
struct limits { __s32 low; __u32 few : 3; __u32 many : 5; };

const volatile __u8 tiny = 1;
const volatile __s16 below;
const volatile __u64 large = 5;
const volatile bool on;
const volatile char word[8] = "unset";
const volatile enum mode mode = QUIET;
const volatile struct limits limits;
const volatile __u16 ports[3] = {1, 2, 3};
static const volatile __s64 own = -9;
const __u32 fixed = 3;
__u32 counted;

struct values {
  __u64 large;
  __s64 own;
  __s32 low;
  __u32 mode;
  __u16 ports[4];
  __s16 below;
  __u8 tiny, on, few, many;
  char word[10];
};
EVENT(values, struct values);

struct {
  __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
} channel SEC(".maps") EVENT_CHANNEL(values);

SEC("tracepoint/syscalls/sys_enter_getppid")
int on_getppid(void *context) {
  struct values event = {.large = large, .own = own, .low = limits.low, .mode = mode, .below = below, .tiny = tiny,
                         .on = on, .few = limits.few, .many = limits.many};
  for (int i = 0; i < 3; ++i) event.ports[i] = ports[i];
  for (int i = 0; i < 8; ++i) event.word[i] = word[i];
  __sync_fetch_and_add(&counted, fixed);
  bpf_perf_event_output(context, &channel, BPF_F_CURRENT_CPU, &event, sizeof event);
  return 1;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
"""
ALL = ("large (u64)", "own (s64)", "tiny (u8)", "below (s16)", "on (bool)", "word (char[8])", "mode (enum)",
       "limits.low (s32), limits.few (u3), limits.many (u5)", "ports (u16[3])")


@programs.needs_root
@programs.needs_btf
@programs.needs_clang
class Globals(programs.Scratch):
    def setUp(self):
        super().setUp()
        (self.folder / "globals.bpf.c").write_text(GLOBALS)

    def record(self, event, *options, status=0):
        return self.run_program(programs.BIN / "tacho-record", "-q", "-o", "out.data", "-e", event, *options, "--",
                                programs.BIN / "getppid_load", "2", status=status)

    def payloads(self):
        text = self.tacho("script", "-i", "out.data", "-F", "event,payload").stdout.decode()
        return [line.split("values:", 1)[1].strip() for line in text.splitlines() if "values:" in line]

    def test_values_reach_the_program_by_name_and_type(self):
        self.record("./globals.bpf.c")
        before = self.payloads()
        self.assertEqual(len(before), 2)
        for part in ("large=5", "own=-9", "low=0", "mode=0", "ports=[1,2,3,0]", "tiny=1", "on=0", 'word="unset"'):
            self.assertIn(part, before[0])
        self.record("./globals.bpf.c/large=18446744073709551615,own=0x10,limits.low=-3,mode=LOUD,below=-32768,"
                    "tiny=255,on,limits.few=7,limits.many=17,ports=80:443,ports[2]=65535,word='a,/b'/")
        after = self.payloads()
        self.assertEqual(len(after), 2)
        for part in ("large=18446744073709551615", "own=16", "low=-3", "mode=7", "ports=[80,443,65535,0]",
                     "below=-32768", "tiny=255", "on=1", "few=7", "many=17", 'word="a,/b"'):
            self.assertIn(part, after[0])

    def compile(self):
        self.record("./globals.bpf.c")  # makes vmlinux.h
        cache = next((self.folder / ".cache" / "tacho").glob("vmlinux-*"))
        subprocess.run(["clang", "-target", "bpf", "-O2", "-g", "-I", cache, "-I", programs.ROOT / "bpf" / "include",
                        "-c", "globals.bpf.c", "-o", "globals.bpf.o"], cwd=self.folder, check=True)

    def refusal(self, terms):
        done = self.record(f"./globals.bpf.o/{terms}/", status=1)
        lines = done.stderr.decode().strip().splitlines()
        self.assertEqual(len(lines), 1, lines)
        return lines[0]

    def test_a_wrong_one_of_an_object_file_is_one_line_that_points_at_the_letter(self):
        self.compile()
        self.record("./globals.bpf.o/large=42,word=x/")
        self.assertIn("large=42", self.payloads()[0])
        unknown = self.refusal("large=1,larg=2")
        self.assertIn("letter 25: larg: there is no `const volatile` global 'larg'; there are: ", unknown)
        for part in ALL:
            self.assertIn(part, unknown)
        for hidden in ("fixed", "counted", "LICENSE"):
            self.assertNotIn(hidden, unknown)
        self.assertIn("letter 22: tiny: 256 is out of range: u8 takes 0 to 255", self.refusal("tiny=256"))
        self.assertIn("letter 22: mode: there is no 'SILENT' in its enum, which has QUIET LOUD", self.refusal("mode=SILENT"))
        self.assertIn("letter 26: ports: 'x' is not a number", self.refusal("ports=80:x"))
        self.assertIn("it is too long: char[8] takes 7 letters", self.refusal("word=12345678"))
        self.assertIn("fixed is not declared `const volatile`", self.refusal("fixed=1"))
        self.assertIn("counted is not declared `const volatile`", self.refusal("counted=1"))
        self.assertIn("a value is missing", self.refusal("large"))
        self.assertIn("ports has the elements 0 to 2", self.refusal("ports[3]=1"))


if __name__ == "__main__":
    programs.main()
