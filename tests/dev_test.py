#!/usr/bin/env python3
"""script/dev finds the programs of a GoogleTest's name, and says so when there is none."""
import json
import tempfile
import unittest
from pathlib import Path

from own_scripts import ROOT, loaded_script


class ProgramsOfATest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dev = loaded_script("dev")
        self.dev.BUILD = Path(folder.name)
        sources = {"report_test": "report/profile/entries_test.cc", "format_test": "format/records/record_test.cc"}
        (self.dev.BUILD / "compile_commands.json").write_text(json.dumps([
            {"file": str(ROOT / "tests" / source),
             "command": f"c++ -include test_headers.dir/x.hxx -o tests/x/CMakeFiles/{program}.dir/{source}.o -c {source}"}
            for program, source in sources.items()]))

    def test_a_suite_a_test_and_a_pattern_lead_to_their_programs(self):
        self.assertEqual(self.dev.test_programs("Entries.*"), {"report_test"})
        self.assertEqual(self.dev.test_programs("Record.NamesAreKnownAndDiffer"), {"format_test"})
        self.assertEqual(self.dev.test_programs("*"), {"report_test", "format_test"})

    def test_a_name_that_no_test_has_is_refused(self):
        with self.assertRaisesRegex(SystemExit, r"no test in tests/ is named Entrys\.\*"):
            self.dev.run_google_tests(["Entrys.*"])

    def test_a_source_stands_for_what_is_compiled_of_it(self):
        self.assertEqual(self.dev.ninja_target("no_such_file"), "no_such_file")
        self.assertEqual(self.dev.ninja_target(ROOT / "report/commands.cc"), f"{ROOT}/report/commands.cc^")


if __name__ == "__main__":
    unittest.main()
