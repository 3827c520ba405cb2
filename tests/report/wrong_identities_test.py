#!/usr/bin/env python3
"""Twenty-three combinations of a capture with wrong symbol sources: files, kallsyms, perf maps, packs of other
builds, hosts, boots and processes. None gives a wrong name: each is reported, or the right file is found."""
import bz2
import fcntl
import json
import os
import random
import re
import shutil
import struct
import tarfile
import time
import unittest
from pathlib import Path

import made_capture as made
import programs

CODE = """
%(before)s
__attribute__((noinline, used)) long %(name)s_leaf(long x) { return x * 3 + 1; }
__attribute__((noinline, used)) long %(name)s_middle(long x) { return %(name)s_leaf(x) * 5; }
int main(int count, char** words) { (void)words; return (int)%(name)s_middle(count); }
"""
MORE = "__attribute__((noinline, used)) long wrong_more(long x) { return x ^ 7; }\n"
PATH, BASE, SIZE = "/opt/program", 0x555555554000, 0x4000
WITH_BUILD_ID = 1 << 14  # bits of misc of an MMAP2 record
KERNEL_SIZE, KERNEL_CALL, MODULE_AT = 0x1000000, 0x1234, 0xffffffffc0200000
HOSTNAME, OS_RELEASE, BUILD_ID = 3, 4, 2
MADE_CODE = 0x7f0000000000
MONOTONIC = 1
SAMPLE_TIME = 21


def kallsyms(moved=0, size=KERNEL_SIZE, name="right_kernel", at=KERNEL_CALL, module="right_module", module_at=MODULE_AT):
    base = made.KERNEL_TEXT + moved
    return (f"{base:x} T _text\n{base + at - 0x34:x} T {name}\n{base + at + 0x100:x} T after\n{base + size:x} T _etext\n"
            f"{module_at:x} t {module}\t[mod]\n{module_at + 0x800:x} t {module}_end\t[mod]\n")


def jitdump(pid, name):
    code = bytes(16)
    body = struct.pack("<IIQQQQ", pid, pid, MADE_CODE, MADE_CODE, len(code), 1) + name.encode() + b"\0" + code
    return (struct.pack("<IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, pid, 1, 0)
            + struct.pack("<IIQ", 0, 16 + len(body), 1000) + body)


class Event(made.Event):
    """An event with build ids in MMAP2 records, and times of CLOCK_MONOTONIC."""

    def attr(self):
        attr = bytearray(super().attr())
        flags_at, clock_at, build_ids, uses_clock = 40, 92, 1 << 34, 1 << 25
        struct.pack_into("<Q", attr, flags_at, made.SAMPLE_ID_ALL | build_ids | uses_clock)
        struct.pack_into("<i", attr, clock_at, MONOTONIC)
        return bytes(attr)


@unittest.skipUnless(shutil.which("cc") and shutil.which("objcopy"), "needs a C compiler and objcopy")
class WrongIdentities(programs.Scratch):
    def setUp(self):
        super().setUp()
        self.root = self.folder / "root"
        self.place = self.root / PATH[1:]
        self.place.parent.mkdir(parents=True)
        self.right = self.build("right")
        self.wrong = self.build("wrong", MORE)
        self.options = ["--symfs", self.root, "--buildid-dir", self.folder / "cache"]

    def build(self, name, before=""):
        (self.folder / f"{name}.c").write_text(CODE % {"name": name, "before": before})
        self.run_program("cc", "-O1", "-g", "-Wl,--build-id", "-o", name, f"{name}.c")
        return self.folder / name

    def build_id(self, file):
        return re.search(r"Build ID: ([0-9a-f]+)", self.run_program("readelf", "-n", file).stdout.decode()).group(1)

    def symbol(self, file, name):
        for line in self.run_program("nm", file).stdout.decode().splitlines():
            if line.endswith(f" {name}"):
                return int(line.split()[0], 16)
        raise AssertionError(f"{file} has no {name}")

    def write(self, name="perf.data", program=True, kernel=False, made_code=False, features=None, build_id=None):
        """A capture with samples in the program, the kernel with a module, or JIT code."""
        capture = made.Capture(Event("cpu-clock", made.SOFTWARE, 0, made.USUAL), features=features)
        capture.data += made.record(1, made.KERNEL, struct.pack("<IIQQQ", 0xffffffff, 0, made.KERNEL_TEXT, KERNEL_SIZE, made.KERNEL_TEXT)
                                    + made.text_field("[kernel.kallsyms]_text", 24) + capture.trailer())
        capture.named("program")
        if program:
            self.map_program(capture, bytes.fromhex(self.build_id(self.right) if build_id is None else build_id))
            for function in ("right_leaf", "right_middle", "main"):
                capture.sample(ip=BASE + self.symbol(self.right, function) + 2)
        if kernel:
            capture.data += made.record(1, made.KERNEL, struct.pack("<IIQQQ", 0xffffffff, 0, MODULE_AT, 0x1000, 0)
                                        + made.text_field("[mod]", 8) + capture.trailer())
            capture.sample(ip=made.KERNEL_TEXT + KERNEL_CALL, misc=made.KERNEL)
            capture.sample(ip=MODULE_AT + 0x10, misc=made.KERNEL)
        if made_code:
            capture.mapped(made.PID, MADE_CODE, 0x1000, 0, "//anon")
            capture.sample(ip=MADE_CODE + 8)
        path = self.folder / name
        path.write_bytes(capture.file())
        return path

    def map_program(self, capture, build_id):
        body = struct.pack("<IIQQQ", made.PID, made.PID, BASE, SIZE, 0) + struct.pack("<B3x", len(build_id)) + build_id.ljust(20, b"\0")
        capture.data += made.record(10, made.USER | WITH_BUILD_ID, body + struct.pack("<II", 5, 2) + made.text_field(PATH, 16)
                                    + capture.trailer())

    def script(self, *options, capture="perf.data", said=None):
        done = self.tacho("script", "-i", capture, "-F", "ip,sym,dso", *(options or self.options), status=None)
        text, reported = done.stdout.decode(), done.stderr.decode()
        self.assertNotIn("wrong_", text)
        self.assertNotEqual(text, "")
        if said is not None:
            self.assertRegex(reported, said)
        return text

    def refuse(self, *options, said, capture="perf.data"):
        self.assertNotIn("right_", self.script(*options, said=said, capture=capture))

    def test_names_without_an_identity_are_marked_in_every_view(self):
        shutil.copy(self.right, self.place)
        guess = f"{PATH}: its names are a guess: no build id of it was recorded"
        for build_id, is_unsure in ((None, False), ("", True)):
            self.write(build_id=build_id)
            self.tacho("pack", "perf.data", "-o", "packed.data", *self.options, status=None)
            for capture in ("perf.data", "packed.data"):
                for view in (["script"], ["report"], ["script", "--json"], ["report", "--json"]):
                    with self.subTest(view=" ".join(view), capture=capture, is_unsure=is_unsure):
                        done = self.tacho(*view, "-i", capture, *self.options, status=None)
                        self.assertIn(b"right_leaf", done.stdout)
                        self.assertEqual(guess in done.stderr.decode(), is_unsure, done.stderr)
                        if "--json" in view:
                            self.assertEqual(b'"unsure":true' in done.stdout.replace(b" ", b""), is_unsure)
                facts = json.loads(self.tacho("doctor", capture, "--json", status=None).stdout)
                self.assertEqual(facts["unsure_frames"] > 0, is_unsure)

    def test_doctor_needs_no_folder_and_shows_none_of_its_own(self):
        self.write(kernel=True, made_code=True)
        os.environ["TMPDIR"] = "/nonexistent"
        self.addCleanup(os.environ.__delitem__, "TMPDIR")
        for form in ([], ["--json"]):
            done = self.tacho("doctor", "perf.data", *form, status=None)
            self.assertIn(done.returncode, (0, 3), done.stderr)
            self.assertIn(PATH.encode(), done.stdout)
            for own in (b"tacho-nothing", b"/dev/null", b"/nonexistent"):
                self.assertNotIn(own, done.stdout + done.stderr)

    def pack_from(self, archive, status):
        done = self.tacho("pack", "perf.data", "-o", "packed.data", "--from", archive, *self.options, status=status)
        return done.stderr.decode()

    def test_archives_that_perf_makes(self):
        """Files in archives are identified by their build ids, not by their names in the archive."""
        self.write()
        escapes = ["../../../../escaped", "/tmp/tacho-escaped", "opt/program/elf"]
        for name, mode in (("archive.tar.bz2", "w:bz2"), ("archive.tar", "w")):
            for files, is_there in (([self.wrong, self.folder / "right.c", self.right], True), ([self.wrong], False)):
                with self.subTest(name=name, is_there=is_there):
                    with tarfile.open(self.folder / name, mode) as tar:
                        for file, called in zip(files, escapes):
                            tar.add(file, called)
                        link = tarfile.TarInfo(".build-id/ab/cdef")
                        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
                        tar.addfile(link)
                    before = sorted(self.folder.rglob("*"))
                    self.pack_from(name, 0)
                    self.assertEqual(sorted({*self.folder.rglob("*")} - {self.folder / "packed.data", self.folder / "packed.data.old"}),
                                     [path for path in before if not path.name.startswith("packed.data")])
                    self.assertFalse(Path("/tmp/tacho-escaped").exists() or Path("/escaped").exists())
                    self.assertEqual("right_leaf" in self.script(*self.options, capture="packed.data"), is_there)

    def test_archives_in_archives(self):
        """As perf archive --all makes them. An archive in a nested one is ignored."""
        self.write()
        (self.folder / "noise.bz2").write_bytes(bz2.compress(b"noise" * 1000))
        inner = self.right
        for name, is_there in (("perf.symbols.tar.bz2", True), ("perf.all.tar.bz2", True), ("deeper.tar", False)):
            with tarfile.open(self.folder / name, "w:bz2" if name.endswith("bz2") else "w") as tar:
                for file in (self.folder / "perf.data", inner):
                    tar.add(file, file.name)
            inner = self.folder / name
            self.pack_from(name, 0)
            self.assertEqual("right_leaf" in self.script(*self.options, capture="packed.data"), is_there, name)
        with tarfile.open(self.folder / "odd.tar", "w") as tar:
            for file in (self.folder / "noise.bz2", self.right):
                tar.add(file, file.name)
        said = self.pack_from("odd.tar", 3)
        self.assertIn("tacho: --from odd.tar: one of its files is ignored: in an archive in it: it", said)
        self.assertIn("right_leaf", self.script(*self.options, capture="packed.data"))

    def test_archives_that_are_damaged(self):
        self.write()
        (self.folder / "noise").write_bytes(random.Random(1).randbytes(2_000_000))
        with tarfile.open(self.folder / "whole.tar.bz2", "w:bz2") as tar:
            for name in ("right", "noise"):
                tar.add(self.folder / name, name)
        with tarfile.open(self.folder / "whole.tar", "w") as tar:
            for name in ("right", "noise"):
                tar.add(self.folder / name, name)
        packed, plain = ((self.folder / name).read_bytes() for name in ("whole.tar.bz2", "whole.tar"))
        second = plain.index(b"noise\0")
        cut, damaged = "it is truncated", "its bzip2 part is damaged"
        for name, content, reasons in (
                ("cut short", packed[:len(packed) // 2], [cut]),
                # If the damage is in the end code of a block, the reported error is a missing end.
                *((f"damaged {at} before its end", packed[:-at] + bytes(size) + packed[size - at:], [damaged, cut])
                  for at, size in ((2000, 1000), (40_000, 30), (3000, 30), (60, 8))),
                ("another sum", plain[:second] + b"N" + plain[second + 1:], ["its tar is damaged"]),
                ("two streams", bz2.compress(plain[:7000]) + bz2.compress(plain[7000:]), [])):
            with self.subTest(name):
                (self.folder / "archive").write_bytes(content)
                said = self.pack_from("archive", 3 if reasons else 0)
                self.assertTrue(any("the rest after its first file is ignored: " + why in said for why in reasons) or not reasons, said)
                self.assertIn("right_leaf", self.script(*self.options, capture="packed.data"))
        for content, said in ((b"BZh9" + bytes(1000), "its bzip2 part is damaged"), (packed[:3000], "it is truncated"),
                              (plain[:124] + b"\x80" + b"\xff" * 11 + plain[136:], "its tar is damaged")):
            (self.folder / "archive").write_bytes(content)
            (self.folder / "packed.data").unlink(missing_ok=True)
            self.assertIn(said, self.pack_from("archive", 2))
            self.assertFalse((self.folder / "packed.data").exists())

    def test_archives_of_which_a_part_is_taken(self):
        """One line for each reason, with the number of files."""
        self.write()
        copies = 513
        with tarfile.open(self.folder / "many.tar", "w") as tar:
            for number in range(copies):
                tar.add(self.right, f"right{number}")
        too_many = "the limit is 512 files and 1 GB"
        said = self.pack_from("many.tar", 3)
        self.assertIn(f"tacho: --from many.tar: one of its files is ignored: {too_many}\n", said)
        self.assertIn("right_leaf", self.script(*self.options, capture="packed.data"))
        # Then one that exceeds the size limit and is truncated.
        huge = tarfile.TarInfo("huge")
        huge.size = (1 << 30) + 512
        end = (self.folder / "many.tar").read_bytes().rstrip(b"\0")
        content = end + bytes(-len(end) % 512) + huge.tobuf() + b"\177ELF" + bytes(1 << 18)
        (self.folder / "cut.tar").write_bytes(content)
        said = self.pack_from("cut.tar", 3).splitlines()
        self.assertIn(f"tacho: --from cut.tar: 2 of its files are ignored: {too_many}", said)
        self.assertIn("tacho: --from cut.tar: the rest after its first 512 files is ignored: it is truncated", said)

    def test_a_build_id_that_a_pipe_tells_behind_the_samples(self):
        self.write(build_id="")
        self.tacho("convert", "-i", "perf.data", "-o", "early.data", "--to", "pipe")
        name = PATH.encode() + b"\0" * (8 - len(PATH) % 8)
        known = bytes.fromhex(self.build_id(self.right))
        body = struct.pack("<i20sB3x", made.PID, known.ljust(20, b"\0"), len(known)) + name
        # Two rounds end, so that the samples are shown, and then comes a BUILD_ID record.
        late = made.record(68, 0, b"") * 2 + made.record(67, 1 << 15 | made.USER, body)
        (self.folder / "late.data").write_bytes((self.folder / "early.data").read_bytes() + late)
        said = "names of another file: " + re.escape(PATH) + ": the file there has (no )?build id"
        for file, is_right in ((self.right, True), (self.wrong, False)):
            shutil.copy(file, self.place)
            for view in (["script"], ["report"], ["script", "--json"]):
                with self.subTest(view=" ".join(view), file=file.name):
                    done = self.tacho(*view, "-i", "late.data", *self.options, status=None)
                    self.assertNotIn(b"a guess", done.stderr)
                    if is_right:
                        self.assertIn(b"right_leaf", done.stdout)
                        self.assertEqual((done.returncode, done.stderr), (0, b""))
                    elif b"wrong_" in done.stdout:  # shown before the build id was read
                        self.assertRegex(done.stderr.decode(), said)
                        self.assertEqual(done.returncode, 3)
                    else:  # a report resolves symbols at the end
                        self.assertEqual(view, ["report"])
                        self.assertIn(b"another build id", done.stderr)

    def test_the_right_ones_are_taken(self):
        self.write(kernel=True)
        shutil.copy(self.right, self.place)
        (self.folder / "list").write_text(kallsyms())
        text = self.script(*self.options, "--kallsyms", "list")
        for name in ("right_leaf", "right_middle", "main", "right_kernel", "right_module"):
            self.assertIn(name, text)

    def test_files_in_a_program_s_place(self):
        self.write()
        mixtures = {
            "built anew": (lambda: shutil.copy(self.wrong, self.place), "another build id"),
            "another program": (lambda: shutil.copy("/bin/true", self.place), "another build id|has no build id"),
            "a link to another": (lambda: self.place.symlink_to(self.wrong), PATH),
            "without a build id": (lambda: self.run_program("objcopy", "-R", ".note.gnu.build-id", self.wrong, self.place), "has no build id"),
            "cut short": (lambda: self.place.write_bytes(self.right.read_bytes()[:200]), PATH),
            "a folder": (self.place.mkdir, PATH),
            "no file": (lambda: None, PATH),
        }
        for name, (make, said) in mixtures.items():
            with self.subTest(mixture=name):
                make()
                self.refuse(said=said)
                if self.place.is_dir() and not self.place.is_symlink():
                    self.place.rmdir()
                elif self.place.is_symlink() or self.place.exists():
                    self.place.unlink()

    def stripped(self, *more):
        self.run_program("objcopy", "--strip-all", *more, self.right, self.place)

    def test_a_program_that_was_replaced_while_it_ran(self):
        """perf's build-id table has the id of the last file at the path; the inodes in MMAP2 records distinguish the files."""
        mine, program = os.uname(), self.folder / "program"
        shutil.copy(self.right, program)
        there = program.stat()
        device, inode = (os.major(there.st_dev), os.minor(there.st_dev)), there.st_ino
        known = bytes.fromhex(self.build_id(program))
        name = str(program).encode() + b"\0"
        name += bytes(-len(name) % 8)
        table = struct.pack("<IHHi20sB3x", 36 + len(name), made.USER, 36 + len(name), made.PID, known.ljust(20, b"\0"), len(known)) + name
        now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)

        def write(*files, host=mine.nodename, end=now, ids=table):
            features = {HOSTNAME: made.header_string(host), OS_RELEASE: made.header_string(mine.release),
                        SAMPLE_TIME: struct.pack("<QQ", 1, end), **({BUILD_ID: ids} if ids else {})}
            capture = made.Capture(Event("cpu-clock", made.SOFTWARE, 0, made.USUAL), features=features)
            capture.named("program")
            for place, (major, minor, number, generation) in enumerate(files):
                start = BASE + place * 0x100000
                body = struct.pack("<IIQQQIIQQII", made.PID, made.PID, start, SIZE, 0, major, minor, number, generation, 5, 2)
                capture.data += made.record(10, made.USER, body + name + capture.trailer())
                capture.sample(ip=start + self.symbol(program, "right_leaf") + 2)
            (self.folder / "perf.data").write_bytes(capture.file())

        def names(*options):
            done = self.tacho("script", "-i", "perf.data", "-F", "ip,sym", *options, status=None)
            return done.stdout.count(b"right_leaf"), done.stderr.decode()

        same, other = (*device, inode, 0), (*device, inode + 1, 0)
        said = f"{program}: is another file than the one that was mapped (inode {inode}; {inode + 1} was recorded); --symfs / takes it"
        for ids in (table, None):
            write(other, ids=ids)
            count, reported = names()
            self.assertEqual(count, 0)
            self.assertIn(said, reported)
            for options in (["--symfs", "/"], ["--as-perf"]):
                self.assertEqual(names(*options)[0], 1, options)
        write(same)
        self.assertEqual(names(), (1, ""))
        write(other, same)
        self.assertEqual(names()[0], 1, "the second process ran the file that is there now")
        report = json.loads(self.tacho("report", "-i", "perf.data", "--json", "--sort", "sym", status=None).stdout)
        self.assertEqual(len(str(report).split("right_leaf")), 2)
        for why, more in (("another device: overlayfs and btrfs have two numbers", {"file": (250, 250, inode + 1, 0)}),
                          ("another host", {"host": "elsewhere"}), ("written after the recording, with the id that was recorded", {"end": 1000})):
            with self.subTest(why):
                write(more.pop("file", other), **more)
                self.assertEqual(names(), (1, ""))
        get_generation = 0x80087601
        with open(program, "rb") as file:
            try:
                [generation] = struct.unpack("<q", fcntl.ioctl(file, get_generation, bytes(8)))
            except OSError:
                generation = 0
        if generation % 2**32 > 1:
            for number, count in ((generation % 2**32, 1), (1, 0)):
                write((*device, inode, number))
                self.assertEqual(names()[0], count)

    def test_debug_files_of_other_builds(self):
        self.write()
        build_id = self.build_id(self.right)
        self.run_program("objcopy", "--only-keep-debug", self.wrong, "program.debug")
        stale = self.root / "opt/program.debug"
        under_id = self.root / "usr/lib/debug/.build-id" / build_id[:2] / f"{build_id[2:]}.debug"
        cached = self.folder / "cache/.build-id" / build_id[:2] / build_id[2:] / "elf"
        for place in (stale, under_id, cached):
            with self.subTest(place=str(place.relative_to(self.folder))):
                self.stripped("--add-gnu-debuglink=program.debug")
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(self.folder / "program.debug" if place == stale else self.wrong, place)
                self.refuse(said=None)
                if place == cached:
                    self.place.unlink()
                    self.refuse(said=PATH)
                place.unlink()

    def test_packs_of_other_builds(self):
        shutil.copy(self.wrong, self.place)
        self.write("other.data", build_id=self.build_id(self.wrong))
        self.tacho("pack", "other.data", *self.options)
        self.write()
        self.place.unlink()
        done = self.tacho("pack", "perf.data", "-o", "packed.data", "--from", "other.data", *self.options, status=None)
        self.assertIn(f"other.data has the names of build id {self.build_id(self.wrong)}", done.stderr.decode())
        self.refuse(said=PATH, capture="packed.data")

    def test_packs_of_the_same_build_are_taken(self):
        shutil.copy(self.right, self.place)
        self.write("other.data")
        self.tacho("pack", "other.data", *self.options)
        self.write()
        expected = self.script()
        self.assertIn("right_leaf", expected)
        self.place.unlink()
        self.refuse(said=PATH)
        self.write("unpacked.data")
        done = self.tacho("pack", "perf.data", "-o", "p.data", "--from", "unpacked.data", *self.options, status=2)
        self.assertIn("it has no packed symbols", done.stderr.decode())
        self.tacho("pack", "perf.data", "-o", "packed.data", "--from", "other.data", *self.options)
        self.assertEqual(self.script(capture="packed.data"), expected)

    def test_lists_of_kernel_symbols(self):
        self.write(program=False, kernel=True)
        mixtures = {
            "another kernel": (kallsyms(size=KERNEL_SIZE + 0x2000, name="wrong_kernel", module="wrong_module"), "is of another kernel"),
            "another kernel that lay elsewhere": (kallsyms(moved=0x2000000, size=KERNEL_SIZE - 0x3000, name="wrong_kernel",
                                                           module="wrong_module"), "is of another kernel"),
            "another machine": ("ffffffff81001200 T wrong_kernel\n", "no symbol _text"),
            "hidden addresses": ("0000000000000000 T _text\n0000000000000000 T wrong_kernel\n", "every address is zero"),
        }
        for name, (content, said) in mixtures.items():
            with self.subTest(mixture=name):
                (self.folder / "list").write_text(content)
                self.refuse(*self.options, "--kallsyms", "list", said=said)

    def test_a_list_of_kernel_symbols_that_is_no_file(self):
        self.write(program=False, kernel=True)
        os.mkfifo(self.folder / "fifo")
        for list_name in ("fifo", "/dev/null", "."):
            done = self.tacho("report", "-i", "perf.data", "--kallsyms", list_name, *self.options, status=1)
            self.assertIn(f"--kallsyms: {list_name} is not a regular file; write the symbols to a file", done.stderr.decode())

    def test_another_boot_of_the_same_kernel(self):
        """The kernel was at another address, known from its reference symbol; addresses of its modules then are not known."""
        self.write(program=False, kernel=True)
        # Symbols of a module of that boot would match the recorded addresses.
        (self.folder / "list").write_text(kallsyms(moved=0x4000000, module="wrong_module"))
        text = self.script(*self.options, "--kallsyms", "list", said=r"mod.*kallsyms has no symbols of it")
        self.assertIn("right_kernel", text)

    def test_the_running_kernel_is_not_the_recorded_one(self):
        mine = os.uname()
        strings = {HOSTNAME: made.header_string(mine.nodename), OS_RELEASE: made.header_string(mine.release)}
        kernel_id = struct.pack("<IHHi", 0xffffffff, 1, 100, -1) + bytes(range(20)) + bytes(4) + made.text_field("[kernel.kallsyms]", 64)
        for features in ({}, {**strings, BUILD_ID: kernel_id}, strings):
            with self.subTest(features=sorted(features)):
                self.write(program=False, kernel=True, features=features)
                text = self.script("--no-inline", said=r"kernel\.kallsyms")
                self.assertEqual(text.count("[unknown]"), 2)

    def test_a_vmlinux_of_another_build(self):
        self.write(program=False, kernel=True)
        self.refuse(*self.options, "-k", self.wrong, said="kernel")

    def test_made_code_of_other_processes(self):
        shared = f"/tmp/perf-{made.PID}.map"
        if os.path.exists(shared):
            self.skipTest(f"{shared} is somebody's")
        self.write(program=False, made_code=True)
        with open(shared, "x", encoding="ascii") as file:
            self.addCleanup(os.unlink, shared)
            file.write(f"{MADE_CODE:x} 1000 wrong_map\n")
        self.refuse("--no-inline", said="the capture is of another host")
        (self.folder / "maps").mkdir()
        (self.folder / f"maps/perf-{made.PID}.map").write_text(f"{MADE_CODE:x} 1000 right_map\n")
        self.assertIn("right_map", self.script("--perf-map-dir", "maps"))

    def test_names_of_a_map_whose_process_is_gone_are_a_guess(self):
        """A later process with the same pid may have written the map."""
        pid = next(pid for pid in range(4_190_000, 4_194_000) if not os.path.exists(f"/proc/{pid}") and not os.path.exists(f"/tmp/perf-{pid}.map"))
        mine = os.uname()
        strings = {HOSTNAME: made.header_string(mine.nodename), OS_RELEASE: made.header_string(mine.release)}
        now = int(time.monotonic() * 1e9)
        shared = f"/tmp/perf-{pid}.map"
        with open(shared, "x", encoding="ascii") as file:
            self.addCleanup(os.unlink, shared)
            file.write(f"{MADE_CODE:x} 1000 the_map\n")
        for last in (now + 60_000_000_000, now - 5_000_000_000):
            capture = made.Capture(Event("cpu-clock", made.SOFTWARE, 0, made.USUAL),
                                   features={**strings, SAMPLE_TIME: struct.pack("<QQ", 1, last)})
            body = struct.pack("<IIQQQIIQQII", pid, pid, MADE_CODE, 0x1000, 0, 0, 0, 0, 0, 7, 2) + made.text_field("//anon", 8)
            capture.data += made.record(10, made.USER, body + capture.trailer())
            sample = made.Capture(capture.events[0]).sample(ip=MADE_CODE + 8).data
            at = sample.index(struct.pack("<II", made.PID, made.PID))
            capture.data += sample[:at] + struct.pack("<II", pid, pid) + sample[at + 8:]
            (self.folder / "perf.data").write_bytes(capture.file())
            done = self.tacho("script", "-i", "perf.data", status=None)
            self.assertIn(b"the_map", done.stdout)
            self.assertIn(b"its names are a guess: the process may not have made this map", done.stderr)
            report = json.loads(self.tacho("report", "-i", "perf.data", "--json", status=None).stdout)
            [row] = report["reports"][0]["rows"]
            self.assertEqual((row["keys"]["symbol"], row.get("unsure")), ("the_map", True))

    def test_a_jitdump_of_another_process(self):
        dump = self.root / f"opt/jit-{made.PID}.dump"
        for owner, name in ((made.PID, "right_jit"), (made.PID + 1, "wrong_jit")):
            capture = made.Capture(Event("cpu-clock", made.SOFTWARE, 0, made.USUAL))
            capture.named("program").mapped(made.PID, 0x10000, 0x1000, 0, f"/opt/jit-{made.PID}.dump")
            capture.mapped(made.PID, MADE_CODE, 0x1000, 0, "//anon").sample(ip=MADE_CODE + 8)
            (self.folder / "perf.data").write_bytes(capture.file())
            dump.write_bytes(jitdump(owner, name))
            text = self.script(*self.options, said="is of another process" if owner != made.PID else None)
            self.assertEqual("right_jit" in text, owner == made.PID)


if __name__ == "__main__":
    programs.main()
