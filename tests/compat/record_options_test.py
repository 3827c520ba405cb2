#!/usr/bin/env python3
"""tacho record has every option of `perf record -h`: accepted, or refused with an alternative."""
import re

import programs


@programs.needs_perf
class RecordOptions(programs.Scratch):
    def setUp(self):
        super().setUp()
        text = self.perf("record", "-h", status=None)
        self.rows = [line for line in (text.stdout + text.stderr).decode().splitlines() if re.match(r" +-", line)]

    def test_no_option_is_unknown(self):
        seen = 0
        for row in self.rows:
            names = re.match(r" +((?:-\w, )?--?[\w-]+)(.*)", row)
            takes_value = re.match(r"(?:,| )? ?<", names[2]) is not None
            for spelling in names[1].split(", "):
                with self.subTest(option=spelling):
                    words = [spelling, "1"] if takes_value else [spelling]
                    # --version is last, so that an accepted option does nothing else.
                    done = self.tacho("record", *words, "--version", status=None)
                    message = done.stderr.decode()
                    self.assertIn(done.returncode, (0, 1), message)
                    self.assertNotIn("unknown option", message)
                    self.assertNotIn("takes no value", message)
                    if done.returncode == 1:
                        # One line, and for a wrong event the text with a caret.
                        self.assertRegex(message, r"\A[^\n]+\n(    [^\n]*\n *\^\n)?\Z")
                        self.assertRegex(message, r"^tacho record: -")
                    seen += 1
        self.assertGreater(seen, 80)


if __name__ == "__main__":
    programs.main()
