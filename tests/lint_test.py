#!/usr/bin/env python3
"""script/lint knows which lines of which sources changed."""
import unittest

from own_scripts import loaded_script

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


if __name__ == "__main__":
    unittest.main()
