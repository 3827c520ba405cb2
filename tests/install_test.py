#!/usr/bin/env python3
"""`cmake --install` after script/build copies all files, and the installed programs work."""
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
