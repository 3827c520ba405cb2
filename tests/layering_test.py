#!/usr/bin/env python3
"""The direction rules of docs/architecture.md, checked against the include lines.

1. A folder includes only the folders that its row under "Direction" allows.
2. A room (a folder within a folder) includes only the rooms that its row allows.
3. No include cycles: a header and its source count as one file.

The tables in the document are the ones checked, so the document cannot fall behind the code. script/file-list makes the
list of files from their opening comments, so each file has one.
"""
import importlib.machinery
import importlib.util
import re
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "architecture.md"
FOLDERS = ["format", "cli", "unwind", "symbolize", "sandbox", "bpf", "record", "report"]

# Third-party libraries by include prefix, and the only folders that may use them.
FOREIGN = {
    "bpf/bpf.h": {"bpf"},
    "bpf/libbpf.h": {"bpf"},
    "bpf/btf.h": {"bpf"},
    "zstd.h": {"format"},
    "elfutils/": {"symbolize"},
    "dwarf.h": {"symbolize"},
    "traceevent/": {"report"},
    "rapidjson/": {"report"},
    "protozero/": {"report"},
    "xxhash.h": {"format", "report"},
    "curses.h": {"report"},
    "term.h": {"report"},
}
# A library of headers, which a header that writes with it cannot hide.
IN_HEADERS = {"rapidjson/"}

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)


def section(text, heading):
    """The text below `heading` up to the next heading of the same or a higher level."""
    level = heading.split()[0]
    match = re.search(rf"^{re.escape(heading)}\b.*?\n(.*?)(?=^#{{1,{len(level)}}} |\Z)", text, re.MULTILINE | re.DOTALL)
    if match is None:
        raise AssertionError(f"{DOCUMENT.name} has no section '{heading}'")
    return match.group(1)


def allowed_folders(text):
    """{folder: folders that it may include}, from the table under "Direction"."""
    allowed = {}
    for line in section(text, "## Direction").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        is_folder = line.startswith("| `") and len(cells) >= 2 and "/" not in cells[0]
        if is_folder:
            allowed[cells[0].strip("`")] = set(re.findall(r"`([^`]+)`", cells[1]))
    return allowed


def allowed_rooms(text):
    """{room: the rooms it may include}, from the table of rooms; "report/views/*" is each folder in views."""
    allowed = {}
    for line in section(text, "## Direction").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `") and "/" in cells[0]:
            allowed[cells[0].strip("`")] = set(re.findall(r"`([^`]+)`", cells[1]))
    return allowed


def room_of(path):
    """"report/views/hist/command_hist.cc" -> "report/views/hist"; None for a file in the folder itself, and for BPF
    programs and the headers that bpf ships to its users."""
    parent = path.rsplit("/", 1)[0]
    return parent if "/" in parent and not parent.startswith(("bpf/include", "bpf/programs")) else None


def row_of(room):
    return "report/views/*" if room.startswith("report/views/") else room


def sources(folder):
    found = [path for suffix in ("*.h", "*.cc") for path in (ROOT / folder).rglob(suffix)]
    return sorted(path.relative_to(ROOT / folder).as_posix() for path in found)


def load_file_list():
    """script/file-list as a module."""
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader("file_list", str(ROOT / "script" / "file-list"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("file_list", loader))
    loader.exec_module(module)
    return module


def cycle_in(graph):
    """The nodes of a cycle, or [] if the graph has none."""
    done = set()
    for start in graph:
        path, waiting = [], [(start, iter(graph[start]))] if start not in done else []
        if waiting:
            path.append(start)
        while waiting:
            node, following = waiting[-1]
            target = next(following, None)
            if target is None:
                waiting.pop()
                done.add(path.pop())
            elif target in path:
                return path[path.index(target):] + [target]
            elif target not in done:
                path.append(target)
                waiting.append((target, iter(graph.get(target, ()))))
    return []


def includes(folder, name):
    return INCLUDE.findall((ROOT / folder / name).read_text())


class Layering(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.text = DOCUMENT.read_text()

    def test_a_source_file_includes_its_own_header_first(self):
        """So a header with a source file compiles alone: the others have a translation unit (CMakeLists.txt)."""
        faults = []
        for folder in FOLDERS:
            for name in sources(folder):
                header = name.removesuffix(".cc") + ".h"
                if name.endswith(".cc") and (ROOT / folder / header).exists():
                    first = next(iter(includes(folder, name)), None)
                    if first != f"{folder}/{header}":
                        faults.append(f"{folder}/{name} includes {first} before its own header")
        self.assertEqual(faults, [])

    def test_a_header_may_be_included_twice(self):
        # A header that BPF programs include as well has a guard that any compiler of C takes.
        guard = re.compile(r"^#pragma once$|^#ifndef (TACHO_\w+_H)\n#define \1$", re.MULTILINE)
        faults = [f"{folder}/{name}" for folder in FOLDERS for name in sources(folder)
                  if name.endswith(".h") and not guard.search((ROOT / folder / name).read_text())]
        self.assertEqual(faults, [], "headers without #pragma once or a guard")

    def test_a_folder_includes_only_what_its_row_allows(self):
        allowed = allowed_folders(self.text)
        self.assertEqual(sorted(allowed), sorted(FOLDERS))
        faults = []
        for folder in FOLDERS:
            for name in sources(folder):
                for included in includes(folder, name):
                    target = included.split("/")[0]
                    if not (ROOT / included).exists() or target not in FOLDERS or target == folder:
                        continue
                    if target not in allowed[folder] and included not in allowed[folder]:
                        faults.append(f"{folder}/{name} includes {included}")
        self.assertEqual(faults, [])

    def test_a_room_includes_only_what_its_row_allows(self):
        allowed = allowed_rooms(self.text)
        used, faults = set(), []
        for folder in FOLDERS:
            for name in sources(folder):
                room = room_of(f"{folder}/{name}")
                if room is None:
                    continue
                used.update({row_of(room)} | {room} & allowed.keys())
                for included in includes(folder, name):
                    target = room_of(included)
                    if not (ROOT / included).exists() or target in (None, room) or not target.startswith(folder + "/"):
                        continue
                    if target not in allowed.get(row_of(room), set()) | allowed.get(room, set()):
                        faults.append(f"{folder}/{name} includes {included}")
        self.assertEqual(faults, [])
        self.assertEqual(sorted(allowed), sorted(used), "the table of rooms and the rooms")

    def test_there_are_no_include_cycles(self):
        graph = {}
        for folder in FOLDERS:
            for name in sources(folder):
                unit = f"{folder}/{name}".rsplit(".", 1)[0]
                targets = {included.rsplit(".", 1)[0] for included in includes(folder, name) if (ROOT / included).exists()}
                graph.setdefault(unit, set()).update(targets - {unit})
        self.assertEqual(cycle_in(graph), [])

    def test_each_file_opens_with_a_comment(self):
        file_list = load_file_list()
        faults = [name for folder in FOLDERS for name, comment in file_list.described(folder) if not comment]
        self.assertEqual(faults, [], "files that script/file-list cannot describe")

    def test_libraries_of_others_stay_in_their_folder(self):
        faults = []
        for folder in FOLDERS:
            for name in sources(folder):
                for included in includes(folder, name):
                    for library, homes in FOREIGN.items():
                        if included.startswith(library) and folder not in homes:
                            faults.append(f"{folder}/{name} includes <{included}>")
        self.assertEqual(faults, [])

    def test_headers_expose_no_library_of_others(self):
        """But one that only the .cc files of its room include, and headers of this kind, exposes nothing."""
        included_by = {}
        for folder in FOLDERS:
            for name in sources(folder):
                for included in includes(folder, name):
                    included_by.setdefault(included, set()).add(f"{folder}/{name}")

        def is_inner(path):
            room = path.rsplit("/", 1)[0] + "/"
            return all(name.startswith(room) and (name.endswith(".cc") or is_inner(name)) for name in included_by.get(path, ()))

        faults = [
            f"{folder}/{name} includes <{included}>"
            for folder in FOLDERS
            for name in sources(folder)
            if name.endswith(".h") and not is_inner(f"{folder}/{name}")
            for included in includes(folder, name)
            if any(included.startswith(library) for library in FOREIGN.keys() - IN_HEADERS)
        ]
        self.assertEqual(faults, [])

    def test_no_folder_or_file_is_a_drawer_for_everything(self):
        drawers = {"util", "utils", "common", "helpers", "helper", "misc"}
        faults = [
            f"{folder}/{name}"
            for folder in FOLDERS
            for name in sources(folder)
            if drawers & set(re.split(r"[/_.]", name))
        ]
        self.assertEqual(faults, [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
