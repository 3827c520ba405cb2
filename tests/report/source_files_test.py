#!/usr/bin/env python3
"""Source files beside code: another user's files and secrets are neither shown nor packed, nor texts that the program was not
compiled from."""
import json
import os
import shutil
import unittest

import made_capture as made
import programs
from page_data import Page

NOBODY = 65534
SOURCE = """// the first line
extern int volatile number;
int volatile number;
__attribute__((noinline)) int spin(int n) {
  for (int i = 0; i < n; ++i)
    number += i;  // the hot line
  return number;
}
void _start(void) {
  for (;;) spin(1000);
}
// the last line
"""


@unittest.skipUnless(shutil.which("ld"), "needs ld (binutils)")
class Sources(programs.Scratch):
    def setUp(self):
        super().setUp()
        self.folder.chmod(0o755)
        self.source = self.folder / "hot.c"
        self.source.write_text(SOURCE)
        self.source.chmod(0o644)

    def build(self, *options, compiler="gcc", source=None):
        """A program at fixed addresses, and a capture with samples in the loop of spin()."""
        self.run_program(compiler, "-O1", "-g", "-fno-pic", "-fno-asynchronous-unwind-tables", "-c", *options, "-o", "hot.o", source or self.source)
        self.run_program("ld", "-Ttext=0x401000", "--build-id=none", "-o", "program", "hot.o")
        self.names = {}
        for line in self.run_program("nm", "program").stdout.decode().splitlines():
            address, _, name = line.split()
            self.names[name] = int(address, 16)
        capture = made.Capture(made.Event("cpu-clock", made.SOFTWARE, 0, made.USUAL)).started()
        capture.mapped(made.PID, 0x401000, 0x1000, 0x1000, str(self.folder / "program"))
        for _ in range(10):
            capture.sample(ip=self.names["spin"] + 4)
        (self.folder / "perf.data").write_bytes(capture.file())

    def annotate(self, *options):
        """What annotate prints of spin(), and says."""
        done = self.tacho("annotate", "--stdio2", "--buildid-dir", "none", *options, "spin", status=0)
        return done.stdout.decode(), done.stderr.decode()

    def assert_shown(self, *options):
        text, said = self.annotate(*options)
        self.assertIn("the hot line", text)
        return said

    def assert_not_shown(self, why, *options):
        text, said = self.annotate(*options)
        self.assertNotIn("the hot line", text)
        self.assertRegex(text, "(?m)^ .*add")  # the instructions are
        self.assertRegex(said, why)
        return said

    def pack(self):
        """What pack says when it takes code and sources."""
        return self.tacho("pack", "perf.data", "-o", "packed.data", "--level", "code", status=0).stderr.decode()

    def test_a_source_is_shown_and_packed(self):
        self.build()
        self.assertNotIn("hot.c", self.assert_shown())
        self.pack()
        self.source.unlink()
        self.assertNotIn("hot.c", self.assert_shown("-i", "packed.data"))

    @programs.needs_root
    def test_secrets_are_not_shown(self):
        (self.folder / "src").mkdir()
        secret = self.folder / "secret"
        secret.write_text(SOURCE)
        secret.chmod(0o600)
        for name in (str(secret), f"{self.folder}/src/../secret"):
            self.source.write_text(SOURCE.replace("// the first line", f'# 1 "{name}"'))
            self.build()
            self.assert_not_shown("secret: is not shown as source: it does not have the name of a source file")
            self.assertIn("is not shown as source", self.pack())
            self.assertNotIn(b"the hot line", self.tacho("script", "-F", "+srcline,+srccode", "-i", "packed.data").stdout)

    @programs.needs_root
    def test_a_link_of_another_user_is_not_followed(self):
        theirs = self.folder / "theirs"
        theirs.mkdir()
        secret = self.folder / "secret.c"
        secret.write_text(SOURCE)
        secret.chmod(0o600)
        (theirs / "link.c").symlink_to(secret)
        for path in (theirs, theirs / "link.c"):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        self.source.write_text(SOURCE.replace("// the first line", f'# 1 "{theirs}/link.c"'))
        self.build()
        why = f"link.c: is not shown as source: {theirs} belongs to user {NOBODY}, and root reads no source that another user"
        self.assert_not_shown(why)
        self.assertIn(why, self.pack())
        secret.unlink()
        self.assert_not_shown("perf.data|packed.data", "-i", "packed.data")

    @programs.needs_root
    def test_a_private_source_of_root_is_shown_for_a_program_of_root(self):
        self.source.chmod(0o600)
        self.build()
        self.assert_shown()
        os.chown(self.folder / "program", NOBODY, NOBODY)
        self.assert_not_shown("hot.c: is not shown as source: not all users may read it, and it does not belong to the owner of the program")
        self.source.chmod(0o644)
        self.assert_shown()

    def test_what_is_no_regular_file_is_not_opened(self):
        self.build()
        self.source.unlink()
        os.mkfifo(self.source)
        self.assert_not_shown("hot.c: is not shown as source: it is not a regular file")

    @unittest.skipUnless(shutil.which("clang"), "needs clang, which writes MD5 sums")
    def test_another_text_is_not_shown(self):
        self.build("-gdwarf-5", compiler="clang")
        self.assert_shown()
        self.tacho("pack", "perf.data", "-o", "names.data")
        text = SOURCE.replace("hot line", "hot line, edited")
        self.source.write_text(text)
        os.utime(self.source, (1, 1))
        why = r"hot.c: is not shown as source: it is another text than program was compiled from \(its MD5 sum"
        self.assert_not_shown(why)
        self.assertRegex(self.pack(), why)
        # The sum is in the pack: elsewhere, the program is missing.
        (self.folder / "program").unlink()
        self.assert_not_shown(why, "-i", "packed.data")
        self.assertIn(b"hot.c", self.tacho("report", "-i", "names.data", "--sort", "srcline").stdout)
        source = json.loads(self.tacho("annotate", "--json", "-i", "packed.data", "spin", status=0).stdout)["source"]
        self.assertEqual(source, [])
        self.source.write_text(SOURCE)
        self.assert_shown("-i", "packed.data")

    def test_a_text_with_too_few_lines_is_another_one(self):
        self.build()
        self.source.write_text("\n".join(SOURCE.split("\n")[:5]))
        os.utime(self.source, (1, 1))
        why = "hot.c: is not shown as source: it is another text than the program was compiled from, which had at least "
        self.assert_not_shown(why)

    def test_the_last_line_of_any_code_decides(self):
        """gcc writes no sums. A function behind the one that is shown had lines that the text lacks."""
        self.source.write_text(SOURCE + "\n" * 10 + "int later(int n) { return n + 1; }\n")
        self.build()
        self.assert_shown()
        self.source.write_text(SOURCE)
        os.utime(self.source, (1, 1))
        lines = SOURCE.count("\n")
        why = f"hot.c: is not shown as source: .* had at least {lines + 11} lines; it has {lines}"
        self.assert_not_shown(why)
        self.assertRegex(self.pack(), why)
        (self.folder / "program").unlink()
        source = json.loads(self.tacho("annotate", "--json", "-i", "packed.data", "--symfs", "/dev/null", "spin", status=None).stdout)["source"]
        self.assertEqual(source, [])

    def test_a_newer_text_is_shown_with_a_warning(self):
        self.build()
        self.source.write_text("// one more line\n" + SOURCE)
        os.utime(self.source, (4e9, 4e9))
        self.assertIn(f"hot.c: is more recent than {self.folder}/program: its lines may not be those", self.assert_shown())

    def test_a_source_of_newlines_takes_no_memory(self):
        self.build()
        self.source.write_text("\n" * (32 << 20) + SOURCE)
        os.utime(self.source, (1, 1))
        command = ["prlimit", f"--as={1 << 30}", programs.BIN / "tacho", "annotate", "--no-worker", "--buildid-dir", "none", "spin"]
        self.assertIn(b"spin", self.run_program(*command).stdout)

    def test_a_page_has_the_lines_around_those_with_code(self):
        self.source.write_text(SOURCE.replace("// the hot line", "// \u202ethe hot line</script><b>\t" + 1000 * "x"))
        self.build()
        page = Page(self.tacho("page", "--source", "--buildid-dir", "none", status=None).stdout.decode())
        columns, text = page.columns, lambda number: page.texts[number]
        self.assertEqual([text(name) for name in columns["file.name"]], [str(self.source)])
        lines = dict(zip(columns["source.line"], (text(number) for number in columns["source.text"])))
        self.assertEqual(lines[4], "__attribute__((noinline)) int spin(int n) {")
        self.assertNotIn(12, lines, "spin() ends before")
        self.assertIn("\\xe2\\x80\\xaethe hot line</script><b>", lines[6])
        self.assertLess(len(lines[6]), 420)
        self.assertEqual({columns["row.line"][row - 1] for row in columns["code"]} - {5, 6}, set())
        self.source.unlink()
        page = Page(self.tacho("page", "--source", "--buildid-dir", "none", status=None).stdout.decode())
        self.assertEqual(page.columns["source.text"], [])
        self.assertGreater(len(page.columns["row.text"]), 3)


if __name__ == "__main__":
    programs.main()
