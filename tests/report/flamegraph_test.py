#!/usr/bin/env python3
"""tacho flamegraph: frames and widths agree with the folded text for any names, and the output is reproducible."""
import collections
import shutil
import struct
import subprocess
import xml.etree.ElementTree as ElementTree

import made_capture as made
import made_payload
import programs
from flame_graph import SVG, Picture, weights_of_folded
from made_payload import Field

GOLDEN = programs.ROOT / "tests/golden"
SYMBOLS = ["--symfs", GOLDEN / "symfs", "--kallsyms", GOLDEN / "captures/kallsyms"]
WIDE = ["--min-width", "0"]
LIBRARY = 0x7f0000000000
HOSTILE = ["</script><img onerror=alert(1)>", "\"'&amp<b>", "a\x1b[31mred", "right\u202eleft", "]]><script>", "x" * 10_000,
           "\uffff", "\u05d0\u05d1\u05d2", "\u540d\u524d"]


# Prints the peak of resident memory of a command, in bytes.
MEASURE = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
"""


class FlameGraph(programs.Scratch):
    def draw(self, *words, status=0):
        return Picture(self.tacho("flamegraph", *words, status=status).stdout.decode())

    def draw_folded(self, text, *words, status=0):
        (self.folder / "a.folded").write_bytes(text if isinstance(text, bytes) else text.encode())
        return self.draw("--folded", "a.folded", *words, status=status)

    def test_frames_and_widths_equal_folded(self):
        for name in ("threads", "unwound", "comm", "payload", "uprobe", "latency"):
            capture = ["-i", GOLDEN / f"captures/{name}.data", *SYMBOLS]
            done = self.tacho("folded", *capture, status=None)
            picture = Picture(self.tacho("flamegraph", *WIDE, *capture, status=done.returncode).stdout.decode())
            right = weights_of_folded(done.stdout.decode())
            self.assertEqual({path: weight for path, weight in right.items() if weight}, picture.weights(), name)
            self.assertGreater(len(picture.weights()), 1, name)

    def test_each_unit_has_its_own_graph(self):
        """Nanoseconds and counts of events are not added up."""
        capture = ["-i", GOLDEN / "captures/group.data", *SYMBOLS]
        folded = weights_of_folded(self.tacho("folded", *capture, status=None).stdout.decode())
        picture = self.draw(*WIDE, *capture, status=None)
        right = {unit: {path[skipped:]: weight for path, weight in folded.items() if path[:1] in names and weight}
                 for unit, names, skipped in (("ns", {("cpu-clock",)}, 1), ("events", {("context-switches",), ("page-faults",)}, 0))}
        right["events"][()] = right["events"][("context-switches",)] + right["events"][("page-faults",)]
        panes = [pane for pane in picture.root.iter(f"{SVG}g") if pane.get("class") == "pane"]
        self.assertEqual({pane.get("data-unit"): picture.weights(i) for i, pane in enumerate(panes)}, right)
        self.assertIn("weights of different units are not added up: each has its own graph", picture.notes)
        headings = [one.text for one in picture.root.iter(f"{SVG}text") if one.get("class") == "heading"]
        self.assertEqual(sorted(heading.rsplit(", ", 1)[0] for heading in headings),
                         ["cpu-clock", "page-faults, context-switches"])
        # Counted by samples, all have one unit.
        both = self.draw(*WIDE, *capture, "--weight", "samples", status=None)
        self.assertEqual(len(both.panes), 1)
        self.assertEqual({frame.name for frame in both.panes[0] if frame.row == 1}, {"context-switches", "page-faults", "cpu-clock"})
        change = self.draw(*WIDE, *capture, "--base", GOLDEN / "captures/group.data", status=None)
        self.assertEqual([pane[0].before for pane in change.panes], [pane[0].after for pane in change.panes])
        self.assertEqual(sum(line.endswith("(+0.0 %)") for line in change.notes), 2)

    def test_a_frame_is_as_wide_as_its_share(self):
        picture = self.draw("-i", GOLDEN / "captures/threads.data", *SYMBOLS, *WIDE, "--width", "1020", status=None)
        whole = picture.panes[0][0]
        self.assertEqual(whole.width, 1000)
        for frame in picture.panes[0]:
            self.assertAlmostEqual(frame.width, 1000 * frame.weight / whole.weight, delta=0.051)

    def test_the_same_input_gives_the_same_bytes(self):
        for words in (["-i", GOLDEN / "captures/unwound.data", *SYMBOLS], ["-i", GOLDEN / "captures/threads.data"]):
            first = self.tacho("flamegraph", *words, status=None).stdout
            self.assertTrue(all(first == self.tacho("flamegraph", *words, status=None).stdout for _ in range(3)))

    def test_names_stay_text(self):
        text = "".join(f"root;{name.replace(';', ':')} 5\n" for name in HOSTILE).encode() + b"root;\xff\xfe\x80bad 5\n"
        picture = self.draw_folded(text, *WIDE)
        names = {frame.name for frame in picture.panes[0] if frame.row == 2}
        self.assertEqual(len(names), len(HOSTILE) + 1)
        self.assertLessEqual({HOSTILE[0], HOSTILE[1], "x" * 10_000, HOSTILE[7], HOSTILE[8], "\\xff\\xfe\\x80bad",
                              "a\\x1b[31mred", "right\\xe2\\x80\\xaeleft", "\\xef\\xbf\\xbf"}, names)
        tags = {element.tag.rsplit("}")[-1] for element in picture.root.iter()}
        self.assertEqual(tags, {"svg", "title", "style", "rect", "g", "text", "metadata", "script"})

    def test_names_of_threads_and_commands_stay_text(self):
        capture = made_payload.capture(True, wake=[Field("delay", unit="ns", role="weight")])
        capture.named("</g><b>&\"")
        chain = [2**64 - 512, made.LEAF_A + 4, made.MAIN + 9]
        capture.sample(raw=struct.pack("<Q", 70), chain=chain)
        (self.folder / "perf.data").write_bytes(capture.file())
        picture = self.draw("--title", "<script>&", status=None)
        self.assertEqual(picture.root.find("{http://www.w3.org/2000/svg}title").text, "<script>&")
        self.assertEqual(picture.panes[0][1].name, "</g><b>&\"")
        self.assertEqual(picture.panes[0][0].weight, 70)
        self.assertEqual(picture.root.get("data-unit"), "ns")

    def test_a_weight_has_the_unit_of_the_field_that_is_the_period(self):
        chain = [2**64 - 512, made.LEAF_A + 4, made.MAIN + 9]
        live = [Field("bytes", unit="bytes", role="live"), Field("blocks", role="live:count")]
        summed = [Field("waits", role="count"), Field("total_ns", unit="ns", role="sum")]
        counted = [Field("hits", role="count")]
        valued = [Field("off_ns", unit="ns", role="value")]
        for fields, values, period, unit in ((live, (70, 2), 70, "bytes"), (summed, (3, 90), 90, "ns"),
                                             (counted, (5,), 5, "hits"), (valued, (40,), 40, "ns"), (valued, (40,), 1, "samples")):
            capture = made_payload.capture(True, reported=fields)
            capture.sample(raw=struct.pack(f"<{len(values)}Q", *values), chain=chain, period=period)
            (self.folder / "perf.data").write_bytes(capture.file())
            picture = self.draw(status=None)
            self.assertEqual((picture.root.get("data-unit"), picture.panes[0][0].weight), (unit, period))

    def test_a_stack_of_hundred_thousand_frames_is_drawn_as_far_as_it_goes(self):
        picture = self.draw_folded(";".join(f"f{number % 7}" for number in range(100_000)) + " 3\n")
        self.assertEqual(len(picture.panes[0]), 20_000)
        self.assertIn("80,001 frames are too thin to be drawn", picture.notes)

    def test_a_folded_text_takes_memory_by_its_size(self):
        """64 MB and six times the text; deep stacks of short names took sixty times."""
        scale = 10 if programs.is_sanitized() else 1
        deep = b"a;" * ((2 << 20) // scale + (1 << 18)) + b"b 1\n"
        bushy = b"".join(b"%x;%x;%x 1\n" % (i % 4093, i % 8191, i) for i in range(200_000 // scale))
        for text in (deep, b"".join(b"a;" * 100_000 + b"%d 1\n" % i for i in range(20 // scale)), bushy):
            (self.folder / "a.folded").write_bytes(text)
            done = self.run_program("/usr/bin/env", "python3", "-c", MEASURE, programs.BIN / "tacho-report", "flamegraph", "--folded", "a.folded",
                                    "-o", "a.svg", status=None)
            peak = int(done.stdout)
            if not programs.is_sanitized():  # AddressSanitizer keeps 256 MB of freed memory
                self.assertLess(peak, (64 << 20) + 6 * len(text), len(text))
            if text is deep:
                self.assertIn(b"a.folded: stacks that end early: 1; they are deeper", done.stderr)

    def test_distinct_stacks_of_usual_names_are_whole(self):
        """Each has 18 frames below one that no other stack has."""
        if programs.is_sanitized():
            self.skipTest("fewer stacks than are always drawn")
        stacks = 20_000
        deep = ";".join(f"layer{level}_of_the_server" for level in range(18))
        text = "".join(f"request_{i:05};{deep} 1\n" for i in range(stacks))
        self.assertIn(f"{19 * stacks:,} frames are too thin to be drawn", self.draw_folded(text).notes)

    def test_thin_frames_are_counted(self):
        picture = self.draw_folded("a;wide 1000000\na;thin;deep 1\n")
        self.assertEqual([frame.name for frame in picture.panes[0]], ["all", "a", "wide"])
        self.assertIn("2 frames are too thin to be drawn", picture.notes)

    def test_callees_first_turns_every_stack_over(self):
        text = "a;b;c 4\na;d;c 3\na 2\n"
        right = weights_of_folded("c;b;a 4\nc;d;a 3\na 2\n")
        self.assertEqual(self.draw_folded(text, "--reverse").weights(), right)

    def test_the_share_of_marked_frames_is_that_of_their_union(self):
        picture = self.draw_folded("m;rec;rec;other 6\nm;rec 1\nm;else 3\n", "--highlight", "^rec$")
        self.assertIn("marked: ^rec$: 70.00 % of all", picture.notes)
        self.assertEqual([frame.name for frame in picture.panes[0] if "marked" in frame.classes], ["rec", "rec"])
        self.assertIn("--highlight", self.tacho("flamegraph", "--highlight", "(", status=1).stderr.decode())
        for costly, why in (("a{1000}{1000}{1000}", "repeats too much"), ("(a{100}b{100}){100}", "repeats too much"),
                            (r"(a*)*\1", "refers back")):
            self.assertIn(why, self.tacho("flamegraph", "--highlight", costly, status=1).stderr.decode())
        for sound in ("a{3}", "[]{1000}{1000}{1000}]", r"\{9999\}", "(^m$|[^]x]{2,5}){1,10}"):
            self.draw_folded("m;rec 1\n", "--highlight", sound)

    def test_other_roots(self):
        capture = ["-i", GOLDEN / "captures/threads.data", *SYMBOLS, *WIDE]
        by_comm = self.draw(*capture, status=None)
        total = by_comm.panes[0][0].weight
        for roots, start in (("tid", "tid "), ("cpu", "cpu "), ("pid,tid", "pid "), ("cgroup", ""), ("event", "")):
            picture = self.draw(*capture, "--by", roots, status=None)
            self.assertEqual(picture.panes[0][0].weight, total)
            below = [frame for frame in picture.panes[0] if frame.row == 1]
            self.assertTrue(all(frame.name.startswith(start) and frame.kind == "t" for frame in below), roots)
            if roots == "tid":
                out = self.tacho("script", "-F", "tid", *capture[:2], status=None).stdout.decode()
                self.assertEqual({frame.name for frame in below}, {f"tid {int(line)}" for line in out.split()})
        self.assertEqual({frame.kind for frame in self.draw(*capture, "--by", "none", status=None).panes[0]} & {"t"}, set())
        self.assertIn("comm, pid, tid", self.tacho("flamegraph", *capture, "--by", "com", status=1).stderr.decode())

    def test_waits_have_a_mark_before_who_ended_them(self):
        capture = ["-i", GOLDEN / "captures/simpleperf-off-cpu.data"]
        done = self.tacho("folded", "--off-cpu", *capture, status=None)
        if done.returncode in (0, 3) and done.stdout:
            picture = self.draw("--off-cpu", *capture, *WIDE, status=None)
            self.assertEqual(picture.weights(), weights_of_folded(done.stdout.decode()))
            self.assertEqual(picture.root.get("class"), "wait")

    def difference(self, *words, after="m;a 6\nm;c 4\n", before="m;a 3\nm;b 1\nm;old;deep 1\n"):
        (self.folder / "before.folded").write_text(before)
        return self.draw_folded(after, "--base", "before.folded", *words)

    def test_a_difference_has_both_weights_and_what_is_gone_apart(self):
        picture = self.difference()
        now = {frame.path: (frame.weight, frame.before, frame.after, frame.classes[0]) for frame in picture.panes[0]}
        self.assertEqual(now, {(): (10, 5, 10, "d0"), ("m",): (10, 5, 10, "d0"), ("m", "a"): (6, 3, 6, "d0"),
                               ("m", "c"): (4, 0, 4, "p4")})
        gone = {frame.path: (frame.weight, frame.classes[0]) for frame in picture.panes[1]}
        self.assertEqual(gone, {(): (2, "q4"), ("m",): (2, "q4"), ("m", "b"): (1, "q4"), ("m", "old"): (1, "q4"),
                                ("m", "old", "deep"): (1, "q4")})
        texts = [one.text for one in picture.root.iter("{http://www.w3.org/2000/svg}text")]
        self.assertIn("Gone: 40.00 % of the total before", texts)
        self.assertTrue(picture.notes[0].startswith("after: a.folded, "), picture.notes)
        self.assertTrue(picture.notes[1].startswith("before: before.folded, "), picture.notes)

    def test_widths_of_a_difference(self):
        of = lambda *words: {frame.path: frame.weight for frame in self.difference(*words).panes[0]}
        self.assertEqual(of("--width-of", "before"), {(): 5, ("m",): 5, ("m", "a"): 3, ("m", "b"): 1, ("m", "old"): 1,
                                                      ("m", "old", "deep"): 1})
        self.assertEqual(of("--width-of", "larger")[("m",)], 6 + 4 + 1 + 1)
        self.assertEqual(of("--width-of", "common"), {(): 3, ("m",): 3, ("m", "a"): 3})
        self.assertEqual(of("--width-of", "common", "--normalize"), {(): 6, ("m",): 6, ("m", "a"): 6})
        self.assertIn("give the captures before with --base",
                      self.tacho("flamegraph", "--width-of", "before", "-i", GOLDEN / "captures/threads.data", status=1).stderr.decode())

    def test_two_numbers_a_line_are_a_difference(self):
        picture = self.draw_folded("m;a 3 6\nm;b 1 0\nm;c 0 4\n")
        self.assertEqual(len(picture.panes), 2)
        self.assertEqual(picture.root.get("class"), "change")

    def test_a_difference_of_captures(self):
        capture, other = (GOLDEN / f"captures/{name}.data" for name in ("threads", "unwound"))
        picture = self.draw("-i", capture, "--base", capture, *SYMBOLS, *WIDE, status=None)
        self.assertEqual(len(picture.panes), 1)
        self.assertEqual({frame.classes[0] for frame in picture.panes[0]}, {"d0"})
        self.assertIn("before: ", picture.notes[1])
        both = self.draw("-i", capture, "--base", f"{capture},{other}", *SYMBOLS, *WIDE, status=None)
        alone = self.draw("-i", other, *SYMBOLS, *WIDE, status=None)
        self.assertEqual(both.panes[0][0].before, picture.panes[0][0].before + alone.panes[0][0].weight)
        self.assertIn("no.data", self.tacho("flamegraph", "-i", capture, "--base", "no.data", status=2).stderr.decode())

    def test_a_difference_has_the_totals_of_both_sides(self):
        picture = self.difference()
        self.assertIn("total: 5 before, 10 after (+100.0 %)", picture.notes)

    def test_programs_of_different_names_have_nothing_in_common(self):
        chain = [made.CONTEXT_USER, made.LEAF_A + 4, made.MAIN]
        for name in ("old", "new"):
            capture = made.Capture(made.Event("cpu-clock", made.SOFTWARE, 0, made.USUAL | made.CALLCHAIN)).started().named(name)
            capture.sample(chain=chain)
            (self.folder / name).write_bytes(capture.file())
        draw = lambda *words: self.tacho("flamegraph", "-i", "new", "--base", "old", *SYMBOLS, *words, "-o", "a.svg",
                                         status=None).stderr.decode()
        hint = "no thread name in common"
        self.assertIn(hint, draw())
        self.assertIn("Gone: 100.00 %", (self.folder / "a.svg").read_text())
        self.assertNotIn(hint, draw("--by", "none"))
        self.assertNotIn("Gone", (self.folder / "a.svg").read_text())
        self.assertNotIn(hint, draw("--base", "new"))

    def test_modules_of_one_side_are_compared_by_the_names_of_functions(self):
        # Two builds of a program under different names, which share a library.
        chain = [made.CONTEXT_USER, LIBRARY + 4, made.LEAF_A + 4, made.MAIN]
        for name, hits in (("spin_old", 1), ("spin_new", 2)):
            capture = made.Capture(made.Event("cpu-clock", made.SOFTWARE, 0, made.USUAL | made.CALLCHAIN)).named("spin")
            capture.mapped(made.PID, made.START, 0x2000, 0, f"/tmp/c/{name}").mapped(made.PID, LIBRARY, 0x1000, 0, "/tmp/c/library.so")
            for _ in range(hits):
                capture.sample(ip=LIBRARY + 4, chain=chain)
            capture.sample(ip=made.LEAF_B + 4, chain=[made.CONTEXT_USER, made.LEAF_B + 4, made.MAIN])
            (self.folder / name).write_bytes(capture.file())
            (self.folder / "root/tmp/c").mkdir(parents=True, exist_ok=True)
            shutil.copy(GOLDEN / "symfs/tmp/c/spin", self.folder / "root/tmp/c" / name)
        words = ["-i", "spin_new", "--base", "spin_old", "--symfs", "root", *WIDE]
        picture = self.draw(*words, status=None)
        self.assertEqual(len(picture.panes), 1, "nothing is gone")
        self.assertIn("functions compared by name: spin_old with spin_new", picture.notes)
        weights = {frame.path[-1]: (frame.before, frame.after) for frame in picture.panes[0] if frame.path}
        self.assertEqual((weights["leaf_a"], weights["leaf_b"]), ((1000, 2000), (1000, 1000)))
        # With several captures on each side the noise is of the merged frames.
        noisy = self.draw("-i", "spin_new", "--also", "spin_new", "--base", "spin_old,spin_old", *words[4:], status=None)
        self.assertEqual({frame.noise for frame in noisy.panes[0]}, {0})
        self.assertEqual(noisy.panes[0][0].before, 2 * picture.panes[0][0].before)
        # A module that both sides have is compared with itself alone.
        alone = self.draw("-i", "spin_old", "--base", "spin_old", *words[4:], status=None)
        self.assertFalse([note for note in alone.notes if "by name" in note])

    def test_changes_within_the_noise_of_several_captures_are_grey(self):
        # Of 100: m;a 50 and 54 before, 56 and 60 after: +6 points, and both sides differ by 4. m;b: 10, 12 and 20, 21.
        def text(a, b):
            return f"m;a {a}\nm;b {b}\nm;rest {100 - a - b}\n"
        for name, weights in (("a2", (60, 21)), ("b1", (50, 10)), ("b2", (54, 12))):
            (self.folder / name).write_text(text(*weights))
        picture = self.draw_folded(text(56, 20), "--also", "a2", "--base", "b1,b2")
        found = {frame.path[-1]: (frame.classes[0], round(frame.noise, 4)) for frame in picture.panes[0] if frame.row == 2}
        self.assertEqual(found, {"a": ("d0", 0.08), "b": ("p4", 0.03), "rest": ("q4", 0.11)})
        self.assertEqual(picture.root.get("data-noise"), "1")
        self.assertIn("as much, within the noise", [one.text for one in picture.root.iter(f"{SVG}text")])
        self.assertEqual([note.split(",")[0] for note in picture.notes[:4]],
                         ["after: a.folded", "after: a2", "before: b1", "before: b2"])
        # With one capture on each side the noise is not known.
        for words in (["--base", "b1,b2"], ["--also", "a2", "--base", "b1"]):
            picture = self.draw_folded(text(56, 20), *words)
            self.assertEqual({frame.noise for frame in picture.panes[0]}, {0})
            self.assertEqual(next(frame for frame in picture.panes[0] if frame.name == "a").classes[0][0], "p")

    def test_with_four_captures_a_side_the_noise_is_of_means(self):
        shares = {"before": (50, 54, 51, 53), "after": (56, 60, 57, 59)}
        for side, values in shares.items():
            for number, value in enumerate(values):
                (self.folder / f"{side}{number}").write_text(f"m;a {value}\nm;rest {100 - value}\n")
        picture = self.draw_folded("m;a 56\nm;rest 44\n", "--also", "after1,after2,after3", "--base", ",".join(f"before{i}" for i in range(4)))
        frame = next(frame for frame in picture.panes[0] if frame.name == "a")
        # Variances of 10 / 3; t of 6 degrees of freedom is 3.71.
        self.assertAlmostEqual(frame.noise, 3.71 * (10 / 3 / 4 + 10 / 3 / 4) ** .5 / 100, places=6)
        self.assertEqual(frame.classes[0], "p4", "6 points are more; the ranges added are 8")

    def test_what_is_gone_within_the_noise_is_grey(self):
        for name, text in (("a2", "m;a 100\n"), ("b1", "m;a 98\nm;once 2\n"), ("b2", "m;a 50\nm;always 50\n"),
                           ("b3", "m;a 50\nm;always 50\n")):
            (self.folder / name).write_text(text)
        picture = self.draw_folded("m;a 100\n", "--also", "a2", "--base", "b1,b2,b3")
        gone = {frame.name: frame.classes[0] for frame in picture.panes[1]}
        self.assertEqual(gone, {"all": "q4", "m": "q4", "once": "d0", "always": "d0"}, "b1 has none of it")
        picture = self.draw_folded("m;a 100\n", "--also", "a2", "--base", "b2,b3")
        self.assertEqual({frame.name: frame.classes[0] for frame in picture.panes[1]},
                         {"all": "q4", "m": "q4", "always": "q4"})

    def test_several_captures_are_added_up(self):
        capture, other = (GOLDEN / f"captures/{name}.data" for name in ("threads", "unwound"))
        both = self.draw("-i", capture, "--also", other, *SYMBOLS, *WIDE, status=None)
        apart = [self.draw("-i", one, *SYMBOLS, *WIDE, status=None) for one in (capture, other)]
        sums = collections.Counter()
        for picture in apart:
            sums.update(picture.weights())
        self.assertEqual(both.weights(), dict(sums))
        self.assertEqual([note.split(",")[0] for note in both.notes[:2]], [str(capture), str(other)])
        self.assertIn("no.data", self.tacho("flamegraph", "-i", capture, "--also", "no.data", status=2).stderr.decode())

    def requests(self, name, count, period=1, **weights):
        """A capture of `count` requests with the given cycles in each function."""
        sample_type = made.USUAL | made.CALLCHAIN
        capture = made.Capture(made.Event("cycles", made.HARDWARE, 0, sample_type),
                               made.Event("app:request", made.TRACEPOINT, 77, sample_type, 1)).started()
        functions = {"a": made.LEAF_A + 4, "b": made.LEAF_B + 4, "main": made.MAIN + 9}
        for function, cycles in weights.items():
            capture.sample(0, ip=functions[function], period=cycles, chain=[made.CONTEXT_USER, functions[function]])
        for _ in range(count // period):
            capture.sample(1, ip=made.MAIN, period=period, chain=[made.CONTEXT_USER, made.MAIN + 9])
        (self.folder / name).write_bytes(capture.file())
        return name

    def test_costs_per_event_are_compared(self):
        # Before: 10 requests of 100 cycles. After: 20 requests; leaf_b takes 100 instead of 10 cycles, main none.
        self.requests("before", 10, a=800, b=100, main=100)
        self.requests("after", 20, period=4, a=1600, b=2000)
        words = ["-i", "after", "--base", "before", "--per", "request", *SYMBOLS, *WIDE]
        picture = self.draw(*words, status=None)
        found = {frame.path[-1]: (frame.weight, frame.before, frame.after, frame.classes[0])
                 for frame in picture.panes[0] if frame.row == 2}
        self.assertEqual(found, {"leaf_a": (1600, 1600, 1600, "d0"), "leaf_b": (2000, 200, 2000, "p4")})
        self.assertEqual((picture.panes[0][0].before, picture.panes[0][0].after), (2000, 3600))
        self.assertEqual(picture.panes[0][0].classes, ["p4"], "a request costs more")
        self.assertEqual([picture.root.get(f"data-{key}") for key in ("before", "after", "per", "units")],
                         ["2000", "2000", "app:request", "20"])
        self.assertIn("cycles per app:request: 100 before (10 of them), 180 after (20)", picture.notes)
        self.assertIn("Gone: 10.00 % of the total before", [one.text for one in picture.root.iter(f"{SVG}text")])
        self.assertNotIn("app:request", {frame.name for frame in picture.panes[0]}, "what counts is not drawn")
        # The percentage of leaf_a fell.
        shares = self.draw(*words[:4], "--event", "cycles", *SYMBOLS, *WIDE, status=None)
        self.assertEqual(next(frame for frame in shares.panes[0] if frame.name == "leaf_a").classes, ["q4"])

    def test_the_noise_of_costs_per_event(self):
        for number, (count, cost) in enumerate(((10, 1000), (20, 2200), (10, 1300), (10, 1100))):
            self.requests(f"{number}", count, a=cost)
        picture = self.draw("-i", "2", "--also", "3", "--base", "0,1", "--per", "app:request", *SYMBOLS, *WIDE, status=None)
        # Cycles per request: before 100 and 110 (3,200 for 30 requests), after 130 and 110.
        self.assertAlmostEqual(picture.panes[0][0].noise, (10 + 20) / (3200 / 30), delta=1e-6)
        self.assertEqual(picture.panes[0][0].classes, ["d0"], "120 is 13.3 more")

    def test_per_needs_the_event_on_both_sides(self):
        self.requests("before", 0, a=800)
        self.requests("after", 20, a=1600)
        refused = lambda *words: self.tacho("flamegraph", "-i", "after", *words, "-o", "no.svg", status=1).stderr.decode()
        self.assertIn("before has no sample of request", refused("--base", "before", "--per", "request"))
        self.assertIn("there is no event 'reqest'", refused("--base", "after", "--per", "reqest"))
        self.assertIn("give the captures before with --base", refused("--per", "request"))
        self.assertIn("give the captures before with --base", refused("--per", "request", "--base", "after", "--normalize"))
        self.assertIn("cannot be used with --base or --also", refused("--also", "before", "--where", "pid == 1"))
        self.assertFalse((self.folder / "no.svg").exists())

    def test_frames_have_their_source_lines(self):
        picture = self.draw("-i", GOLDEN / "captures/unwound.data", *SYMBOLS, *WIDE, status=None)
        lines = {frame.name: frame.line for frame in picture.panes[0]}
        self.assertEqual(lines["(anonymous namespace)::nested<2>"], "shapes.cc:37")
        self.assertEqual({frame.line for frame in picture.panes[0] if frame.kind in "kt"}, {""})
        # Lines of inlined calls are those of the call site.
        self.assertRegex(next(frame.line for frame in picture.panes[0] if frame.kind == "i"), r"^shapes\.cc:\d+$")
        # A file without lines is not reported: lines are optional here.
        alone = self.tacho("flamegraph", "-i", GOLDEN / "captures/threads.data", *SYMBOLS, status=None)
        folded = self.tacho("folded", "-i", GOLDEN / "captures/threads.data", *SYMBOLS, status=None)
        self.assertEqual((alone.returncode, alone.stderr), (folded.returncode, folded.stderr))

    def test_a_thin_frame_has_no_source_line(self):
        capture = ["-i", GOLDEN / "captures/unwound.data", *SYMBOLS, *WIDE]
        wide, narrow = (self.draw(*capture, "--width", width, status=None) for width in ("1200", "200"))
        for picture, width in ((wide, 1180), (narrow, 180)):
            for frame in picture.panes[0]:
                if frame.line:
                    self.assertTrue(any(other.width >= 0.95 for other in picture.panes[0] if other.name == frame.name))

    def test_weights(self):
        for weight, total in (("cost", 6000), ("bytes", 512 + 4096 + 512 + 70000), ("samples", 4)):
            picture = self.draw("-i", GOLDEN / "captures/payload.data", *SYMBOLS, *WIDE, "--weight", weight, status=None)
            self.assertEqual(picture.panes[0][0].weight, total, weight)
            self.assertEqual(picture.root.get("data-unit"), {"cost": "ns"}.get(weight, weight))

    def test_folded_text_on_standard_input(self):
        text = "a;b 4\na;c 6\n"
        right = self.draw_folded(text)
        with open(self.folder / "a.folded") as file:
            done = subprocess.run([programs.BIN / "tacho", "flamegraph", "--folded", "-"], stdin=file, capture_output=True, check=True)
        self.assertEqual(Picture(done.stdout.decode()).weights(), right.weights())

    def test_folded_text_of_other_programs(self):
        marked = self.draw_folded(b"\xef\xbb\xbfm;a 1\nm;b 2\n")
        self.assertEqual(marked.weights(), weights_of_folded("m;a 1\nm;b 2\n"), "a byte order mark is no part of a name")
        parts = self.draw_folded("m;a 0.5\nm;b 0.25\n")
        self.assertEqual(parts.weights(), {(): 0.75, ("m",): 0.75, ("m", "a"): 0.5, ("m", "b"): 0.25})
        self.assertIn("a (0.5, 66.67 %)", [one.text for one in parts.root.iter(f"{SVG}title")])

    def test_what_folded_escapes_is_read_back(self):
        picture = self.draw_folded("\\x23m;name with number\\x2012;a\\x3bb 5\n")
        self.assertEqual([frame.name for frame in picture.panes[0]], ["all", "#m", "name with number 12", "a;b"])

    def test_kinds_and_their_legend(self):
        picture = self.draw_folded("t;user 1\nt;kernel_[k] 1\nt;inlined_[i] 1\nt;jit_[j] 1\nt;[lib.so] 1\n")
        kinds = {frame.name: (frame.kind, frame.classes[0][0]) for frame in picture.panes[0] if frame.row == 2}
        self.assertEqual(kinds, {"user": ("u", "u"), "kernel": ("k", "k"), "inlined": ("i", "i"), "jit": ("j", "j"),
                                 "[lib.so]": ("n", "n")})
        texts = [one.text for one in picture.root.find(f"{SVG}g[@class='head']").iter(f"{SVG}text")]
        self.assertEqual(texts[1:-1], ["user", "inlined", "kernel", "JIT", "without a symbol"])
        for palette in ("safe", "warm", "module", "wait"):
            picture = self.draw_folded("t;user 1\nt;kernel_[k] 1\n", "--palette", palette)
            self.assertEqual(picture.root.get("class"), palette)
            style = picture.root.find(f"{SVG}style").text
            for frame in picture.panes[0]:
                self.assertIn(f".{frame.classes[0]}{{", style)
        self.assertIn("safe, warm, module, wait", self.tacho("flamegraph", "--palette", "red", status=1).stderr.decode())

    def test_a_picture_without_its_script_is_whole(self):
        picture = self.draw_folded("app;main;work 3\napp;main 1\n", "--inverted")
        frames = picture.root.find(f"{SVG}g[@class='pane']").find(f"{SVG}g[@class='frames']")
        self.assertEqual([rect.find(f"{SVG}title").text for rect in frames],
                         ["all (4, 100.00 %)", "app (4, 100.00 %)", "main (4, 100.00 %)", "work (3, 75.00 %)"])
        labels = [one.text for one in picture.root.find(f"{SVG}g[@class='pane']").find(f"{SVG}g[@class='labels']")]
        self.assertEqual(labels, ["all", "app", "main", "work"])
        self.assertEqual([float(rect.get("y")) for rect in frames], [0, 17, 34, 51], "callers above")

    def test_lines_that_are_no_stacks_are_reported(self):
        (self.folder / "a.folded").write_text("a;b 3\nnothing\n")
        said = self.tacho("flamegraph", "--folded", "a.folded", status=3).stderr.decode()
        self.assertIn("1 of 2 lines are not folded stacks and are left out, the first is line 2", said)
        self.assertIn("no.folded", self.tacho("flamegraph", "--folded", "no.folded", status=2).stderr.decode())

    def test_an_empty_capture_is_a_picture_of_nothing(self):
        picture = self.draw_folded("")
        self.assertEqual([frame.name for frame in picture.panes[0]], ["all"])
        self.assertEqual(self.tacho("flamegraph", "--folded", "a.folded").stderr, b"tacho flamegraph: a.folded has no folded stacks\n")

    def test_a_picture_without_stacks_says_so(self):
        capture = made.Capture(made.Event("cpu-clock", made.SOFTWARE, 0, made.USUAL)).started().sample()
        (self.folder / "perf.data").write_bytes(capture.file())
        self.assertIn("no sample has a stack; record with -g to have them", self.draw(status=None).notes)

    def test_a_folded_text_that_cannot_be_read_is_an_error(self):
        self.assertIn(b"/tmp: cannot be read", self.tacho("flamegraph", "--folded", "/tmp", "-o", "x.svg", status=2).stderr)
        self.assertFalse((self.folder / "x.svg").exists())

    def test_a_folded_text_is_not_overwritten(self):
        (self.folder / "a.folded").write_text("a;b 3\n")
        (self.folder / "b.folded").write_text("a;c 3\n")
        for words in (["--folded", "a.folded"], ["--folded", "b.folded", "--also", "a.folded"]):
            said = self.tacho("flamegraph", *words, "-o", "a.folded", status=1).stderr.decode()
            self.assertIn("-o: a.folded is one of the folded texts itself", said)
        self.assertEqual((self.folder / "a.folded").read_text(), "a;b 3\n")

    def test_weights_and_widths_are_finite(self):
        (self.folder / "a.folded").write_text("a;b 1e308\na;b 1e308\na;c 18446744073709551615\n")
        said = self.tacho("flamegraph", "--folded", "a.folded", "-o", "x.svg", status=3).stderr.decode()
        self.assertIn("2 of 3 lines are not folded stacks", said)
        self.assertNotIn("inf", (self.folder / "x.svg").read_text().split("<script>")[0])
        self.assertIn(b"no number from 0 up", self.tacho("flamegraph", "--min-width", "inf", status=1).stderr)

    def test_waits_of_unknown_processes_have_their_number(self):
        capture = made_payload.capture(offcpu=[Field("time", unit="ns", role="value"), Field("queued", unit="ns", role="queued")])
        capture.events[0].sample_type |= made.CALLCHAIN
        capture.sample(0, tid=0xffffffff, chain=[made.CONTEXT_USER, made.LEAF_A], raw=struct.pack("<QQ", 500, 0))
        (self.folder / "perf.data").write_bytes(capture.file())
        names = {frame.name for frame in self.draw("--off-cpu", "--by", "tid", *WIDE, status=None).panes[0]}
        self.assertIn("tid -1", names)
        capture.named("")
        capture.sample(0, chain=[made.CONTEXT_USER, made.LEAF_A], raw=struct.pack("<QQ", 700, 0))
        (self.folder / "perf.data").write_bytes(capture.file())
        lines = self.tacho("folded", "--off-cpu", status=None).stdout.decode().splitlines()
        self.assertTrue(any(line.startswith("[unnamed];") for line in lines), lines)

    def test_the_script_is_small(self):
        script = next(self.draw_folded("a 1\n").root.iter("{http://www.w3.org/2000/svg}script")).text
        self.assertLess(len(script), 50_000)
        self.assertNotIn("http:", script.replace("http://www.w3.org/", ""))


if __name__ == "__main__":
    programs.main()
