#!/usr/bin/env python3
"""Every type of a namespace has one definition in the whole product.

Two files that each define a `struct Cell` in the same namespace link without a word, and the functions of one run on
the fields of the other. A type of one file alone belongs into a namespace without a name.
"""
import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ["format", "cli", "unwind", "symbolize", "sandbox", "bpf", "record", "report"]
FOR_BPF_PROGRAMS = ("bpf/include/", "bpf/programs/")  # C, and never linked with the product

RAW_TEXT = re.compile(r'R"(\w*)\(.*?\)\1"', re.DOTALL)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
TOKEN = re.compile(
    r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\''  # braces in strings open no scope
    r"|namespace\s*(?P<namespace>[\w:]*)\s*\{"
    r"|\b(?:struct|class|union|enum\s+class|enum)\s+(?:\[\[[^\]]*\]\]\s*)?(?P<type>\w+)(?:\s+final)?\s*(?::[^:{;][^{;()]*)?\{"
    r"|[{}]"
)
NO_NAMESPACE = None  # a scope inside a type or a function
WITHOUT_A_NAME = ""


def types_of(text):
    """The full names of the types that a file defines in namespaces with names."""
    scopes = []
    for token in TOKEN.finditer(COMMENT.sub("", RAW_TEXT.sub('""', text))):
        if token["namespace"] is not None:
            scopes.append(token["namespace"])
        elif token["type"] is not None:
            if NO_NAMESPACE not in scopes and WITHOUT_A_NAME not in scopes:
                yield "::".join([*scopes, token["type"]])
            scopes.append(NO_NAMESPACE)
        elif token[0] == "{":
            scopes.append(NO_NAMESPACE)
        elif token[0] == "}" and scopes:
            scopes.pop()


def definitions():
    """{full name of a type: the files that define it}"""
    found = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            name = str(path.relative_to(ROOT))
            if path.suffix in (".h", ".cc") and not name.startswith(FOR_BPF_PROGRAMS):
                for full_name in set(types_of(path.read_text())):
                    found.setdefault(full_name, []).append(name)
    return found


class OneDefinition(unittest.TestCase):
    def test_each_type_is_defined_in_one_file(self):
        found = definitions()
        self.assertGreater(len(found), 400, "types are no longer recognized")
        self.assertEqual({name: files for name, files in found.items() if len(files) > 1}, {})

    def test_types_are_told_from_what_only_looks_like_them(self):
        text = """
            namespace a::b {
            struct One { struct Inner { int x; }; void f() { struct Local {}; } };
            struct Later;                      // struct NotThis {
            enum class Two : int { kA };
            const char* brace = "}";
            class Three final : public One { };
            namespace { struct Hidden { }; }
            struct One returns_one(One x) { return x; }
            }
        """
        self.assertEqual(list(types_of(text)), ["a::b::One", "a::b::Two", "a::b::Three"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
