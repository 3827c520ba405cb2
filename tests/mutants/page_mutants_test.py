#!/usr/bin/env python3
"""Pages and flame graphs of damaged captures are whole: they parse, and each number in a page's data is of something that it has.

TACHO_MUTANTS: how many (default 400); TACHO_MUTANTS_SEED: which ones.
"""
import os
import xml.etree.ElementTree

import mutator
import programs
from page_data import Page, Tags

COUNT = int(os.environ.get("TACHO_MUTANTS", programs.scaled(400)))
SEED = int(os.environ.get("TACHO_MUTANTS_SEED", "47"))
GOLDEN = programs.ROOT / "tests/golden"
SYMBOLS = ["--symfs", GOLDEN / "symfs", "--kallsyms", GOLDEN / "captures/kallsyms"]
WHOLE, UNREADABLE, INCOMPLETE = 0, 2, 3
TAGS = {"html", "head", "meta", "title", "style", "body", "main", "p", "noscript", "script"}
SVG = "{http://www.w3.org/2000/svg}"


class PagesOfMutants(programs.Scratch):
    def assert_below(self, limit, numbers, what):
        self.assertTrue(all(0 <= number < limit for number in numbers), f"{what}: {limit}, {max(numbers, default=0)}")

    def check_page(self, text):
        tags, page = Tags(text), Page(text)
        self.assertEqual({name for name, _ in tags.found}, TAGS)
        columns, texts, count = page.columns, len(page.texts), len(page.columns["time"])
        for name in ("cpu", "thread", "event", "node", "weight"):
            self.assertEqual(len(columns[name]), count, name)
        nodes = len(columns["node.frame"])
        self.assert_below(nodes, columns["node"], "node")
        self.assert_below(nodes, [i + behind for i, behind in enumerate(columns["node.parent"])], "parent")
        self.assertTrue(all(columns["node.parent"][:-1]), "a node without a caller")
        self.assert_below(len(columns["frame.name"]), columns["node.frame"], "frame")
        for name in ("frame.name", "frame.module", "frame.line", "threads.comm", "code.reason", "row.text", "file.name", "source.text"):
            self.assert_below(texts, columns.get(name, []), name)
        self.assert_below(len(columns["threads.pid"]), columns["thread"], "thread")
        self.assert_below(max(len(page.head["capture"]["events"]), 1), columns["event"], "event")
        self.assertEqual(sum(columns["code.rows"]), len(columns["row.text"]))
        self.assertEqual(len(columns["code"]), count)
        self.assert_below(len(columns["row.text"]) + 1, columns["code"], "code")
        self.assert_below(len(columns["file.name"]) + 1, columns["row.file"], "file")
        self.assert_below(len(columns["frame.name"]), columns["code.frame"] + columns["row.frame"], "frame of code")
        if "state.thread" in columns:
            self.assert_below(len(columns["threads.pid"]), columns["state.thread"], "thread of states")
            self.assertEqual(sum(columns["state.count"]), len(columns["state.state"]))
            self.assert_below(len(page.head["state_names"]), columns["state.state"], "state")
            self.assert_below(count + 1, columns["state.sample"], "sample of a state")

    def check_picture(self, text):
        root = xml.etree.ElementTree.fromstring(text)
        self.assertEqual(sum(1 for one in root.iter(SVG + "script") if one.get("class") != "data"), 1)
        self.assertGreater(len(list(root.iter(SVG + "rect"))), 1)

    def test_pages_and_pictures_of_damaged_captures_are_whole(self):
        captures = {path.name: path.read_bytes() for path in sorted((GOLDEN / "captures").glob("*.data"))}
        pages = pictures = 0
        for label, _, broken in mutator.mutants(captures, COUNT, SEED):
            (self.folder / "mutant.data").write_bytes(broken)
            with self.subTest(label=label):
                page = self.tacho("page", "--source", "-i", "mutant.data", *SYMBOLS, status=None)
                self.assertIn(page.returncode, (WHOLE, UNREADABLE, INCOMPLETE), page.stderr)
                if page.returncode != UNREADABLE:
                    self.check_page(page.stdout.decode())
                    pages += 1
                picture = self.tacho("flamegraph", "-i", "mutant.data", *SYMBOLS, status=None)
                self.assertIn(picture.returncode, (WHOLE, UNREADABLE, INCOMPLETE), picture.stderr)
                if picture.returncode != UNREADABLE and picture.stdout:
                    self.check_picture(picture.stdout.decode())
                    pictures += 1
        self.assertGreater(pages, COUNT / 2)
        self.assertGreater(pictures, COUNT / 3)


if __name__ == "__main__":
    programs.main()
