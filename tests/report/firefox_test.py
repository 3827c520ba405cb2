#!/usr/bin/env python3
"""Pages and flame graphs in Firefox: they become ready, and clicks, keys and searches work without an error of the script (errors while
it loads are seen only by what does not work then)."""
import collections
import unittest

import firefox
import programs

GOLDEN = programs.ROOT / "tests/golden"
CAPTURE = ["-i", GOLDEN / "captures/unwound.data", "--symfs", GOLDEN / "symfs", "--kallsyms", GOLDEN / "captures/kallsyms"]
ENTER = "\ue007"
WATCH = "addEventListener('error', (event) => (window.complaint = event.message)); " \
        "addEventListener('securitypolicyviolation', (event) => (window.complaint = event.violatedDirective));"


@firefox.needs_firefox
class InFirefox(programs.Scratch):
    @classmethod
    def setUpClass(cls):
        cls.browser = firefox.Firefox()
        cls.addClassCleanup(cls.browser.close)

    def open(self, name):
        self.browser.open(self.folder / name)
        self.browser.run(WATCH)

    def tearDown(self):
        self.assertIsNone(self.browser.run("return window.complaint || null"))

    def weights(self):
        """By function: its weight, of tacho folded."""
        sums = collections.Counter()
        for line in self.tacho("folded", *CAPTURE).stdout.decode().splitlines():
            stack, weight = line.rsplit(" ", 1)
            for name in set(stack.split(";")):
                sums[name] += int(weight)
        return sums

    def test_a_page_selects_a_function(self):
        self.tacho("page", *CAPTURE, "-o", "page.html", status=None)
        self.open("page.html")
        self.browser.wait_until("return document.documentElement.dataset.ready === 'yes'")
        rows = self.browser.run("return [...document.querySelectorAll('.functions tbody tr')].slice(0, 5).map((row) => "
                                "[...row.cells].map((cell) => cell.textContent))")
        sums = self.weights()
        whole = sum(int(line.rsplit(" ", 1)[1]) for line in self.tacho("folded", *CAPTURE).stdout.decode().splitlines())
        self.assertTrue(rows)
        for _, total, function, _ in rows:
            self.assertEqual(total, f"{100 * sums[function] / whole:.2f} %", function)
        self.browser.press("/", *rows[0][2], ENTER)
        self.assertIn("search=", self.browser.run("return location.hash"))

    def test_a_flame_graph_zooms(self):
        self.tacho("flamegraph", *CAPTURE, "-o", "graph.svg", status=None)
        self.open("graph.svg")
        self.browser.wait_until("return document.querySelector('.search') !== null")
        x, y = self.browser.run("""
            const label = [...document.querySelectorAll('g.labels text')].find((one) => one.textContent === '_start');
            const box = label.getBoundingClientRect();
            return [box.x + 2, box.y + box.height / 2];""")
        self.browser.click(x, y)
        self.assertIn("zoom=", self.browser.run("return location.hash"))
        self.browser.press("/", *"_start")
        self.assertRegex(self.browser.run("return document.querySelector('.found').textContent"), r"1 frame matches: \d+.\d\d % of all")


if __name__ == "__main__":
    unittest.main()
