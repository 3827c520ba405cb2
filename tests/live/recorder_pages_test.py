#!/usr/bin/env python3
"""docs/recorders: each recorder has a page with five parts: the question, an example with
output, its cost, its hooks and kernels, and reading its captures elsewhere."""
import json
import re
import unittest

import programs

def schemas_in(value):
    """All payload schemas in the output of `tacho header --json`."""
    if isinstance(value, dict):
        if "fields" in value and "event" in value:
            yield value
        for one in value.values():
            yield from schemas_in(one)
    elif isinstance(value, list):
        for one in value:
            yield from schemas_in(one)


def default_keys(header, event):
    [schema] = [one for one in schemas_in(header) if one["event"] == event]
    fields = schema["fields"]
    for role in ("table:", "function", "key"):
        named = [field["name"] if role != "table:" else field["role"].removeprefix(role) for field in fields
                 if (field.get("role") or "").startswith(role)]
        if named:
            return ",".join(named).split(",")
    return ["comm"]


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

    @programs.needs_root
    @programs.needs_btf
    def test_the_table_that_each_shows_first_is_the_default(self):
        """`tacho table` without --by groups by what the page's first table does."""
        choices = {"func": "name='libc.so.6:getenv'"}
        compared = 0
        for name, page in self.pages():
            example = next((line for line in page.read_text().split("```")[1].splitlines() if line.startswith("$ tacho table")), None)
            if example is None or name not in (page.stem, *choices):
                continue
            with self.subTest(name):
                shown = re.search(r" --by (\S+)", example)
                event = f"{name}/{choices[name]}/" if name in choices else name
                self.run_program(programs.BIN / "tacho-record", "-o", "c.data", "-a", "-e", event, "--", "true")
                payloads = json.loads(self.tacho("header", "-i", "c.data", "--json").stdout)
                self.assertEqual(shown.group(1).split(",") if shown else ["comm"], default_keys(payloads, name))
                compared += 1
        self.assertGreater(compared, 14)

    def test_the_front_page_names_each(self):
        front = (PAGES / "README.md").read_text()
        for _name, page in self.pages():
            self.assertIn(f"({page.name})", front)

    def test_other_names_of_recorders_are_on_some_page(self):
        """Every other name of a recorder is on some page, so that it can be found."""
        all_pages = " ".join(page.read_text() for page in PAGES.glob("*.md"))
        text = self.run_program(programs.BIN / "tacho", "list", "recorders").stdout.decode()
        self.assertEqual([name for name in (line.split()[0] for line in text.splitlines()) if not re.search(rf"\b{name}\b", all_pages)], [])


if __name__ == "__main__":
    programs.main()
