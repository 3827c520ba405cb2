#!/usr/bin/env python3
"""tacho why --page: the findings of the page are those of the text, and their samples add up to their times."""
import bisect
import itertools
import json
import struct

import made_capture as made
import made_payload
import programs
from made_payload import PAYLOAD_SCHEMAS, Field
from page_data import Page, Tags
from why_test import MS, ONE, SINK, THREE, TWO, USER, MadeWaits

LOCK = ("schedule", "futex_wait", "recurse", "main")


class PageOfAnAnswer(MadeWaits):
    def page(self, *words):
        """The page, and the answer that was printed with it."""
        found = json.loads(self.why("--json", "--page", "why.html", *words).stdout)
        return Page((self.folder / "why.html").read_text()), found

    def parts(self, page):
        """(title, ns, {sample: ns}) of each finding, and then of the waits for work."""
        found, at = [], 0
        for part in [*page.head["why"]["findings"], *page.head["why"]["idle"]]:
            end = at + part["samples"]
            samples = dict(zip(page.columns["why.sample"][at:end], page.columns["why.time"][at:end], strict=True))
            self.assertEqual(len(samples), part["samples"], "a sample twice")
            found.append((part["title"], part["time_ns"], samples))
            at = end
        self.assertEqual(at, len(page.columns["why.sample"]))
        return found

    def check(self, *words):
        """The page's parts, after it was compared with the JSON form."""
        page, answer = self.page(*words)
        parts = self.parts(page)
        self.assertEqual([ns for _, ns, _ in parts], [one["time_ns"] for one in answer["findings"] + answer["idle"]])
        self.assertEqual(page.head["why"]["missing"], answer["missing"])
        for title, ns, samples in parts:
            self.assertAlmostEqual(sum(samples.values()), ns, delta=2, msg=title)
        return page, parts

    def of_everything(self):
        """A lock, the CPU, page faults on it and blocked, the disk, other threads on the CPU, and waits for work."""
        self.waits_for_the_flusher(holder=TWO)
        self.runs(110, 160, ONE, "asm_exc_page_fault", "leaf_a", "main")
        self.off(260, ONE, 100, ("schedule", "io_schedule", "asm_exc_page_fault", "leaf_a", "main"))
        self.off(300, TWO, 200, ("schedule", "io_schedule", "leaf_b"), "file", name="log/a", disk="sda1", queued=90)
        self.off(400, THREE, 300, ("schedule", "ep_poll", "main"), "epoll")

    def test_a_wait_is_in_the_code_where_the_program_calls(self):
        self.off(400, THREE, 300, ("schedule", "io_schedule", "leaf_b", "main"), "file", name="log/a", disk="sda1")
        page, _ = self.page("--source")
        columns, ends = page.columns, list(itertools.accumulate(page.columns["code.rows"]))
        functions = [page.texts[columns["frame.name"][frame]] for frame in columns["code.frame"]]
        wait = columns["code"][columns["why.sample"][0]]
        self.assertEqual(functions[bisect.bisect_left(ends, wait)], "leaf_b")
        self.assertIn("--source is for the page", self.why("--source", status=1).stderr.decode())

    def test_names_are_escaped_once(self):
        self.off(110, ONE, 100, ("schedule", "io_schedule", "main"), "file", name="log/\x1b[2J", disk="sda1")
        page, _ = self.page()
        title = page.head["why"]["findings"][0]["title"]
        self.assertEqual(title, "waits for the disk sda1 in main, file .../log/\\x1b[2J")
        self.assertIn(title, self.why().stdout.decode())

    def test_samples_of_findings_add_up_to_their_times(self):
        self.of_everything()
        page, parts = self.check()
        self.assertEqual(len(parts), 6, parts)
        samples = dict((title, samples) for title, _, samples in parts)
        threads = lambda title: {page.columns["threads.tid"][page.columns["thread"][i]] for i in samples[title]}
        events = lambda title: {page.events()[page.columns["event"][i]] for i in samples[title]}
        self.assertEqual(threads("waits for the lock sink in recurse"), {ONE})
        self.assertEqual(events("waits for the lock sink in recurse"), {"offcpu"})
        self.assertEqual(events("on the CPU in leaf_b"), {"cpu-clock"})
        self.assertEqual(events("page faults in leaf_a"), {"cpu-clock", "offcpu"})

    def test_a_wait_is_part_of_two_findings(self):
        """The thread was blocked, and then runnable."""
        self.off(110, ONE, 100, LOCK, "mutex", lock=SINK, queued=40, runner="hog")
        _, parts = self.check()
        self.assertEqual([list(samples.values()) for _, _, samples in parts], [[60 * MS], [40 * MS]])
        self.assertEqual(parts[0][2].keys(), parts[1][2].keys())

    def test_time_on_the_cpu_is_divided_by_periods(self):
        """The thread ran for 99 ms, of which its clock has samples of 3 and 6 ms."""
        for ms, period in ((10, 3 * MS), (60, 6 * MS)):
            self.add(ms, "cpu-clock", ONE, ("leaf_a", "main"), period=period)
        self.off(1, ONE, 1, ("schedule", "futex_wait", "main"), "futex")
        self.off(101, ONE, 1, ("schedule", "futex_wait", "main"), "futex")
        _, parts = self.check()
        self.assertEqual(list(parts[0][2].values()), [33 * MS, 66 * MS])

    def test_a_wait_has_the_time_of_those_that_it_stands_for(self):
        self.off(10, ONE, 2, LOCK, "mutex", lock=SINK, stands_for=4)
        self.off(60, ONE, 2, LOCK, "mutex", lock=SINK, skipped=30)
        _, parts = self.check()
        self.assertEqual(list(parts[0][2].values()), [32 * MS, 2 * MS])

    def test_slow_operations_select_their_samples(self):
        self.slow_operations()
        page, answer = self.page("--of", "call")
        parts = self.parts(page)
        self.assertTrue(page.head["why"]["operations"])
        self.assertEqual([ns for _, ns, _ in parts], [one["time_ns"] for one in answer["findings"]])
        self.assertEqual(list(parts[0][2].values()), [90 * MS])

    def test_switches_have_their_time_as_weight(self):
        self.switches()
        _, parts = self.check()
        self.assertEqual(parts[0][0::2], ("waits for the disk in leaf_a", {0: 100 * MS}))

    def test_chosen_samples_alone_are_in_the_page(self):
        self.of_everything()
        """A wait that ends later has no sample there."""
        page, _ = self.page("--tid", str(ONE), "--time", "5,5.2")
        self.assertEqual(set(page.columns["threads.tid"]), {ONE})
        self.assertLess(max(page.columns["time"]), 200 * MS)
        self.assertEqual([(round(ns / MS), round(sum(samples.values()) / MS)) for _, ns, samples in self.parts(page)],
                         [(100, 100), (90, 50)])

    def test_names_are_data(self):
        (self.folder / "perf-4242.map").write_bytes(b"7000000000 100 f</script><img src=x>\x1b[2J\n")
        self.capture.mapped(ONE, 0x7000000000, 0x1000, 0, "//anon").named("\x1b]0;<script>", ONE)
        USER["hostile"] = 0x7000000010
        self.runs(0, 100, ONE, "hostile", "main")
        self.off(210, ONE, 100, ("schedule", "io_schedule", "hostile"), "file", name="\x1b[2Ja\nb</script><script>alert(1)")
        page, _ = self.page("--perf-map-dir", ".")
        self.assertEqual(len(Tags(page.text).texts("script", without=["type"])), 1)
        shown = json.dumps(page.head["why"])
        self.assertIn("f</script><img src=x>", shown)
        self.assertIn("b</script><script>alert(1)", shown)
        for raw in ("\\u001b", "\x1b"):
            self.assertNotIn(raw, shown.replace("\\\\x1b", ""))

    def test_the_text_is_the_same_with_a_page(self):
        self.of_everything()
        for words in ([], ["--json"]):
            self.assertEqual(self.why("--page", "why.html", *words).stdout, self.why(*words).stdout)
        done = self.why("--page", "why.html", "-o", "why.txt")
        self.assertEqual(done.stdout, b"")
        self.assertEqual((self.folder / "why.txt").read_bytes(), self.why().stdout)
        self.assertIn("why", Page((self.folder / "why.html").read_text()).head)

    def test_a_pipe_is_read_once(self):
        pipe = programs.ROOT / "tests/golden/captures/pipe.data"
        done = self.run_program("sh", "-c", f"cat {pipe} | {programs.BIN / 'tacho'} why --json -i - --page why.html")
        page = Page((self.folder / "why.html").read_text())
        self.assertEqual([ns for _, ns, _ in self.parts(page)], [one["time_ns"] for one in json.loads(done.stdout)["findings"]])
        self.assertTrue(page.columns["why.sample"])

    def test_a_page_without_a_question_has_no_answer(self):
        self.of_everything()
        self.page()
        page = Page(self.tacho("page", "-i", "a.data").stdout.decode())
        self.assertNotIn("why", page.head)
        self.assertNotIn("why.sample", page.columns)

    def test_a_removed_capture_is_not_named(self):
        self.runs(0, 100, ONE, "leaf_a", "main")
        page, _ = self.page("--not-kept")
        self.assertFalse(page.head["why"]["kept"])
        self.assertNotIn("a.data", " ".join(page.texts) + json.dumps(page.head))

    def test_files_that_cannot_be_written_are_refused(self):
        self.runs(0, 100, ONE, "leaf_a", "main")
        self.why()
        for name, status, said in (("-", 1, "standard output has the answer"), ("a.data", 1, "--page: a.data is the capture itself"),
                                   ("no/why.html", 4, "no/why.html: cannot create"), ("", 1, "is empty")):
            done = self.why("--page", name, status=status)
            self.assertEqual(done.stdout, b"", name)
            self.assertIn(said, done.stderr.decode(), name)
        self.assertIn("same file", self.why("--page", "why.html", "-o", "why.html", status=1).stderr.decode())
        self.assertEqual({path.name for path in self.folder.iterdir()}, {"a.data", "kallsyms"})

    def test_an_old_page_stays_until_the_new_one_is_complete(self):
        self.capture = made.Capture(made.Event("mem-loads", made.PMU, 1, made.USUAL)).started().sample()
        (self.folder / "why.html").write_text("old")
        self.why("--page", "why.html", status=1)
        self.assertEqual((self.folder / "why.html").read_text(), "old")

    def test_nobody_reads_the_text(self):
        """The page is written all the same."""
        self.of_everything()
        self.why()
        self.run_program("sh", "-c", f"{programs.BIN / 'tacho'} why -i a.data --page why.html | true")
        self.assertIn("why", Page((self.folder / "why.html").read_text()).head)


if __name__ == "__main__":
    programs.main()
