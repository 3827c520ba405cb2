#!/usr/bin/env python3
"""Every header includes what the types that it names need: in a unit of several sources another one may have included it.

Types of the project (by their names alone) and the usual ones of the standard library. headers_test.py compiles each header
for itself instead, which takes minutes."""
import re
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "cmake"))
import unity  # noqa: E402

FOLDERS = ("format", "cli", "unwind", "symbolize", "bpf", "record", "report")
FOR_BPF_PROGRAMS = ("bpf/include/", "bpf/programs/")
WORD = re.compile(r"\b[A-Za-z_]\w*\b")
STANDARD_NAME = re.compile(r"\bstd::(?:ranges::|chrono::|this_thread::)?(\w+)")
STANDARD_INCLUDE = re.compile(r"^\s*#\s*include\s+<([^>]+)>", re.MULTILINE)
DECLARED_TYPE = re.compile(r"\b(?:struct|class|union|enum(?:\s+class)?)\s+(?:\[\[[^\]]*\]\]\s*|alignas\([^)]*\)\s*)*(\w+)|\busing\s+(\w+)\s*=")
ENUM = re.compile(r"\benum\b[^;{}()]*\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}")
TEMPLATE = re.compile(r"\btemplate\s*<(?:[^<>;{}]|<[^<>]*>)*>")
# Which of these headers has a name; any one of several will do.
STANDARD = {
    "string": "string", "to_string": "string", "string_view": "string_view string", "vector": "vector", "map": "map",
    "multimap": "map", "set": "set", "unordered_map": "unordered_map", "unordered_set": "unordered_set", "deque": "deque",
    "list": "list", "array": "array", "span": "span", "optional": "optional", "nullopt": "optional", "variant": "variant",
    "monostate": "variant", "tuple": "tuple", "pair": "utility map unordered_map", "move": "utility", "exchange": "utility",
    "function": "functional", "unique_ptr": "memory", "shared_ptr": "memory", "make_unique": "memory",
    "make_shared": "memory", "byte": "cstddef", "size_t": "cstddef string vector span array string_view",
    "uint64_t": "cstdint", "uint32_t": "cstdint", "uint16_t": "cstdint", "uint8_t": "cstdint", "int64_t": "cstdint",
    "int32_t": "cstdint", "atomic": "atomic", "mutex": "mutex", "lock_guard": "mutex", "unique_lock": "mutex",
    "condition_variable": "condition_variable", "thread": "thread", "numeric_limits": "limits", "endian": "bit",
    "milliseconds": "chrono", "steady_clock": "chrono", "strong_ordering": "compare", "min": "algorithm",
    "max": "algorithm", "clamp": "algorithm", "invocable": "concepts", "initializer_list": "initializer_list vector string",
}


class Headers:
    def __init__(self, root, folders=FOLDERS):
        self.root, self.sources = root, unity.Sources(root)
        self.paths = [
            path for folder in folders for path in sorted((root / folder).rglob("*.h"))
            if not str(path.relative_to(root)).startswith(FOR_BPF_PROGRAMS)
        ]
        self.text = {path: unity.DIRECTIVE.sub("", unity.NOT_CODE.sub(" ", path.read_text())) for path in self.paths}
        self.types = {path: self.declared(text) for path, text in self.text.items()}

    @staticmethod
    def declared(text):
        types = {first or second for first, second in DECLARED_TYPE.findall(text)}
        for scope in ENUM.findall(text) + TEMPLATE.findall(text):
            types |= set(WORD.findall(scope))
        return types

    def around(self, path):
        return self.sources.headers(path) | {path}

    def project_types(self):
        named = {name for path in self.paths for name in self.sources.text(path).shared if name[:1].isupper()}
        return named & {one or other for text in self.text.values() for one, other in DECLARED_TYPE.findall(text)}

    def missing(self):
        """By header: types of the project that are named and that no header here mentions, and standard ones."""
        everywhere, found = self.project_types(), {}
        for path in self.paths:
            names = self.missing_types(path, everywhere) + self.missing_standard(path)
            if names:
                found[str(path.relative_to(self.root))] = names
        return found

    def missing_types(self, path, everywhere):
        known = set(self.types[path])
        for header in self.around(path) - {path}:
            known |= set(WORD.findall(self.text.get(header) or header.read_text()))
        return sorted((set(WORD.findall(self.text[path])) & everywhere) - known)

    def missing_standard(self, path):
        included = set()
        for header in self.around(path):
            included |= set(STANDARD_INCLUDE.findall(header.read_text()))
        names = set(STANDARD_NAME.findall(self.text[path]))
        return sorted(f"std::{name}" for name in names if name in STANDARD and not included & set(STANDARD[name].split()))


class HeaderNames(unittest.TestCase):
    maxDiff = None

    def test_of_the_project(self):
        headers = Headers(ROOT)
        self.assertGreater(len(headers.project_types()), 300)
        self.assertEqual(headers.missing(), {})

    def test_what_is_missing_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "a").mkdir()
            (root / "a" / "known.h").write_text("struct Known { enum class Kind { One, Other }; };\nclass Later;\n")
            (root / "a" / "other.h").write_text("struct Other {};\n")
            (root / "a" / "good.h").write_text(
                '#include <vector>\n#include "a/known.h"\nstruct Other;\ntemplate <class Later> struct Good { std::vector<Known> all; };\n')
            (root / "a" / "bad.h").write_text("struct Bad { Known* one; std::vector<Other> all; };  // Later\n")
            self.assertEqual(Headers(root, ["a"]).missing(), {"a/bad.h": ["Known", "Other", "std::vector"]})


if __name__ == "__main__":
    unittest.main(verbosity=0)
