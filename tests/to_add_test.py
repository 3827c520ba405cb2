#!/usr/bin/env python3
"""The rows "To add something, touch" of docs/architecture.md are enough: a command, a sort key and a record type are
added to a copy of the sources, in the files of their rows and nowhere else, and what was touched compiles.

    to_add_test.py COMPILER
"""
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ["format", "cli", "unwind", "symbolize", "sandbox", "report"]
COMPILER = "c++"

# What is added: file, the text before which it is put, and the addition.
COMMAND = [
    ("report/views/NAME/command_NAME.cc", "", """#include "report/commands.h"
namespace tacho::report {
Result<cli::ExitStatus> run_added(const std::vector<std::string>& arguments) { return run_dump(arguments); }
}  // namespace tacho::report
"""),
    ("report/commands.h", "Result<cli::ExitStatus> run_pack(",
     "Result<cli::ExitStatus> run_added(const std::vector<std::string>& arguments);\n"),
    ("report/commands.cc", '    {"pack", ', '    {"added", "what is added", run_added},\n'),
    ("report/CMakeLists.txt", "  views/pack/command_pack.cc", "  views/added/command_added.cc\n"),
    ("README.md", "| `tacho pack`", "| `tacho added` | what is added |\n"),
]
SORT_KEY = [("report/profile/sort_keys.cc", '    named("pid",',
             '    named("added", "Added", "what is added", kThread),\n')]
RECORD_TYPE = [
    ("format/records/perf_abi.h", "  kRecordUserStart = 64,", "  kRecordAdded = 60,\n"),
    ("format/records/record.h", "struct ItraceStartRecord {", "struct AddedRecord {\n  std::uint64_t number = 0;\n};\n"),
    ("format/records/record.h", "ThrottleRecord, ReadRecord, AuxRecord,", "AddedRecord, "),
    ("format/records/record.cc", "Record parse_itrace_start(",
     "Record parse_added(Cursor& in, const Parsing&) { return AddedRecord{.number = in.u64()}; }\n"),
    ("format/records/record.cc", "    {abi::kRecordHeaderAttr,", '    {abi::kRecordAdded, "ADDED", parse_added},\n'),
    ("report/decode/record_fields.cc", "  void operator()(const ItraceStartRecord&",
     '  void operator()(const AddedRecord& r) const { to.hex("number", r.number); }\n'),
    ("report/views/redact/record_redaction.cc", "    case abi::kRecordAux:\n    case abi::kRecordItraceStart:\n",
     "    case abi::kRecordAdded:\n"),
]


def files_of_rows():
    """{what is added: its files}, with {h,cc} spelled out."""
    text = (ROOT / "docs/architecture.md").read_text().split("## To add something, touch")[1]
    rows = {}
    for name, files in re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", text, re.MULTILINE)[1:]:
        found = set()
        for file in re.findall(r"`([\w./{},]+\.[\w{},]+)`", files):
            stem, ends = re.fullmatch(r"(.*?)\{(.*)\}|(.*)", file).group(1, 2) if "{" in file else (file, None)
            found |= {stem + end for end in ends.split(",")} if ends else {stem}
        rows[name.strip()] = found
    return rows


class ToAdd(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tacho-test-")
        self.addCleanup(folder.cleanup)
        self.copy = Path(folder.name)
        for name in FOLDERS:
            shutil.copytree(ROOT / name, self.copy / name, symlinks=True)
        shutil.copy(ROOT / "README.md", self.copy)

    def apply(self, additions):
        for file, before, addition in additions:
            path = self.copy / file.replace("NAME", "added")
            if not before:
                path.parent.mkdir()
                path.write_text(addition)
                continue
            text = path.read_text()
            self.assertEqual(text.count(before), 1, f"{file}: {before}")
            path.write_text(text.replace(before, addition + before))

    def compile(self, file):
        command = [COMPILER, "-std=gnu++20", f"-I{self.copy}", "-I/usr/include/capstone", "-fsyntax-only", "-w", self.copy / file]
        return subprocess.run(command, stderr=subprocess.PIPE, text=True).stderr

    def check(self, row, additions):
        touched = {file for file, _, _ in additions}
        self.assertEqual({file for file in files_of_rows()[row] if not file.startswith("tests/")}, touched)
        self.apply(additions)
        sources = [file.replace("NAME", "added") for file in touched if file.endswith(".cc")]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
            self.assertEqual("".join(threads.map(self.compile, sources)), "")

    def test_a_command(self):
        self.check("reading command", COMMAND)

    def test_a_sort_key(self):
        self.check("sort key", SORT_KEY)

    def test_a_record_type(self):
        self.check("record type", RECORD_TYPE)

    def test_all_files_of_all_rows_are_there(self):
        named = {file for files in files_of_rows().values() for file in files if "NAME" not in file}
        self.assertEqual([file for file in sorted(named) if "/" in file and not (ROOT / file).exists()], [])
        self.assertGreater(len(named), 15)


if __name__ == "__main__":
    COMPILER = sys.argv.pop(1)
    unittest.main()
