#!/usr/bin/env python3
"""-e follow: calls of kernel functions that take one type of object, and the life of one object."""
import json
import re
import unittest
from pathlib import Path

import programs
from recorder_loads import loop_disk

BLOCK, SECTOR = 4096, 512
HAS_PROBES = Path("/sys/bus/event_source/devices/kprobe").exists()


@programs.needs_root
@programs.needs_btf
class Follow(programs.Scratch):
    def setUp(self):
        super().setUp()
        self.need_recorder("follow")

    def record(self, terms, *command, options=(), status=0):
        return self.run_program(programs.BIN / "tacho-record", "-o", "f.data", *options, "-e", f"follow/{terms}/", "--",
                                *(command or ["true"]), status=status).stderr.decode()

    def calls(self, *words):
        return [json.loads(line) for line in self.tacho("calls", "-i", "f.data", "--json", *words).stdout.decode().splitlines()]

    def test_wrong_use_is_answered(self):
        for terms, said in (("show=bi_opf", "the type is missing: type='struct bio'"),
                            ("type=struct no_such_struct", "the kernel's BTF has no type 'struct no_such_struct'"),
                            ("type=struct bio,show=bi_iter.bi_setcor", "bi_iter has no member 'bi_setcor'; it has: bi_sector"),
                            ("type=struct bio,show=bi_iter", "bi_iter is not a number of 1 to 8 bytes; its members are: bi_sector"),
                            ("type=struct bio,show=bi_opf,bi_opf", "bi_opf is given twice"),
                            ("type=struct bio,functions=zzz*", "matches 'zzz*'"),
                            ("type=struct bio,functions=submit_bio,stop=submit_bio", "stop: needs start=FUNCTION"),
                            ("type=struct bio,functions=submit_bio,start=submit_boi", "start: 'submit_boi' is not a followed function"),
                            ("type=struct bio,no_such_option=1", "there is no such option")):
            with self.subTest(terms):
                answer = self.record(terms, status=None)
                self.assertIn(said, answer)
                lines = answer.rstrip().splitlines()
                self.assertEqual(len([line for line in lines if not line.startswith("    ")]), 1, answer)

    @unittest.skipIf(HAS_PROBES, "this kernel has probes")
    def test_a_kernel_without_probes_is_refused(self):
        answer = self.record("type=struct bio,functions=submit_bio", status=None)
        self.assertIn("this kernel has no probes on its functions (CONFIG_KPROBE_EVENTS, or CONFIG_FPROBE for many at once)", answer)
        self.assertEqual(len(answer.strip().splitlines()), 1, answer)
        self.assertFalse((self.folder / "f.data").exists())


@unittest.skipUnless(HAS_PROBES, "needs a kernel with kprobes (tests/vm boots one)")
class Disk(Follow):
    test_wrong_use_is_answered = test_a_kernel_without_probes_is_refused = None

    def setUp(self):
        super().setUp()
        self.disk, self.dev = loop_disk(self, 4 << 20)

    def reads(self, count, skip):
        return ["dd", f"if={self.disk}", "of=/dev/null", f"bs={BLOCK}", f"count={count}", f"skip={skip}", "iflag=direct"]

    def test_one_bio_is_followed(self):
        """Direct reads at known offsets: each is a bio, submitted by its thread and ended by another one."""
        said = self.record("type=struct bio,show=bi_iter.bi_sector,bi_iter.bi_size,bi_opf,bi_bdev.bd_dev,functions=*submit_bio*,"
                           "start=submit_bio,stop=bio_endio", *self.reads(5, 77))
        self.assertRegex(said, r"follow: [1-9]\d+ functions of the kernel take a struct bio \*; [1-9]\d* are followed")
        calls = self.calls()
        begun = [call for call in calls if call["function"] == "submit_bio"]
        self.assertEqual([(call["bi_iter.bi_sector"], call["bi_iter.bi_size"], call["bi_bdev.bd_dev"], call["bi_opf"] & 0xff) for call in begun],
                         [((77 + i) * BLOCK // SECTOR, BLOCK, self.dev, 0) for i in range(5)], calls)
        self.assertEqual({call["comm"] for call in begun}, {"dd"})
        ended = [call for call in calls if call["function"] == "bio_endio"]
        self.assertEqual([call["object"] for call in ended], [call["object"] for call in begun], "nobody else's, in every thread")
        for submitted, end in zip(begun, ended):
            self.assertGreater(end["begin"], submitted["begin"])
        inside = [call for call in calls if call["depth"] == 2 and begun[0]["begin"] <= call["begin"] <= begun[0]["begin"] + begun[0]["duration"]]
        self.assertIn("submit_bio_noacct", {call["function"] for call in inside})
        self.check_life(calls, begun[-1]["object"])

    def check_life(self, calls, address):
        life = self.calls("--object", address)
        self.assertEqual(life, [call for call in calls if address in (call["object"], call["ret"])])
        self.assertTrue({"submit_bio", "bio_endio"} <= {call["function"] for call in life}, life)
        self.assertRegex(self.tacho("calls", "-i", "f.data", "--object", address).stdout.decode(), r"(?m)^ +\d+  submit_bio\(\) \{$")
        self.assertEqual(self.calls("--object", "0xffff000000000000"), [])
        hist = self.tacho("table", "-i", "f.data", "--by", "function,bi_iter.bi_size").stdout.decode()
        self.assertRegex(hist, r"(?m)^submit_bio +4096 +5 ")

    def test_options_are_tested_in_the_kernel(self):
        both = ["sh", "-c", f"{' '.join(self.reads(3, 0))}; exec cat /dev/null"]
        self.record("type=struct bio,functions=submit_bio,comm=dd", *both)
        self.assertEqual([call["function"] for call in self.calls()], ["submit_bio"] * 3)
        self.record("type=struct bio,functions=submit_bio*,depth=1,sample=2", *self.reads(8, 0))
        calls = self.calls()
        self.assertEqual({call["depth"] for call in calls}, {1})
        self.assertEqual({call["function"] for call in calls}, {"submit_bio_wait"})
        self.assertIn(len(calls), range(3, 6))

    def test_the_time_of_detaching_is_printed(self):
        said = self.record("type=struct bio,functions=bio_*", *self.reads(1, 0), options=["-v"])
        self.assertTrue(self.calls(), said)
        self.assertRegex(said, r"follow: \d+ functions: \d+ probes attached in ")
        off = re.search(r"follow: \d+ functions: (\d+) probes detached in \d+\.\d+ s", said)
        self.assertIsNotNone(off, said)
        notice = re.search(r"follow: detaching (\d+) probes, which takes some seconds on this kernel\n", said)
        if "each by its own probe" in said and int(off[1]) > 50:
            self.assertIsNotNone(notice, said)
            self.assertEqual(notice[1], off[1])
        else:
            self.assertIsNone(notice, said)


if __name__ == "__main__":
    programs.main()
