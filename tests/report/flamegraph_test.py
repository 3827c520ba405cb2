#!/usr/bin/env python3
"""tacho flamegraph: frames and widths are those of the folded text, whatever the names, and the same every time."""
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
HOSTILE = ["</script><img onerror=alert(1)>", "\"'&amp<b>", "a\x1b[31mred", "right\u202eleft", "]]><script>", "x" * 10_000,
           "\uffff", "\u05d0\u05d1\u05d2", "\u540d\u524d"]


class FlameGraph(programs.Scratch):
    def draw(self, *words, status=0):
        return Picture(self.tacho("flamegraph", *words, status=status).stdout.decode())

    def draw_folded(self, text, *words, status=0):
        (self.folder / "a.folded").write_bytes(text if isinstance(text, bytes) else text.encode())
        return self.draw("--folded", "a.folded", *words, status=status)

    def test_frames_and_widths_are_those_of_folded(self):
        for name in ("threads", "unwound", "comm", "group", "payload", "uprobe", "latency"):
            capture = ["-i", GOLDEN / f"captures/{name}.data", *SYMBOLS]
            done = self.tacho("folded", *capture, status=None)
            picture = Picture(self.tacho("flamegraph", *WIDE, *capture, status=done.returncode).stdout.decode())
            right = weights_of_folded(done.stdout.decode())
            self.assertEqual({path: weight for path, weight in right.items() if weight}, picture.weights(), name)
            self.assertGreater(len(picture.weights()), 1, name)

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

    def test_a_stack_of_hundred_thousand_frames_is_drawn_as_far_as_it_goes(self):
        picture = self.draw_folded(";".join(f"f{number % 7}" for number in range(100_000)) + " 3\n")
        self.assertEqual(len(picture.panes[0]), 20_000)
        self.assertIn("80001 frames are too thin to be drawn", picture.notes)

    def test_thin_frames_are_counted(self):
        picture = self.draw_folded("a;wide 1000000\na;thin;deep 1\n")
        self.assertEqual([frame.name for frame in picture.panes[0]], ["all", "a", "wide"])
        self.assertIn("2 frames are too thin to be drawn", picture.notes)

    def test_callees_first_turns_every_stack_over(self):
        text = "a;b;c 4\na;d;c 3\na 2\n"
        right = weights_of_folded("c;b;a 4\nc;d;a 3\na 2\n")
        self.assertEqual(self.draw_folded(text, "--reverse").weights(), right)

    def test_marked_frames_are_told_as_a_union(self):
        picture = self.draw_folded("m;rec;rec;other 6\nm;rec 1\nm;else 3\n", "--highlight", "^rec$")
        self.assertIn("marked: ^rec$: 70.00 % of all", picture.notes)
        self.assertEqual([frame.name for frame in picture.panes[0] if "marked" in frame.classes], ["rec", "rec"])
        self.assertIn("--highlight", self.tacho("flamegraph", "--highlight", "(", status=1).stderr.decode())

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
        self.assertIn("Gone: 40.00 % of what was before", texts)
        self.assertTrue(picture.notes[0].startswith("after: a.folded, "), picture.notes)
        self.assertTrue(picture.notes[1].startswith("before: before.folded, "), picture.notes)

    def test_widths_of_a_difference(self):
        of = lambda *words: {frame.path: frame.weight for frame in self.difference(*words).panes[0]}
        self.assertEqual(of("--width-of", "before"), {(): 5, ("m",): 5, ("m", "a"): 3, ("m", "b"): 1, ("m", "old"): 1,
                                                      ("m", "old", "deep"): 1})
        self.assertEqual(of("--width-of", "larger")[("m",)], 6 + 4 + 1 + 1)
        self.assertEqual(of("--width-of", "common"), {(): 3, ("m",): 3, ("m", "a"): 3})
        self.assertEqual(of("--width-of", "common", "--normalize"), {(): 6, ("m",): 6, ("m", "a"): 6})
        self.assertIn("--base names what was before",
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

    def test_frames_have_their_source_lines(self):
        picture = self.draw("-i", GOLDEN / "captures/unwound.data", *SYMBOLS, *WIDE, status=None)
        lines = {frame.name: frame.line for frame in picture.panes[0]}
        self.assertEqual(lines["(anonymous namespace)::nested<2>"], "shapes.cc:37")
        self.assertEqual({frame.line for frame in picture.panes[0] if frame.kind in "kt"}, {""})
        # Those of inlined calls are in the call.
        self.assertRegex(next(frame.line for frame in picture.panes[0] if frame.kind == "i"), r"^shapes\.cc:\d+$")
        # And without lines nothing is said to be missing: nobody asked.
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

    def test_lines_that_are_no_stacks_are_told(self):
        (self.folder / "a.folded").write_text("a;b 3\nnothing\n")
        said = self.tacho("flamegraph", "--folded", "a.folded", status=3).stderr.decode()
        self.assertIn("1 of 2 lines are no folded stacks, the first is line 2", said)
        self.assertIn("no.folded", self.tacho("flamegraph", "--folded", "no.folded", status=2).stderr.decode())

    def test_an_empty_capture_is_a_picture_of_nothing(self):
        picture = self.draw_folded("")
        self.assertEqual([frame.name for frame in picture.panes[0]], ["all"])

    def test_the_script_is_small(self):
        script = next(self.draw_folded("a 1\n").root.iter("{http://www.w3.org/2000/svg}script")).text
        self.assertLess(len(script), 40_000)
        self.assertNotIn("http:", script.replace("http://www.w3.org/", ""))


if __name__ == "__main__":
    programs.main()
