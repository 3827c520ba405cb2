#!/usr/bin/env python3
"""Roles and formats of payload fields (tacho/event.h), and fields with the names of sample values."""
import json
import struct

import made_capture as made
import made_payload
import programs
from made_payload import ENUM, TEXT, Field

CHAIN = [2**64 - 512, made.LEAF_A + 4, made.MAIN + 9]  # PERF_CONTEXT_USER


class PayloadRoles(programs.Scratch):
    def write(self, capture):
        (self.folder / "perf.data").write_bytes(capture.file())

    def output(self, *words, status=0):
        done = self.tacho(*words, status=status)
        return done.stdout.decode(), done.stderr.decode()

    def shadowed(self):
        """The payload's comm, tid and cpu are not the sample's."""
        capture = made_payload.capture(wake=[Field("delay", role="value"), Field("tid", size=4), Field("cpu", size=4),
                                             Field("comm", TEXT, 1, 16)])
        for delay, tid, cpu, comm in [(5, 100, 9, b"woken"), (6, 20, 10, b"woken"), (70, 3, 11, b"other")]:
            capture.sample(raw=struct.pack("<QII16s", delay, tid, cpu, comm))
        self.write(capture)

    def headings(self, *words):
        out, said = self.output("hist", *words)
        return [line.removeprefix("wake: delay") for line in out.splitlines() if line.startswith("wake: ")], said

    def test_a_field_is_not_hidden_by_the_samples_own_value(self):
        self.shadowed()
        groups, said = self.headings("--by", "comm")
        self.assertEqual(groups, [", comm other, 1 value", ", comm woken, 2 values"])
        self.assertEqual(said, "tacho hist: --by comm is the field of 'wake'; the sample's own is sample.comm\n")
        self.assertEqual(self.headings("--by", "sample.comm"), ([", sample.comm spin, 3 values"], ""))
        self.assertEqual(self.headings("--by", "sample.cpu")[0], [", sample.cpu 0, 3 values"])
        self.assertEqual(self.headings("--by", "pid"), ([f", pid {made.PID}, 3 values"], ""))

    def test_groups_of_numbers_stand_in_the_order_of_numbers(self):
        self.shadowed()
        groups, _ = self.headings("--by", "tid")
        self.assertEqual(groups, [", tid 3, 1 value", ", tid 20, 1 value", ", tid 100, 1 value"])

    def test_several_keys_and_the_largest_groups_alone(self):
        self.shadowed()
        groups, _ = self.headings("--by", "comm,cpu")
        self.assertEqual(groups, [", comm other, cpu 11, 1 value", ", comm woken, cpu 9, 1 value",
                                  ", comm woken, cpu 10, 1 value"])
        groups, _ = self.headings("--by", "comm", "--top", "1")
        self.assertEqual(groups, [", comm woken, 2 values"])

    def test_texts_are_counted_by_value(self):
        self.shadowed()
        out, _ = self.output("hist", "--field", "comm")
        self.assertEqual(out, "wake: comm, 3 values\n"
                              "       count    share  comm\n"
                              "           2   66.67%  woken\n"
                              "           1   33.33%  other\n")
        out, _ = self.output("hist", "--field", "comm", "--top", "1")
        self.assertIn("           1   33.33%  1 other value\n", out)
        self.assertIn("counted one by one", self.output("hist", "--field", "comm", "--linear", "4", status=1)[1])

    def test_a_wrong_key_lists_what_there_is(self):
        self.shadowed()
        _, said = self.output("hist", "--by", "nosuch", status=1)
        self.assertEqual(said, "tacho: perf.data: --by: there is no 'nosuch'; take comm, pid, tid, cpu, time, period, "
                               "cgroup, event, or a field of 'wake': delay, tid, cpu, comm\n")

    def test_fields_of_role_key_group_by_default(self):
        capture = made_payload.capture(io=[
            Field("bytes", role="value"), Field("op", ENUM, 4, role="key", enumerators=((0, "READ"), (1, "WRITE"))),
            Field("queue", size=4, role="key")])
        for bytes_, op, queue in [(512, 1, 2), (512, 0, 10), (4096, 1, 2)]:
            capture.sample(raw=struct.pack("<QII", bytes_, op, queue))
        self.write(capture)
        heads = lambda out: [line for line in out.splitlines() if line.startswith("io:")]
        self.assertEqual(heads(self.output("hist")[0]),
                         ["io: bytes, op READ, queue 10, 1 value", "io: bytes, op WRITE, queue 2, 2 values"])
        self.assertEqual(heads(self.output("hist", "--by", "none")[0]), ["io: bytes, 3 values"])
        self.assertIn("           2   66.67%  WRITE\n", self.output("hist", "--field", "op", "--by", "none")[0])

    def weighted(self):
        capture = made_payload.capture(True, alloc=[Field("size", role="weight"), Field("zone", size=8)],
                                       free=[Field("size")])
        for event, size in [(0, 100), (0, 28), (0, 0), (1, 7)]:
            capture.sample(event, chain=CHAIN, raw=struct.pack("<QQ", size, 3))
        self.write(capture)

    def test_the_field_of_role_weight_weighs_stacks_and_a_line_says_so(self):
        self.weighted()
        out, said = self.output("folded", "--event-filter", "alloc")
        self.assertRegex(out, r"^spin;.* 128\n$")
        self.assertIn("tacho folded: stacks are weighted by size, as the event says (role:weight); --weight period or "
                      "samples changes that\n", said)
        for weight, sum_ in [("period", 3000), ("samples", 3), ("zone", 9)]:
            out, said = self.output("folded", "--event-filter", "alloc", "--weight", weight)
            self.assertRegex(out, rf"^spin;.* {sum_}\n$")
            self.assertNotIn("weighted by", said)

    def test_a_payload_that_ends_before_its_weight_costs_its_own_sample(self):
        capture = made_payload.capture(True, alloc=[Field("zone", size=8), Field("size", role="weight")])
        for payload in (struct.pack("<QQ", 3, 100), struct.pack("<Q", 3), struct.pack("<QQ", 3, 28)):
            capture.sample(chain=CHAIN, raw=payload)
        self.write(capture)
        reported = "a payload without the field of --weight; its sample is left out"
        for words in ([], ["--weight", "size"]):
            out, said = self.output("folded", *words, status=3)
            self.assertRegex(out, r"^spin;.* 128\n$")
            self.assertIn(reported, said)
            out, said = self.output("report", "--stdio", *words, status=3)
            self.assertIn("Event count (approx.): 128", out)
            self.assertIn(reported, said)
        self.assertIn("have no number named 'nosuch'", self.output("report", "--weight", "nosuch", status=1)[1])

    def test_where_no_payload_has_its_weight_stacks_are_not_blamed(self):
        capture = made_payload.capture(True, alloc=[Field("zone", size=8), Field("size", role="weight")])
        capture.sample(chain=CHAIN, raw=struct.pack("<Q", 3))
        self.write(capture)
        out, said = self.output("folded", status=3)
        self.assertEqual(out, "")
        self.assertIn("a payload without the field of --weight; its sample", said)
        self.assertNotIn("no sample has a stack", said)

    def test_negative_weights_are_left_out_and_counted(self):
        capture = made_payload.capture(True, alloc=[Field("size", made_payload.SIGNED, role="weight")])
        for size in (100, -5, 28):
            capture.sample(chain=CHAIN, raw=struct.pack("<q", size))
        self.write(capture)
        reported = "1 samples are left out: their weight is negative"
        for words in ([], ["--weight", "size"]):
            out, said = self.output("folded", *words)
            self.assertRegex(out, r"^spin;.* 128\n$")
            self.assertIn(reported, said)
            out, said = self.output("report", "--stdio", *words)
            self.assertIn("Event count (approx.): 128", out)
            self.assertIn(reported, said)

    def test_several_events_give_a_note(self):
        self.weighted()
        out, said = self.output("folded", "--weight", "samples")
        self.assertEqual({line.split(";")[0]: line.rsplit(" ", 1)[1] for line in out.splitlines()}, {"alloc": "3", "free": "1"})
        self.assertIn("tacho folded: the stacks of 'alloc', 'free' are below the names of these events; --event NAME "
                      "takes one event, without its name\n", said)
        out, said = self.output("folded", "--weight", "zone")
        self.assertTrue(all(line.startswith("spin;") for line in out.splitlines()), "free has no such field")
        _, said = self.output("folded", "--weight", "samples", "--as-perf")
        self.assertIn("tacho folded: took the samples of 'alloc' and left out those of 'free'; --event NAME takes "
                      "another event\n", said)
        _, said = self.output("folded", "--weight", "samples", "--event-filter", "free")
        self.assertNotIn("stand below", said)

    def test_an_unknown_event_is_refused(self):
        self.weighted()
        out, said = self.output("folded", "--event-filter", "nosuch", status=1)
        self.assertEqual((out, said), ("", "tacho: --event-filter: there is no event 'nosuch'; it has alloc, "
                                           "free\n"))

    def addressed(self, chains=False):
        """A payload with a kernel and a user stack, and an address of each."""
        capture = made_payload.capture(chains, io=[
            Field("at", format="uaddr"), Field("from", format="kaddr"), Field("kernel", count=4, role="stack"),
            Field("user", count=3, role="stack", format="uaddr")])
        kernel = made.KERNEL_TEXT
        capture.sample(ip=made.MAIN + 1, chain=[2**64 - 512, made.MAIN + 1],
                       raw=struct.pack("<9Q", made.LEAF_A + 4, kernel + 0x20, kernel + 0x10, kernel + 0x30, 0, 99,
                                       made.LEAF_B + 4, made.MAIN + 9, 0))
        capture.sample(ip=made.MAIN + 1, chain=[2**64 - 512, made.MAIN + 1], raw=bytes(72))
        self.write(capture)
        symbols = [(0, "_text"), (8, "do_start"), (0x28, "do_read"), (0x2000000, "_etext")]
        (self.folder / "kallsyms").write_text("".join(f"{kernel + at:x} T {name}\n" for at, name in symbols))
        return ["--kallsyms", "kallsyms", "--symfs", programs.ROOT / "tests/golden/symfs"]

    STACK = [made.KERNEL_TEXT + 0x10, made.KERNEL_TEXT + 0x30, made.LEAF_B + 4, made.MAIN + 9]

    def test_a_stack_in_the_payload_is_the_samples_stack(self):
        for chains in [False, True]:
            words = self.addressed(chains)
            out, _ = self.output("script", "--json", *words, status=None)
            first, second = map(json.loads, out.splitlines())
            self.assertEqual([int(frame["ip"], 16) for frame in first["stack"]], self.STACK)
            self.assertEqual([frame["symbol"] for frame in first["stack"]], ["do_start", "do_read", "leaf_b", "main"])
            self.assertEqual(second["stack"], [])
            self.assertEqual([int(one, 16) for one in first["fields"]["kernel"]], self.STACK[:2])

    def test_a_stack_in_the_payload_is_folded(self):
        words = self.addressed()
        out, _ = self.output("folded", *words, status=None)
        self.assertEqual(out, "spin 1000\nspin;main;leaf_b;do_read;do_start 1000\n")

    def test_report_draws_the_stack_in_the_payload(self):
        words = self.addressed()
        out, _ = self.output("report", "-g", "caller", "--sort", "sym", *words, status=None)
        for name in ["do_start", "do_read", "leaf_b", "main"]:
            self.assertIn(name, out)

    def test_a_payload_that_ends_inside_its_stack_has_what_is_there(self):
        capture = made_payload.capture(io=[Field("bytes"), Field("stack", count=64, role="stack")])
        capture.sample(raw=struct.pack("<QQ", 5, made.MAIN + 9))
        capture.sample(raw=struct.pack("<Q", 5))
        capture.sample(raw=struct.pack("<QQQ", 5, 2**64 - 1, made.MAIN + 9))  # not an address: perf takes the chain for corrupt
        self.write(capture)
        out, _ = self.output("script", "--json", status=None)
        stacks = [[frame["ip"] for frame in json.loads(line)["stack"]] for line in out.splitlines()]
        self.assertEqual(stacks, [[f"{made.MAIN + 9:#x}"], [], []])

    def test_text_shows_the_payload_and_its_stack_and_perfs_what_the_kernel_recorded(self):
        words = self.addressed(True)
        out, _ = self.output("script", *words, status=None)
        self.assertIn(" io: at=", out.replace("  ", " "))
        self.assertIn(f"\t{made.KERNEL_TEXT + 0x30:16x} do_read", out)
        self.assertNotIn("BPF output:", out)
        out, _ = self.output("script", "-F", "+bpf-output", *words, status=None)
        self.assertIn("BPF output:", out)
        out = self.tacho("script", "--as-perf", *words, status=None).stdout
        self.assertIn(b"BPF output:", out)
        self.assertNotIn(b"at=", out)
        out, _ = self.output("script", "--as-perf", "-F", "comm,ip,sym", *words, status=None)
        self.assertEqual(out.splitlines()[:2], ["spin ", f"\t{made.MAIN + 1 - made.START:16x} main"])
        out, _ = self.output("script", "-F", "comm,payload,ip,sym", *words, status=None)
        self.assertIn(f"\t{made.KERNEL_TEXT + 0x30:16x} do_read\n", out)

    def test_addresses_have_names_in_text_and_json(self):
        words = self.addressed()
        out, _ = self.output("script", "-G", "-F", "comm,payload", *words, status=None)
        kernel = made.KERNEL_TEXT
        self.assertIn(f"at={made.LEAF_A + 4:#x}(leaf_a+0x4) from={kernel + 0x20:#x}(do_start+0x18) "
                      f"kernel=[{kernel + 0x10:#x}(do_start+0x8),{kernel + 0x30:#x}(do_read+0x8)] "
                      f"user=[{made.LEAF_B + 4:#x}(leaf_b+0x4),", out)
        self.assertIn("at=0x0 from=0x0 kernel=[] user=[]", out)
        out, _ = self.output("script", "--json", *words, status=None)
        first = json.loads(out.splitlines()[0])
        self.assertEqual(first["fields"]["from"], f"{kernel + 0x20:#x}")
        self.assertEqual([first["symbols"][name]["symbol"] for name in ("at", "from")], ["leaf_a", "do_start"])
        self.assertEqual(first["symbols"]["from"]["offset"], 0x18)
        self.assertEqual([frame["symbol"] for frame in first["symbols"]["kernel"]], ["do_start", "do_read"])


if __name__ == "__main__":
    programs.main()
