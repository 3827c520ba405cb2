#!/usr/bin/env python3
"""Sources that stand in one translation unit mean the same there as alone (cmake/unity.py)."""
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cmake"))
import unity  # noqa: E402


class Unity(unittest.TestCase):
    def units(self, size=10, **texts):
        """The names of the sources in each unit; texts: NAME=text of NAME.cc, or of NAME.h where it ends in _h."""
        with tempfile.TemporaryDirectory() as folder:
            root, sources = Path(folder), []
            for name, text in texts.items():
                path = root / (name[:-2] + ".h" if name.endswith("_h") else name + ".cc")
                path.write_text(text)
                if path.suffix == ".cc":
                    sources.append(path)
            return [[path.stem for path in unit] for unit in unity.units_of(root, sources, size)]

    def test_sources_that_have_nothing_to_do_with_each_other_share_a_unit(self):
        self.assertEqual(self.units(a="void a() {}", b="void b() {}", c="void c() {}", size=2), [["a", "b"], ["c"]])

    def test_names_of_one_source_keep_others_out_that_declare_them(self):
        for declared in ("int number() { return 1; }", "struct number { int x; };", "constexpr int number = 3;",
                         "enum Kind { one, number };", "using number = int;", "constexpr int other = 1, number = 2;",
                         "const char* const number[] = {\"a\"};", "namespace number { int x; }"):
            own = "namespace x {\nnamespace {\n" + declared + "\n}  // namespace\n}"
            self.assertEqual(self.units(a=own, b=own), [["a"], ["b"]], declared)
            self.assertEqual(self.units(a=own, b="namespace x {\nint number() { return 2; }\n}"), [["a"], ["b"]], declared)

    def test_functions_of_one_source_keep_others_out_that_call_one_of_that_name(self):
        own = "namespace {\nvoid close(long) {}\n}"
        self.assertEqual(self.units(a=own, b="void f(int fd) { close(fd); }"), [["a"], ["b"]])
        self.assertEqual(self.units(a=own, b="void f(File& file) { file.close(); }"), [["a", "b"]])
        self.assertEqual(self.units(a="static void close(long) {}", b="void f(int fd) { close(fd); }"), [["a"], ["b"]])

    def test_headers_of_others_keep_a_source_out_too(self):
        own = "namespace {\nstruct Change {};\n}"
        header = "struct Change;"
        self.assertEqual(self.units(change_h=header, a=own, b='#include "change.h"\nvoid b() {}'), [["a"], ["b"]])

    def test_macros_are_names_of_their_source(self):
        self.assertEqual(self.units(a="#include <x>\n#define SIZE 3\n", b="enum { SIZE };"), [["a"], ["b"]])

    def test_a_macro_before_the_headers_keeps_its_source_alone(self):
        self.assertEqual(self.units(a="#define FOR_HEADERS\n#include <x>\n", b="void b() {}"), [["a"], ["b"]])

    def test_tests_of_one_name_are_kept_apart(self):
        self.assertEqual(self.units(a="namespace {\nTEST(A, B) {}\n}", b="namespace {\nTEST(A, C) {}\n}"), [["a", "b"]])
        self.assertEqual(self.units(a="TEST(A, B) {}", b="TEST(A, B) {}"), [["a"], ["b"]])

    def test_texts_and_comments_declare_nothing(self):
        own = "namespace {\nint number() { return 1; }\n}"
        self.assertEqual(self.units(a=own, b='// number()\nconst char* b = "number()";\n'), [["a", "b"]])


if __name__ == "__main__":
    unittest.main(verbosity=2)
