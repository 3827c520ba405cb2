#!/usr/bin/env python3
"""tacho diff BEFORE... --to AFTER...: what changed, whether it is certain, and what explains it."""
import json
import re
import struct
import xml.etree.ElementTree as ElementTree

import made_capture as made
import made_payload
import programs
from flame_graph import Picture
from made_payload import Field
from page_data import Page

GOLDEN = programs.ROOT / "tests/golden"
SYMBOLS = ["--symfs", GOLDEN / "symfs", "--kallsyms", GOLDEN / "captures/kallsyms"]
AT = {"main": made.MAIN + 9, "leaf_a": made.LEAF_A + 4, "leaf_b": made.LEAF_B + 4, "recurse": made.RECURSE + 4}
QUIET = (-3, 1, 0, 2, -1, 3)  # thousandths by which captures differ


class Diff(programs.Scratch):
    def capture(self, name, stacks, requests=0, stackless=False, events=None, **more):
        """`stacks`: {"main leaf_a": weight}, root first."""
        bits = made.USUAL if stackless else made.USUAL | made.CALLCHAIN
        events = events or [made.Event("cycles", made.HARDWARE, 0, bits)]
        if requests:
            events.append(made.Event("app:request", made.TRACEPOINT, 77, bits, 1))
        capture = made.Capture(*events, **more).started()
        for stack, weight in stacks.items():
            chain = [AT[name] for name in reversed(stack.split())]
            if weight:
                capture.sample(ip=chain[0], period=weight, chain=[made.CONTEXT_USER, *chain])
        for _ in range(requests):
            capture.sample(1, ip=made.MAIN, period=1, chain=[made.CONTEXT_USER, made.MAIN + 9])
        (self.folder / name).write_bytes(capture.file())
        return name

    def side(self, prefix, stacks, count=4, noise=QUIET, noisy="main", **more):
        return [self.capture(f"{prefix}{i}", {**stacks, noisy: stacks[noisy] + noise[i % len(noise)]}, **more)
                for i in range(count)]

    def diff(self, before, after, *words, status=0):
        return self.tacho("diff", *before, "--to", *after, *SYMBOLS, *words, status=status)

    def judged(self, before, after, *words, event="cycles"):
        document = json.loads(self.diff(before, after, "--json", *words).stdout)
        return next(one for one in document["events"] if one["event"] == event), document

    def finding(self, judged, function):
        return next(one for one in judged["findings"] if one["function"] == function)

    def test_a_function_that_costs_more_is_named(self):
        before = self.side("b", {"main": 400, "main leaf_a": 300, "main leaf_b": 300})
        after = self.side("a", {"main": 400, "main leaf_a": 400, "main leaf_b": 300})
        judged, document = self.judged(before, after)
        self.assertEqual((document["verdict"], judged["verdict"]), ("changed", "changed"))
        self.assertAlmostEqual(judged["p"], 2 / 70, places=6)
        self.assertEqual(judged["labellings"], 70)
        found = self.finding(judged, "leaf_a")
        self.assertEqual((found["verdict"], found["part"], found["cause"]), ("changed", "self", "own code"))
        self.assertAlmostEqual(found["change"], 400 / 1100 - 0.3, delta=0.002)
        self.assertLess(found["low"], found["change"])
        text = self.diff(before, after).stdout.decode()
        self.assertRegex(text, r"cycles: changed: \d functions?, by 3.00 % or more \(p 0.029; all 70 labellings")
        self.assertRegex(text, r"(29.9|30.0)\d % +36.\d\d % +\+6.\d\d .* changed +self +leaf_a  \(its own code\)")
        self.assertEqual(text, self.diff(before, after).stdout.decode())

    def test_equal_sides_are_the_same(self):
        before, after = (self.side(name, {"main": 400, "main leaf_a": 600}) for name in "ba")
        self.assertEqual(self.judged(before, after)[0]["verdict"], "same")

    def test_noise_that_hides_a_change_is_inconclusive(self):
        noise = (-250, 200, 0, 150)
        before = self.side("b", {"main": 400, "main leaf_a": 600}, noise=noise)
        after = self.side("a", {"main": 450, "main leaf_a": 600}, noise=noise[::-1])
        judged, _ = self.judged(before, after)
        self.assertEqual(judged["verdict"], "inconclusive")
        self.assertGreater(judged["detectable"], 0.1)
        self.assertGreater(judged["captures_needed"], 20)
        self.assertRegex(self.diff(before, after).stdout.decode(), r"about \d+ captures a side find 3.00 %")

    def test_few_captures_give_no_verdict(self):
        before, after = ["b"], ["a"]
        self.capture("b", {"main": 500, "main leaf_a": 500})
        self.capture("a", {"main": 100, "main leaf_a": 900})
        judged, _ = self.judged(before, after)
        self.assertEqual(judged["verdict"], "indicative")
        self.assertIn("4 a side or more", self.diff(before, after).stdout.decode())

    def test_a_callee_explains_its_callers(self):
        # recurse calls leaf_b, which costs more; leaf_a stays.
        before = self.side("b", {"main": 500, "main leaf_a": 300, "main recurse": 50, "main recurse leaf_b": 150})
        after = self.side("a", {"main": 500, "main leaf_a": 300, "main recurse": 50, "main recurse leaf_b": 350})
        judged, _ = self.judged(before, after, "--work", "1")
        found = self.finding(judged, "recurse")
        self.assertEqual((found["part"], found["cause"], found["path"]), ("total", "callee", ["leaf_b"]))
        names = [one["function"] for one in judged["findings"]]
        self.assertEqual(names[0], "leaf_b", "a cause comes before what it explains")
        text = self.diff(before, after, "--work", "1").stdout.decode()
        self.assertIn("leaf_b  (its own code; and so its callers: main, recurse)", text)
        self.assertNotIn("(through", text)

    def test_a_caller_that_changed_otherwise_has_its_own_row(self):
        before = self.side("b", {"main": 500, "main recurse": 50, "main recurse leaf_b": 150})
        after = self.side("a", {"main": 500, "main recurse": 73, "main recurse leaf_b": 350})
        text = self.diff(before, after, "--work", "1").stdout.decode()
        self.assertIn("leaf_b  (its own code)", text)
        self.assertIn("recurse  (several functions that it calls: leaf_b; and so its callers: main)", text)

    def test_recursion_counts_once(self):
        before = self.side("b", {"main": 500, "main recurse recurse recurse": 500})
        after = self.side("a", {"main": 300, "main recurse recurse recurse": 700})
        found = self.finding(self.judged(before, after)[0], "recurse")
        self.assertAlmostEqual(found["after"], 0.7, delta=0.01)

    def test_cost_that_moved_is_not_called_added(self):
        # Below recurse 200 go from leaf_a to leaf_b.
        before = self.side("b", {"main": 500, "main recurse leaf_a": 300, "main recurse leaf_b": 200})
        after = self.side("a", {"main": 500, "main recurse leaf_a": 100, "main recurse leaf_b": 400})
        judged, _ = self.judged(before, after)
        found = self.finding(judged, "leaf_b")
        self.assertEqual((found["cause"], found["others"]), ("moved", ["leaf_a", "recurse"]))
        text = self.diff(before, after).stdout.decode()
        self.assertIn("leaf_b  (moved from leaf_a, below recurse)", text)
        self.assertIn("leaf_a  (moved to leaf_b, below recurse)", text)

    def test_a_function_that_was_inlined_is_not_called_faster(self):
        before = self.side("b", {"main": 500, "main recurse": 200, "main recurse leaf_a": 300})
        after = self.side("a", {"main": 500, "main recurse": 500, "main recurse leaf_a": 0})
        self.assertEqual(self.finding(self.judged(before, after)[0], "leaf_a")["cause"], "inlined")
        self.assertIn("leaf_a  (gone: inlined into recurse)", self.diff(before, after).stdout.decode())
        self.assertIn("leaf_a  (new: was inlined into recurse)", self.diff(after, before).stdout.decode())
        gone = self.side("g", {"main": 500, "main recurse": 200})
        self.assertIn("leaf_a  (gone; and so its callers: main, recurse)", self.diff(before, gone, "--work", "1").stdout.decode())

    def test_costs_per_event(self):
        before = self.side("b", {"main": 4000, "main leaf_a": 6000}, requests=10)
        after = self.side("a", {"main": 8000, "main leaf_a": 12000}, requests=20)
        self.assertEqual(self.judged(before, after, "--per", "request", "--event", "cycles")[0]["verdict"], "same")
        judged, _ = self.judged(before, after, "--work", "1", "--event", "cycles")
        self.assertAlmostEqual(self.finding(judged, "leaf_a")["change"], 6000, delta=1)
        self.assertIn("there is no event 'reqest'",
                      self.diff(before, after, "--per", "reqest", status=1).stderr.decode())

    def test_costs_are_in_the_unit_of_the_event(self):
        clock = lambda name, weight: self.capture(name, {"main": 400_000_000, "main leaf_a": weight}, events=[
            made.Event("cpu-clock", made.SOFTWARE, 0, made.USUAL | made.CALLCHAIN)])
        before, after = ([clock(f"{side}{i}", weight + i) for i in range(4)] for side, weight in (("b", 100_000_000), ("a", 243_100_000)))
        text = self.diff(before, after, "--work", "1").stdout.decode()
        self.assertRegex(text, r" 100 ms +243 ms +\+143 ms +\+143 ms \.\. \+143 ms +0.029  changed +self +leaf_a")

    def test_the_flame_graph_has_the_same_weights(self):
        before = self.side("b", {"main": 400, "main leaf_a": 300, "main leaf_b": 300})
        after = self.side("a", {"main": 400, "main leaf_a": 500, "main recurse": 100})
        told = self.diff(before, after).stdout
        self.assertEqual(self.diff(before, after, "--flamegraph", "d.svg").stdout, told)
        svg = (self.folder / "d.svg").read_text()
        ElementTree.fromstring(svg)
        self.assertIn("cycles, gone: 30.0", svg)
        # As the other command that draws differences has them.
        other = self.tacho("flamegraph", "--by", "none", "--base", ",".join(before), "-i", after[0], "--also", ",".join(after[1:]), "--normalize", *SYMBOLS)
        frames = lambda text: sorted(re.findall(r"<title>((?:main|leaf_a|recurse|leaf_b)\b[^<]*)</title>", text))
        self.assertGreaterEqual(len(frames(svg)), 3, svg[:3000])
        self.assertEqual(frames(svg), frames(other.stdout.decode()))
        self.assertIn("name a file", self.diff(before, after, "--flamegraph", "-", status=1).stderr.decode())

    def test_interrupts_do_not_hide_a_renamed_function(self):
        # leaf_a interrupts the function in the captures after alone.
        before = self.side("b", {"main": 400, "main recurse": 300, "main recurse main": 300})
        after = self.side("a", {"main": 400, "main leaf_b": 300, "main leaf_b main": 300, "main leaf_b leaf_a": 3})
        self.assertIn("recurse as leaf_b", self.diff(before, after).stdout.decode())

    def test_a_function_that_is_called_elsewhere_has_moved(self):
        # leaf_a costs the same, below leaf_b in place of recurse.
        before = self.side("b", {"main": 300, "main recurse": 200, "main leaf_b": 200, "main recurse leaf_a": 400})
        after = self.side("a", {"main": 300, "main recurse": 200, "main leaf_b": 200, "main leaf_b leaf_a": 400})
        judged, _ = self.judged(before, after, "--work", "1")
        found = self.finding(judged, "leaf_b")
        self.assertEqual((found["cause"], found["others"]), ("moved", ["recurse", "main"]))

    def test_a_function_that_absorbs_another_one(self):
        # leaf_a is inlined into recurse, which costs a little more than both did.
        before = self.side("b", {"main": 700, "main recurse": 100, "main recurse leaf_a": 200})
        after = self.side("a", {"main": 700, "main recurse": 305})
        judged, _ = self.judged(before, after, "--work", "1")
        found = {name: self.finding(judged, name) for name in ("recurse", "leaf_a")}
        self.assertEqual({name: (one["cause"], one["others"]) for name, one in found.items()},
                         {"recurse": ("absorbed", ["leaf_a"]), "leaf_a": ("inlined", ["recurse"])})
        text = self.diff(before, after, "--work", "1").stdout.decode()
        self.assertIn("now inlined into it: leaf_a", text)
        judged, _ = self.judged(after, before, "--work", "1")
        self.assertEqual({name: self.finding(judged, name)["cause"] for name in ("recurse", "leaf_a")}, {"recurse": "absorbed", "leaf_a": "outlined"})

    def test_what_trades_below_a_function_does_not_explain_it(self):
        # leaf_a moved from recurse to leaf_b; main's own code costs 100 more.
        before = self.side("b", {"main": 300, "main recurse": 200, "main recurse leaf_a": 400, "main leaf_b": 100})
        after = self.side("a", {"main": 400, "main recurse": 200, "main leaf_b": 100, "main leaf_b leaf_a": 400})
        judged, _ = self.judged(before, after, "--work", "1")
        found = self.finding(judged, "main")
        self.assertEqual((found["part"], found["cause"]), ("self", "own code"))

    def test_patterns_and_files_that_are_named_twice(self):
        before = self.side("b", {"main": 400, "main leaf_a": 600})
        self.assertIn("4 captures before, 4 after", self.diff(["b?"], ["b[0-3]"]).stdout.decode())
        self.assertIn("no file matches 'c*'", self.diff(["b?"], ["c*"], status=1).stderr.decode())
        self.assertIn("b0 is named twice", self.diff(["b0", "b?"], ["b0"], status=1).stderr.decode())

    def test_renamed_functions_are_one_in_all_views(self):
        # recurse and leaf_b have the same caller and the same callee.
        before = self.side("b", {"main": 400, "main recurse": 300, "main recurse leaf_a": 300})
        after = self.side("a", {"main": 400, "main leaf_b": 300, "main leaf_b leaf_a": 300})
        said = "renamed: recurse as leaf_b"
        self.assertIn(said, self.diff(before, after).stdout.decode())
        self.assertEqual(self.judged(before, after)[0]["verdict"], "same")
        self.assertEqual(self.judged(before, after, "--no-renames")[0]["verdict"], "changed")
        pair = ("--base", before[0], "-i", after[0], *SYMBOLS)
        picture, page = (self.tacho(view, *pair).stdout.decode() for view in ("flamegraph", "page"))
        by_name = lambda text: "".join(Page(text).texts[number] for number in [Page(text).head["base"].get("by_name")] if number is not None)
        self.assertIn(said, picture)
        self.assertEqual(len(Picture(picture).panes), 1, "nothing is gone")
        self.assertIn(said, by_name(page))
        apart = self.tacho("flamegraph", *pair, "--no-renames").stdout.decode()
        self.assertNotIn(said, apart)
        self.assertEqual(len(Picture(apart).panes), 2)
        self.assertEqual(by_name(self.tacho("page", *pair, "--no-renames").stdout.decode()), "")
        report = self.tacho("report", *pair).stdout.decode()
        self.assertIn("# functions compared by name: " + said, report)
        self.assertRegex(report, r"(?m)^ +30\.\d+% +30\.\d+% +\+0\.00% .* leaf_b$")
        self.assertNotIn("recurse", report.split("#\n", 1)[1].split("....")[-1])
        self.assertNotIn(said, self.tacho("report", *pair, "--no-renames").stdout.decode())
        rows = lambda *words: {row["keys"]["symbol"]: round((row["before"] or {"percent": 0})["percent"]) for row in json.loads(
            self.tacho("diff", before[0], after[0], "--json", *SYMBOLS, *words).stdout)["reports"][0]["rows"]}
        self.assertEqual(rows(), {"main": 40, "leaf_b": 30, "leaf_a": 30})
        self.assertEqual(rows("--no-renames"), {"main": 40, "leaf_b": 0, "recurse": 30, "leaf_a": 30})

    def test_callees_of_a_comparison(self):
        before = self.side("b", {"main": 400, "main recurse": 300, "main recurse leaf_a": 300})
        after = self.side("a", {"main": 400, "main recurse": 100, "main recurse leaf_a": 500})
        pair = ("--base", before[0], "-i", after[0], *SYMBOLS)
        report = self.tacho("report", *pair, "--children").stdout.decode()
        for name, percents in (("main", (100, 100, 0)), ("recurse", (60, 60, 0)), ("leaf_a", (30, 50, 20))):
            line, = [line for line in report.splitlines() if line.endswith(" " + name)]
            self.assertEqual(tuple(round(float(word.rstrip("%"))) for word in line.split()[:3]), percents)
        sums = {row["keys"]["symbol"]: (round(row["before"]["percent"]), row["after"]["samples"]) for row in json.loads(
            self.tacho("report", *pair, "--children", "--json").stdout)["reports"][0]["rows"]}
        self.assertEqual(sums, {"main": (100, 3), "recurse": (60, 2), "leaf_a": (30, 1)})

    def values(self, name, values, unit="us"):
        features = {made_payload.PAYLOAD_SCHEMAS: made_payload.schemas(op=[Field("lat", unit=unit, role="value")])}
        capture = made.Capture(made.Event("op", made.SOFTWARE, made_payload.BPF_OUTPUT, made.USUAL | made.RAW, 1), features=features).started()
        for value in values:
            capture.sample(raw=struct.pack("<Q", value), period=1)
        (self.folder / name).write_bytes(capture.file())
        return name

    def test_values_of_a_field(self):
        # A tenth of the values, the slowest, got slower; the median did not.
        sides = {side: [self.values(f"{side}{i}", [1000 + i + (tail if n % 10 == 0 else n % 100) for n in range(2000)]) for i in range(4)]
                 for side, tail in (("b", 5000), ("a", 6000))}
        document = json.loads(self.diff(sides["b"], sides["a"], "--field", "op.lat", "--json").stdout)
        self.assertEqual(document["verdict"], "changed")
        self.assertNotIn("events", document)
        field, = document["fields"]
        self.assertEqual((field["field"], field["unit"], field["counts"]), ("op.lat", "us", [2000] * 8))
        found = {one["quantity"]: one for one in field["quantities"]}
        self.assertEqual({name: one["verdict"] for name, one in found.items()},
                         {"mean": "changed", "p50": "same", "p75": "same", "p90": "same", "p95": "changed", "p99": "changed"})
        self.assertAlmostEqual(found["mean"]["change"], 100, delta=1)
        self.assertAlmostEqual(found["p99"]["before"], 6001.5, delta=6001 / 128)
        self.assertAlmostEqual(found["p99"]["change"], 1000, delta=6001 / 128)
        text = self.diff(sides["b"], sides["a"], "--field", "lat").stdout.decode()
        self.assertRegex(text, r"op.lat: changed: 3 measures, by 3 % or more \(p 0.029; all 70 labellings")
        self.assertRegex(text, r" 6.00 ms +7.00 ms +\+1(.00)? ms .* changed +p99 +\+1[567]\.\d %\n")
        self.assertIn("values of a capture: 2,000 before, 2,000 after", text)
        self.assertEqual(json.loads(self.diff(sides["b"], sides["b"], "--field", "lat", "--json").stdout)["verdict"], "same")
        self.assertIn("| p99 |", self.diff(sides["b"], sides["a"], "--field", "lat", "--markdown").stdout.decode())

    def test_fields_that_cannot_be_compared(self):
        self.values("us", [1, 2])
        self.values("ns", [1, 2], unit="ns")
        self.values("none", [])
        self.assertIn("unit of op.lat is 'ns', in other captures it is 'us'", self.diff(["us"], ["ns"], "--field", "lat", status=2).stderr.decode())
        self.assertIn("op.lat has no value", self.diff(["us"], ["none"], "--field", "lat", status=2).stderr.decode())
        self.assertIn("leave out --per", self.diff(["us"], ["us"], "--field", "lat", "--work", "1", status=1).stderr.decode())
        self.assertIn("indicative", self.diff(["us"], ["us"], "--field", "lat", "--event", "op").stdout.decode())
        self.assertIn("lat", self.diff(["us"], ["us"], "--field", "size", status=1).stderr.decode())

    def test_pairs(self):
        # All captures of a pair drift alike: seen in pairs only.
        noise = (-300, -150, 0, 150, 300, 450)
        before = self.side("b", {"main": 400, "main leaf_a": 600}, count=6, noise=noise)
        after = self.side("a", {"main": 460, "main leaf_a": 600}, count=6, noise=noise)
        self.assertEqual(self.judged(before, after)[0]["verdict"], "inconclusive")
        options = ["--work", "1", "--paired"]
        self.assertEqual(self.judged(before, after, *options)[0]["verdict"], "changed")
        self.assertIn("as many of both", self.diff(before, after[:5], "--paired", status=1).stderr.decode())

    def test_samples_without_stacks_have_functions(self):
        before = self.side("b", {"main": 500, "leaf_a": 500}, stackless=True)
        after = self.side("a", {"main": 500, "leaf_a": 700}, stackless=True)
        self.assertEqual(self.finding(self.judged(before, after)[0], "leaf_a")["verdict"], "changed")
        self.assertIn("record with -g", self.diff(before, after).stderr.decode())

    def test_different_machines_are_said_first(self):
        version = 4
        feature = lambda text: {version: made.header_string(text)}
        before = [self.capture(f"b{i}", {"main": 1, "main leaf_a": 1}, features=feature("6.1.0")) for i in range(2)]
        after = [self.capture(f"a{i}", {"main": 1, "main leaf_a": 1}, features=feature("6.9.0")) for i in range(2)]
        first = self.diff(before, after).stdout.decode().splitlines()[0]
        self.assertRegex(first, r"^different .*: 6.1.0 before, 6.9.0 after$")

    def test_markdown_has_twenty_functions_and_no_markup_of_names(self):
        before = self.side("b", {"main": 500, "main leaf_a": 500})
        after = self.side("a", {"main": 500, "main leaf_a": 700})
        text = self.diff(before, after, "--markdown").stdout.decode()
        self.assertIn("**changed**", text)
        self.assertRegex(text, r"\| changed \| self \| leaf\\_a \| its own code \|")

    def test_markdown_stays_below_the_limit_of_comments(self):
        names = [f"function_{number}_" + "x" * 120 for number in range(10_000)]
        (self.folder / "kallsyms").write_text("".join(f"{made.KERNEL_TEXT + 64 * number:016x} T {name}\n"
                                                      for number, name in enumerate(["_text", *names])))
        def capture(name, seed):
            made_one = made.Capture(made.Event("cycles", made.HARDWARE, 0, made.USUAL | made.CALLCHAIN)).started()
            for number in range(10_000):
                ip = made.KERNEL_TEXT + 64 * number + 68
                made_one.sample(ip=ip, period=1 + (number * seed) % 50, chain=[made.CONTEXT_KERNEL, ip])
            (self.folder / name).write_bytes(made_one.file())
            return name
        before, after = ([capture(f"{side}{i}", seed + i) for i in range(4)] for side, seed in (("b", 3), ("a", 17)))
        text = self.tacho("diff", *before, "--to", *after, "--kallsyms", "kallsyms", "--min-effect", "0.001", "--limit", "100000",
                          "--markdown", status=None).stdout.decode()
        self.assertIn("function\\_", text)
        self.assertLess(len(text), 64_000)
        self.assertRegex(text, r"\n9\d\d\d rows more are left out here")

    def test_a_finding_of_many_captures_is_one_line(self):
        before = self.side("b", {"main": 500, "main leaf_a": 500})
        done = self.tacho("diff", *before, "--to", *before, "--symfs", self.folder, status=None)
        self.assertEqual(len(re.findall("no symbols: .*spin", done.stderr.decode())), 1, done.stderr.decode())

    def test_refusals(self):
        self.capture("a", {"main": 1})
        self.assertIn("BEFORE... --to AFTER...", self.tacho("diff", "a", "--to", status=1).stderr.decode())
        self.assertIn("give one of them", self.diff(["a"], ["a"], "--per", "x", "--work", "1", status=1).stderr.decode())
        self.assertIn("no.data", self.diff(["a"], ["no.data"], status=2).stderr.decode())
        self.assertIn("no percentage", self.diff(["a"], ["a"], "--min-effect", "0", status=1).stderr.decode())
        self.assertIn("-i", self.diff(["a"], ["a"], "-i", "a", status=1).stderr.decode())


if __name__ == "__main__":
    programs.main()
