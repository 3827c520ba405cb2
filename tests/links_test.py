#!/usr/bin/env python3
"""Links in documents lead to files, and to headings, that exist."""
import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("tests/**/*.md")])
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = "```"


def prose(text):
    """The lines outside of code."""
    return [line for number, part in enumerate(text.split(FENCE)) if number % 2 == 0 for line in part.splitlines()]


def anchors(text):
    """The fragments that GitHub gives to headings."""
    headings = [line.lstrip("#").strip().lower() for line in prose(text) if re.match(r"#+ ", line)]
    return {re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)).replace(" ", "-")
            for heading in headings}


def fault_of(document, link):
    path, _, fragment = link.partition("#")
    target = (document.parent / path) if path else document
    if not target.exists():
        return "no such file"
    if fragment and target.suffix == ".md" and fragment not in anchors(target.read_text()):
        return "no such heading"
    return None


class Links(unittest.TestCase):
    def test_links_lead_somewhere(self):
        self.assertGreater(len(DOCUMENTS), 20)
        faults = []
        for document in DOCUMENTS:
            for link in LINK.findall("\n".join(prose(document.read_text()))):
                if not link.startswith(("https://", "http://", "mailto:")) and (fault := fault_of(document, link)):
                    faults.append(f"{document.relative_to(ROOT)}: {link}: {fault}")
        self.assertEqual(faults, [])

    def test_a_wrong_link_is_found(self):
        readme = ROOT / "README.md"
        self.assertEqual(fault_of(readme, "docs/none.md"), "no such file")
        self.assertEqual(fault_of(readme, "docs/comparing.md#no-such-heading"), "no such heading")
        self.assertIsNone(fault_of(readme, "docs/comparing.md#json"))


if __name__ == "__main__":
    unittest.main()
