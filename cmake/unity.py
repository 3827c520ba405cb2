#!/usr/bin/env python3
"""Sources of one target as few translation units: each includes up to SIZE sources that agree with each other.

    unity.py ROOT OUTPUT_FOLDER SIZE [NAME=]SOURCE...   prints the units, separated by semicolons

Sources lie in ROOT and are included by their place in it: caches of compilers know the unit of another clone.

Most of a compiler's time goes into headers, so sources that share them cost together little more than one of them. What
a source keeps for itself (names in a namespace without a name, static ones, macros, the tests of GoogleTest) must mean
nothing to the other sources of its unit: neither may they declare or call such a name, nor headers of theirs declare it.
NAME=SOURCE: the function LLVMFuzzerTestOneInput of this source gets that name, as each target of fuzz/ has one.
"""
import functools
import re
import sys
from pathlib import Path

NOT_CODE = re.compile(r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*.*?\*/', re.DOTALL)
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
MACRO = re.compile(r"^\s*#\s*define\s+(\w+)", re.MULTILINE)
DIRECTIVE = re.compile(r"^\s*#(?:[^\n\\]|\\\n|\\.)*", re.MULTILINE)
TEST = re.compile(r"\bTEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)")
CALL = re.compile(r"(?<![.>:\w])([A-Za-z_]\w*)\s*\(")
TYPE = re.compile(r"\b(?:struct|class|union|enum\s+class|enum)\s+(?:\[\[[^\]]*\]\]\s*)?(\w+)")
USING = re.compile(r"\busing\s+(\w+)\s*=|\bnamespace\s+\w+\s*=|\busing\b")
FUNCTION = re.compile(r"(\w+)\s*\(")
NAMESPACE = re.compile(r"\bnamespace\s*([\w:]*)\s*$")
OPENS = ("named", "own")  # namespaces with a name and without
RECENT = 12  # so many unfinished units are looked at, as neighbours in the list share most headers


def names_in(statement):
    """What a statement of a namespace may declare; rather too much than too little."""
    if "operator" in statement or TEST.search(statement):
        return set()
    alias = USING.search(statement)
    if alias:  # the same short word for a namespace, or for a name of one, may stand in two sources
        return {alias[1]} if alias[1] else set()
    if TYPE.search(statement) and not re.search(r"[=)]", statement):
        return set(TYPE.findall(statement)[:1])
    declared = re.split(r"=(?!=)", statement)[0]
    call = FUNCTION.search(declared)
    if call:
        return {call[1]}
    return set(re.findall(r"([A-Za-z_]\w*)\s*(?:\[[^\]]*\]\s*)*$", declared)) | set(re.findall(r"([A-Za-z_]\w*)\s*=(?!=)", statement))


class Text:
    """The words of a file, and what it declares in namespaces: for all, and for itself."""

    def __init__(self, path):
        raw = path.read_text()
        text = NOT_CODE.sub(lambda found: " " if found[0].startswith("/") else '""', raw)
        self.includes = INCLUDE.findall(raw)
        self.macros = set(MACRO.findall(text))
        tests = {f"{suite}_{name}_Test" for suite, name in TEST.findall(text)}
        self.calls = set(CALL.findall(text))
        self.shared, self.own = set(), self.macros | tests
        self._read(DIRECTIVE.sub("", text))

    def _read(self, text):
        scopes, start = ["named"], 0
        for found in re.finditer(r"[{};]", text):
            statement, sign = text[start : found.start()], found[0]
            if sign != "}" or scopes[-1] == "list":
                self._take(scopes, statement)
            if sign == "{":
                scopes.append(self._opened(scopes, statement))
            elif sign == "}" and len(scopes) > 1:
                scopes.pop()
            start = found.end()

    def _take(self, scopes, statement):
        if scopes[-1] == "list":  # enumerators
            (self.own if "own" in scopes else self.shared).update(re.findall(r"(\w+)\s*(?:=[^,]*)?(?:,|$)", statement))
        elif scopes[-1] in OPENS and NAMESPACE.search(statement):
            (self.own if "own" in scopes else self.shared).add(NAMESPACE.search(statement)[1].rpartition("::")[2])
        elif scopes[-1] in OPENS:
            is_own = "own" in scopes or re.search(r"\bstatic\b", statement)
            (self.own if is_own else self.shared).update(names_in(statement))

    @staticmethod
    def _opened(scopes, statement):
        if scopes[-1] not in OPENS:
            return "inside"
        namespace = NAMESPACE.search(statement)
        if namespace:
            return "named" if namespace[1] else "own"
        return "list" if re.search(r"\benum\b(?!\s+class)[^()]*$", statement) else "inside"


class Sources:
    def __init__(self, root):
        self.root = root
        self.text = functools.cache(Text)

    @functools.cache
    def headers(self, path):
        """The headers of the project that a file includes, and what those include."""
        found, waiting = set(), [path]
        while waiting:
            at = waiting.pop()
            for name in self.text(at).includes:
                header = next((h for h in (self.root / name, at.parent / name) if h.is_file()), None)
                if header and header not in found:
                    found.add(header)
                    waiting.append(header)
        return frozenset(found)

    @functools.cache
    def is_alone(self, path):
        """Whether a source changes what headers mean to it."""
        raw = path.read_text()
        macro, include = MACRO.search(raw), re.search(r"^\s*#\s*include", raw, re.MULTILINE)
        return bool(macro and include and macro.start() < include.start())

    def disturbs(self, one, other):
        own, text = self.text(one).own, self.text(other)
        if own & (text.own | text.shared | text.calls):
            return True
        return any(own & (self.text(h).shared | self.text(h).macros) for h in self.headers(other) - self.headers(one))

    def agree(self, one, other):
        return not self.disturbs(one, other) and not self.disturbs(other, one)


def units_of(root, paths, size):
    """Lists of sources, at most `size` in each, in the order of `paths`."""
    sources, units, unfinished = Sources(root), [], []
    for path in paths:
        unit = None
        if not sources.is_alone(path):
            unit = next((u for u in unfinished if all(sources.agree(path, other) for other in u)), None)
        if unit is None:
            unit = []
            units.append(unit)
            if not sources.is_alone(path):
                unfinished = [*unfinished, unit][-RECENT:]
        unit.append(path)
        unfinished = [u for u in unfinished if len(u) < size]
    return units


def main():
    root, folder, size = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    names = {}
    for argument in sys.argv[4:]:
        name, _, source = argument.rpartition("=")
        names[Path(source)] = name
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for number, unit in enumerate(units_of(root, list(names), size)):
        lines = []
        for path in unit:
            include = f'#include "{path.relative_to(root)}"\n'
            if names[path]:
                include = f"#define LLVMFuzzerTestOneInput {names[path]}\n{include}#undef LLVMFuzzerTestOneInput\n"
            lines.append(include)
        made.append(folder / f"unit_{number}.cc")
        text = "".join(lines)
        if not made[-1].is_file() or made[-1].read_text() != text:
            made[-1].write_text(text)
    print(";".join(map(str, made)), end="")


if __name__ == "__main__":
    main()
