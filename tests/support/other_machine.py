"""A root folder without files of the host, in which captures are read: the text must be that of the host."""
import re
import shutil
import subprocess
from pathlib import Path

import programs

EVENT = "syscalls:sys_enter_getppid"
NOBODY = 65534

# Commands whose text must be the same; the second half needs packed symbols.
VIEWS = [
    ["script"],
    ["script", "--inline=all"],
    ["script", "-F", "+srcline"],
    ["script", "--no-demangle"],
    ["report", "--stdio", "--no-children"],
    ["report", "--stdio", "--children", "-g", "caller"],
    ["report", "--stdio", "--no-children", "--sort", "sym,srcline", "-g", "none"],
    ["folded"],
    ["folded", "--inline"],
    ["folded", "--inline", "--context"],
]


class OtherMachine:
    """A root folder with tacho-report and the libraries it needs, outside of /usr."""

    def __init__(self, folder):
        self.root = folder
        for name in ["usr", "tmp", "opt/lib", "captures"]:
            (folder / name).mkdir(parents=True)
        shutil.copy(programs.BIN / "tacho-report", folder / "opt/tacho-report")
        listed = subprocess.run(["ldd", programs.BIN / "tacho-report"], capture_output=True, text=True, check=True).stdout
        for library in re.findall(r"(/\S+) \(0x", listed):
            shutil.copy(library, folder / "opt/lib" / Path(library).name)
        self.loader = next(path.name for path in (folder / "opt/lib").iterdir() if path.name.startswith("ld-linux"))
        for path in [folder, *folder.rglob("*")]:
            path.chmod(0o755)

    def command(self, *words):
        return ["unshare", "--net", "--ipc", "--uts", "chroot", f"--userspec={NOBODY}:{NOBODY}", self.root,
                f"/opt/lib/{self.loader}", "--library-path", "/opt/lib", "/opt/tacho-report", *words]

    def bring(self, capture):
        shutil.copy(capture, self.root / "captures")
        (self.root / "captures" / capture.name).chmod(0o644)
        return f"/captures/{capture.name}"


class Travels(programs.Scratch):
    """Tests with captures that are recorded here and read there."""

    def setUp(self):
        super().setUp()
        self.folder.chmod(0o755)  # another user reads in it

    def machine(self):
        there = OtherMachine(self.folder / "there")
        probe = self.run_program(*there.command("--list-commands"), status=None)
        if probe.returncode != 0:
            self.skipTest(f"no root folder of its own here: {probe.stderr.decode(errors='replace')}")
        return there

    def compare(self, there, original, packed, views=VIEWS):
        place = there.bring(packed)
        for view in views:
            with self.subTest(view=" ".join(view)):
                here = self.tacho(view[0], "-i", original, *view[1:], status=None)
                far = self.run_program(*there.command(view[0], "-i", place, *view[1:]), status=None)
                # The head of a report names the capture; nothing else may differ.
                self.assert_same_text(far.stdout, here.stdout)
                here = self.tacho(view[0], "-i", packed, *view[1:], status=None)
                self.assert_same_text(here.stdout, far.stdout)

    def pack(self, capture):
        packed = capture.with_suffix(".packed")
        self.tacho("pack", capture, "-o", packed, status=None)
        self.assertTrue(packed.exists())
        return packed
