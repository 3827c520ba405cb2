#!/usr/bin/env python3
"""script/lint knows which lines of which sources changed; shell scripts answer --help."""
import subprocess
import unittest

from own_scripts import ROOT, loaded_script

DIFF = """\
diff --git a/report/one.cc b/report/one.cc
--- a/report/one.cc
+++ b/report/one.cc
@@ -3 +3,2 @@ int f() {
+a
+b
@@ -9,2 +11,0 @@
-c
diff --git a/report/two.h b/report/two.h
--- a/report/two.h
+++ b/report/two.h
@@ -0,0 +1 @@
+d
diff --git a/report/gone.cc b/report/gone.cc
--- a/report/gone.cc
+++ /dev/null
@@ -1,4 +0,0 @@
"""


class Lint(unittest.TestCase):
    def test_lines_that_are_new_have_changed(self):
        files = loaded_script("lint").changed_lines(DIFF)
        self.assertEqual(files, {"report/one.cc": [[3, 4]], "report/two.h": [[1, 1]]})

    def test_a_header_leads_to_the_source_beside_it(self):
        files = {"report/one.cc": [[3, 4]], "report/two.h": [[1, 9]], "bench/other.cc": [[1, 1]], "report/alone.h": [[1, 1]]}
        compiled = {"report/one.cc", "report/two.cc", "report/three.cc"}
        self.assertEqual(loaded_script("lint").sources_of(files, compiled), ["report/two.cc", "report/one.cc"])


class Help(unittest.TestCase):
    def test_shell_scripts_print_what_they_do(self):
        scripts = [file for file in (ROOT / "script").iterdir() if file.read_bytes().startswith(b"#!/bin/sh")]
        self.assertGreater(len(scripts), 9)
        for script in scripts:
            done = subprocess.run([script, "--help"], capture_output=True, text=True, timeout=10)
            comment = script.read_text().splitlines()[1]
            self.assertEqual((done.returncode, done.stderr, done.stdout.splitlines()[0]), (0, "", comment.removeprefix("# ")), script)


if __name__ == "__main__":
    unittest.main()
