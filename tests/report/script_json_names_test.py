#!/usr/bin/env python3
"""docs/script-forms.md, "Names in the objects", lists exactly the names that tacho script --json prints."""
import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
NAME = re.compile(r'\bto\.\w+\("([a-z0-9_]+)"')
NOT_NAMES = {"-G", "-F +srcline"}


def names_in_code():
    return set(NAME.findall((ROOT / "report" / "views" / "script" / "script_json.cc").read_text(encoding="utf-8")))


def names_in_document():
    text = (ROOT / "docs" / "script-forms.md").read_text(encoding="utf-8")
    section = re.search(r"^## Names in the objects\n(.*?)(?=^## )", text, re.MULTILINE | re.DOTALL).group(1)
    return set(re.findall(r"`([^`]+)`", section)) - NOT_NAMES


class ScriptJsonNames(unittest.TestCase):
    def test_the_document_lists_the_names_in_the_code(self):
        self.assertEqual(names_in_document(), names_in_code())

    def test_the_names_are_found_at_all(self):
        self.assertGreater(len(names_in_code()), 20)


if __name__ == "__main__":
    unittest.main()
