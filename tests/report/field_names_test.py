#!/usr/bin/env python3
"""docs/capture-format.md, "Names of fields", lists exactly the names that tacho dump and tacho header --json print."""
import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCES = ["views/dump/command_dump.cc", "decode/record_fields.cc"]

# A name is the first string argument of a sink's method, or of a helper with a sink as first argument; or it begins a row
# of the table of attribute fields.
NAME = re.compile(r'(?:\bto\.\w+\(|\(to, |^\s*\{)"([a-z0-9_]+)"', re.MULTILINE)
# Words in backquotes that are not field names.
NOT_NAMES = {"xxhsum -H3", "tacho dump", "tacho dump --json", "tacho header --json", '"0x..."', "\\xNN", "\\\\", '\\"'}


def names_in_code():
    return {name for source in SOURCES for name in NAME.findall((ROOT / "report" / source).read_text(encoding="utf-8"))}


def names_in_document():
    text = (ROOT / "docs" / "capture-format.md").read_text(encoding="utf-8")
    section = re.search(r"^## Names of fields\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return set(re.findall(r"`([^`]+)`", section.group(1))) - NOT_NAMES


class FieldNames(unittest.TestCase):
    def test_every_name_in_the_code_is_documented(self):
        self.assertEqual(names_in_code() - names_in_document(), set())

    def test_every_documented_name_is_in_the_code(self):
        self.assertEqual(names_in_document() - names_in_code(), set())

    def test_the_names_are_found_at_all(self):
        self.assertGreater(len(names_in_code()), 150)


if __name__ == "__main__":
    unittest.main()
