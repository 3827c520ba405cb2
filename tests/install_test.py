#!/usr/bin/env python3
"""`cmake --install` after script/build copies all files, and the installed programs work."""
import fnmatch
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

import programs

BUILD = programs.BIN.parent


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="tacho-install-")
        cls.addClassCleanup(folder.cleanup)
        cls.root = Path(folder.name)
        # The target of script/build: nothing to do here after a whole build.
        cls.target = re.search(r"^exec ninja .* (\S+)$", (programs.ROOT / "script" / "build").read_text(), re.MULTILINE)[1]
        for words in [["--build", BUILD, "--target", cls.target], ["--install", BUILD, "--prefix", "/usr"]]:
            done = subprocess.run(["cmake", *words], env={**os.environ, "DESTDIR": folder.name}, capture_output=True, text=True)
            if done.returncode != 0:
                raise AssertionError(f"cmake {words}: {done.stdout}{done.stderr}")

    def test_installed_programs_run_from_where_they_are(self):
        for name in ["tacho", "tacho-record", "tacho-report"]:
            done = subprocess.run([self.root / "usr/bin" / name, "--help"], capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, ""), name)
            self.assertIn("sage: tacho", done.stdout)

    def test_the_version_is_that_of_the_project_everywhere(self):
        project = (programs.ROOT / "CMakeLists.txt").read_text()
        version = re.search(r"^project\(tacho VERSION (\S+)", project, re.MULTILINE)[1]
        for name in ["tacho", "tacho-record", "tacho-report"]:
            done = subprocess.run([self.root / "usr/bin" / name, "--version"], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.stdout, f"tacho {version}\n", name)
        for page in (self.root / "usr/share/man/man1").iterdir():
            self.assertRegex(page.read_text().splitlines()[0], rf"^\.TH .*{re.escape(version)}", page.name)
        newest = re.search(r"^## (\S+)", (programs.ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[1]
        self.assertEqual(newest, version, "CHANGELOG.md")

    def test_each_command_has_a_manual_page(self):
        pages = {page.stem for page in (self.root / "usr/share/man/man1").iterdir()}
        done = subprocess.run([self.root / "usr/bin/tacho", "--help"], capture_output=True, text=True, timeout=60)
        commands = re.findall(r"^  ([a-z]+)  ", done.stdout, re.MULTILINE)
        self.assertIn("record", commands)
        self.assertEqual({f"tacho-{command}" for command in commands} - pages, set())
        for page in (self.root / "usr/share/man/man1").iterdir():
            self.assertIn(".SH SYNOPSIS", page.read_text(), page.name)

    def test_each_file_is_in_a_package(self):
        """Each installed file matches a line of debian/*.install, and each line some file."""
        files = {path.relative_to(self.root).as_posix() for path in self.root.rglob("*") if not path.is_dir()}
        # /usr/lib/MACHINE with Debian's packages, and vendor-completions.
        files = {re.sub(r"^usr/lib(64)?/(?=tacho|cmake)", "usr/lib/MACHINE/", name.replace("site-functions", "vendor-completions"))
                 for name in files}
        packaged = set()
        for listed in (programs.ROOT / "debian").glob("*.install"):
            for line in listed.read_text().splitlines():
                pattern = line.split()[0]
                found = {name for name in files if fnmatch.fnmatch(name, pattern) or fnmatch.fnmatch(name, pattern + "/*")}
                self.assertTrue(found, f"{listed.name}: {pattern}")
                packaged |= found
        # Debian has the license elsewhere.
        self.assertEqual(files - packaged, {"usr/share/doc/tacho/LICENSE"})

    @unittest.skipIf(programs.is_sanitized(), "the libraries are built with sanitizers, the example is not")
    def test_a_program_outside_of_the_tree_reads_a_capture_with_the_library(self):
        folder = tempfile.TemporaryDirectory(prefix="tacho-example-")
        self.addCleanup(folder.cleanup)
        build = Path(folder.name)
        package = next(self.root.rglob("tacho-config.cmake")).parent
        for words in [["-S", self.root / "usr/share/doc/tacho/examples/read-captures", "-B", build, f"-Dtacho_DIR={package}"],
                      ["--build", build]]:
            done = subprocess.run(["cmake", *words], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        capture = programs.ROOT / "tests/data/stable-0.1.data"
        done = subprocess.run([build / "top_functions", capture], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        # All samples are in churn, which report shows without inlined calls.
        self.assertEqual(done.stdout.splitlines(), ["29 samples", " 75.86 %   75.86 %  operator()  [/tmp/c/shapes]",
                                                    " 24.14 %  100.00 %  (anonymous namespace)::churn  [/tmp/c/shapes]"])
        missing = subprocess.run([build / "top_functions", build / "none"], capture_output=True, text=True)
        self.assertEqual((missing.returncode, missing.stdout), (2, ""))
        self.assertIn("none", missing.stderr)

    def test_links_of_the_installed_documents_lead_somewhere(self):
        documents = self.root / "usr/share/doc/tacho"
        self.assertTrue((documents / "README.md").is_file())
        for document in documents.rglob("*.md"):
            for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text()):
                installed = (document.parent / link).resolve()
                # Sources are not installed; the repository has them.
                in_repository = programs.ROOT / installed.relative_to(documents.resolve())
                self.assertTrue(installed.exists() or in_repository.exists(), f"{document.name}: {link}")


if __name__ == "__main__":
    programs.main()
