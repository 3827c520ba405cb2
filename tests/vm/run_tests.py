#!/usr/bin/env python3
"""run_tests.py NAME...: test files of tests/live, one after another in one process, and one line that says how it went:
what kprobe_test.py runs in another kernel."""
import os
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))

tests = unittest.defaultTestLoader.loadTestsFromNames(sys.argv[1:])
result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(tests)
ran = result.testsRun - len(result.skipped)
print(f"ran {ran} tests on Linux {os.uname().release}, {len(result.skipped)} skipped")
sys.exit(0 if result.wasSuccessful() and ran else 1)
