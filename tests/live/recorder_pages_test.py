#!/usr/bin/env python3
"""docs/recorders: each recorder of the catalogue has its page, with the five parts that one needs: the question, an example with
what it printed, its cost, its hooks and kernels, and how its captures are read elsewhere."""
import re
import unittest

import programs

PAGES = programs.ROOT / "docs/recorders"


class Pages(programs.Scratch):
    def pages(self):
        text = self.run_program(programs.BIN / "tacho", "list", "recorders").stdout.decode()
        for line in text.splitlines():
            name, summary = line.split(None, 1)
            page = "trace" if name == "argdist" else name
            is_other_name = re.match(r"as \w+(,|$)|the same ", summary) or re.search(r"\(\w+/.*/\)$", summary)
            if not is_other_name or name == page and (PAGES / f"{page}.md").exists():
                yield name, PAGES / f"{page}.md"

    def test_each_has_all_parts(self):
        pages = list(self.pages())
        self.assertGreater(len(pages), 25)
        for name, page in pages:
            with self.subTest(name):
                self.assertTrue(page.exists())
                text = page.read_text()
                self.assertIn("?", text[:text.index("```")], "a question")
                example = text.split("```")[1]
                self.assertRegex(example, r"\$ tacho record ")
                self.assertTrue([line for line in example.splitlines() if line and not line.startswith("$")], "output")
                self.assertRegex(text, r"(?m)^Cost(,|:)|^## Hooks and cost", "cost")
                self.assertRegex(text, r"(?m)^Hooks: |^Kernels: |^## Hooks and cost|^Probes are attached", "hooks")
                self.assertRegex(text, r"\d+\.\d+ (?:us|s|ns|%|MB)|\d+ ns|\d us", "a figure")
                self.assertRegex(text, r"(?m)^Elsewhere: ", "elsewhere")

    def test_the_front_page_names_each(self):
        front = (PAGES / "README.md").read_text()
        for _name, page in self.pages():
            self.assertIn(f"({page.name})", front)

    def test_names_that_stand_for_others_are_told(self):
        """On some page, so that who looks for a tool finds it."""
        all_pages = " ".join(page.read_text() for page in PAGES.glob("*.md"))
        text = self.run_program(programs.BIN / "tacho", "list", "recorders").stdout.decode()
        self.assertEqual([name for name in (line.split()[0] for line in text.splitlines()) if not re.search(rf"\b{name}\b", all_pages)], [])


if __name__ == "__main__":
    programs.main()
