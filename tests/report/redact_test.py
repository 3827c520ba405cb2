#!/usr/bin/env python3
"""tacho redact: tokens planted everywhere in a capture are found before and in no byte after, and what is kept
is shown as before. Captures are generated here; tests/live/redact_test.py uses recordings."""
import ctypes
import json
import struct

import bytes_of
import made_capture as made
import made_payload as payload
import programs

HOSTNAME, CMDLINE, BUILD_ID, CLOCK_DATA, ATTACHMENTS, UNKNOWN = 3, 11, 2, 29, 225, 99
TOKEN = "pl4nted"
STACK_USER, CGROUP_RECORD, NAMESPACES_RECORD, COMM_RECORD = 1 << 13, 19, 16, 3
USE_CLOCKID = 1 << 25
KERNEL_BASE = 0xffffffff9a600000  # load address of this kernel (KASLR)
MODULE = 0xffffffffc0123000
OBJECT = 0xffff8881234567c0  # a heap address of the kernel
BREAKPOINT, THREAD_MAP = 5, 73


def strings(*texts):
    return struct.pack("<I", len(texts)) + b"".join(made.header_string(text) for text in texts)


def attachments(**contents):
    """The section's body; '_' in names means '/'."""
    zstd = bytes_of.library()
    zstd.ZSTD_compress.restype = ctypes.c_ulonglong
    body = struct.pack("<II", 1, len(contents))
    for name, content in contents.items():
        name, room = name.replace("_", "/").encode(), ctypes.create_string_buffer(len(content) + 1000)
        size = zstd.ZSTD_compress(room, ctypes.c_size_t(len(room)), content, ctypes.c_size_t(len(content)), 3)
        body += struct.pack("<IIQQ", len(name), 0, len(content), size) + name + room.raw[:size]
        body += bytes(-len(body) % 8)
    return body


def programs_attached(*sections):
    body = struct.pack("<II", 1, len(sections))
    for section in sections:
        body += struct.pack("<I", 7) + b"".join(payload.text(text) for text in ("f", section, "x.bpf.o", "attached"))
    return body + bytes(-len(body) % 8)


class Redacted(made.Capture):
    """Tokens in all parts of a capture: see the class names."""

    def __init__(self):
        regs = 1 << 7  # SP
        event = made.Event("cpu-clock", made.SOFTWARE, 0,
                           made.USUAL | made.CALLCHAIN | made.ADDR | made.REGS_USER | STACK_USER, regs_user=regs)
        fields = [payload.Field("size", unit="bytes"), payload.Field("text", payload.TEXT, 1, 24),
                  payload.Field("raw_bytes", payload.UNSIGNED, 1, 8), payload.Field("caller", format="kaddr"),
                  payload.Field("object", format="hex")]
        channel = made.Event("io", made.SOFTWARE, payload.BPF_OUTPUT, made.USUAL | made.RAW, 1)
        super().__init__(event, channel, features={
            HOSTNAME: made.header_string(f"host-{TOKEN}"), CMDLINE: strings("perf", "record", f"--{TOKEN}"),
            CLOCK_DATA: struct.pack("<IIQQ", 1, 1, 1_700_000_000 * 10**9, 5 * 10**9), UNKNOWN: f"a new {TOKEN}".encode(),
            payload.PAYLOAD_SCHEMAS: payload.schemas(io=fields)})

    def fill(self):
        kernel = struct.pack("<IIQQQ", 0xffffffff, 0, KERNEL_BASE, 0x2000000, KERNEL_BASE)
        self.data += made.record(1, made.KERNEL, kernel + made.text_field("[kernel.kallsyms]_text", 24) + self.trailer())
        self.mapped(0xffffffff, MODULE, 0x1000, 0, "[ext4]", misc=made.KERNEL)
        self.named(TOKEN)
        self.mapped(made.PID, made.START, 0x2000, 0, f"/home/{TOKEN}/src/spin")
        # Bytes after the name's NUL are uninitialized in perf's captures.
        name = b"/usr/lib/libc.so\0" + TOKEN.encode()
        body = struct.pack("<IIQQQIIQQII", made.PID, made.PID, 0x7f0000000000, 0x1000, 0, 8, 1, 77, 0, 5, 2)
        self.data += made.record(10, made.USER, body + name + self.trailer())
        self.other(CGROUP_RECORD, 0, struct.pack("<Q", 7) + made.text_field(f"/pods/{TOKEN}", 16))
        self.other(NAMESPACES_RECORD, 0, struct.pack("<IIQ", made.PID, made.PID, 1) + struct.pack("<QQ", 4, 4026531999))
        stack = made.text_field(f"HOME=/{TOKEN}", 32)
        for ip, misc in ((made.LEAF_A, made.USER), (KERNEL_BASE + 0x1234, made.KERNEL), (MODULE + 0x10, made.KERNEL)):
            self.stacked(ip, misc, stack)
        raw = struct.pack("<Q24s8sQQ", 4096, f"/etc/{TOKEN}".encode(), TOKEN.encode(), KERNEL_BASE + 0x77, 0xffff8881234567c0)
        self.sample(event=1, raw=raw + f"{TOKEN}".encode())
        return self

    def stacked(self, ip, misc, stack):
        """A sample with registers and a stack copy, half of which is unused."""
        self.time += made.STEP
        chain = [made.CONTEXT_KERNEL, ip] if misc == made.KERNEL else [made.CONTEXT_USER, ip]
        body = struct.pack("<QQIIQQIIQ", 1, ip, made.PID, made.PID, self.time, 0x7ffdeadbeef0, 0, 0, 1000)
        body += struct.pack("<QQQ", 2, *chain) + struct.pack("<QQ", 2, 0x7ffdeadbe000)
        body += struct.pack("<Q", 2 * len(stack)) + stack + made.text_field(f"old {TOKEN}", len(stack))
        self.data += made.record(9, misc, body + struct.pack("<Q", len(stack)))


class Redact(programs.Scratch):
    def setUp(self):
        super().setUp()
        self.capture = self.folder / "in.data"
        self.capture.write_bytes(Redacted().fill().file())

    def redact(self, *options, status=0):
        return self.tacho("redact", "in.data", "out.data", *options, status=status).stderr.decode()

    def view(self, name, *words):
        return self.tacho(*words, "-i", name, status=None).stdout.decode()

    def records(self, name="out.data"):
        """Its records by type."""
        found = {}
        for line in self.tacho("dump", "--json", "-i", name, status=None).stdout.splitlines():
            one = json.loads(line)
            found.setdefault(one["record"], []).append(one)
        return found

    def test_no_private_text_is_left(self):
        self.assertGreater(bytes_of.capture(self.capture).count(TOKEN.encode()), 10)
        said = self.redact()
        self.assertNotIn(TOKEN.encode(), bytes_of.capture(self.folder / "out.data"))
        self.assertIn("comm (hashed)", said)
        header = self.view("out.data", "header")
        self.assertIn("# sensitive content : cmdline (dropped), host (dropped), paths (last part), comm (hashed), "
                      "containers (hashed), payload (hashed), stacks (dropped), registers (dropped), addresses (dropped), "
                      "kernel (moved), time (dropped)\n", header)

    def test_records_that_nobody_knows_go(self):
        capture = Redacted().fill()
        capture.other(40, 0, made.text_field(f"of a new kernel {TOKEN}", 32))
        capture.data += made.record(84, 0, made.text_field(f"metadata of {TOKEN}", 32))
        self.capture.write_bytes(capture.file())
        said = self.redact()
        self.assertIn("record of a type newer than this program, ignored: type 40", said)
        self.assertIn("1 records were left out: their content is not known", said)
        self.assertNotIn(TOKEN.encode(), bytes_of.capture(self.folder / "out.data"))

    def test_of_records_of_numbers_only_the_numbers_stay(self):
        capture, text = Redacted().fill(), TOKEN.encode().ljust(32, b"\0")
        for type_, body in ((74, struct.pack("<HHHH", 0, 2, 3, 5)), (79, bytes(48)), (75, struct.pack("<QQQ", 1, 1, 2)),
                            (78, struct.pack("<QQd", 1, 1, 0.5)), (78, struct.pack("<QQHHHH", 3, 1, 0, 1, 4, 0)),
                            (78, struct.pack("<QQ", 77, 1)), (74, struct.pack("<HHHH", 0, 9999, 3, 5))):
            capture.data += made.record(type_, 0, body + text)
        self.capture.write_bytes(capture.file())
        self.redact(status=None)
        self.assert_clean()
        records = self.records()
        self.assertEqual([one["cpus"] for one in records["CPU_MAP"]], [[3, 5]])
        self.assertEqual(len(records["EVENT_UPDATE"]), 2)

    def test_each_class_is_hidden_alone(self):
        left = {"cmdline": b"--" + TOKEN.encode(), "host": b"host-" + TOKEN.encode(), "comm": None, "containers": None,
                "payload": b"/etc/" + TOKEN.encode(), "stacks": b"HOME=/" + TOKEN.encode()}
        for name, text in left.items():
            with self.subTest(name):
                self.redact("--keep", "all", "--hide", name)
                rest = bytes_of.capture(self.folder / "out.data")
                self.assertIn(TOKEN.encode(), rest)
                if text is not None:
                    self.assertNotIn(text, rest)
        # The user name in a path is redacted with the host name, the rest of the path is kept.
        self.redact("--keep", "all", "--hide", "host")
        self.assertRegex(self.records()["MMAP2"][-2]["filename"], r"^/home/[a-z2-7]{10}/src/spin$")

    def test_what_was_kept_is_shown_as_before(self):
        fields = "tid,cpu,time,event,period"
        before = self.view("in.data", "script", "-F", fields)
        self.assertEqual(len(before.splitlines()), 4)
        self.redact()
        self.assertEqual(self.view("out.data", "script", "-F", fields), before)
        rows = lambda name: [line.split()[:2] for line in self.view(name, "report", "--stdio", "-g", "none", "--sort", "dso").splitlines()
                             if line and line[0] != "#"]
        self.assertEqual(rows("out.data"), rows("in.data"))

    def test_paths(self):
        self.redact()
        names = [one["filename"] for one in self.records()["MMAP2"]]
        self.assertEqual(names[0], "[ext4]")
        self.assertRegex(names[1], r"^/[a-z2-7]{10}/spin$")
        self.assertEqual(names[2], "/usr/lib/libc.so")
        self.redact("--hash", "paths")
        for name in [one["filename"] for one in self.records()["MMAP2"]][1:]:
            self.assertRegex(name, r"^/[a-z2-7]{10}$")

    def test_the_kernel_is_where_it_would_be_without_kaslr(self):
        self.redact()
        records = self.records()
        self.assertEqual(int(records["MMAP"][0]["start"], 16), 0xffffffff81000000)
        self.assertEqual(int(records["MMAP"][0]["page_offset"], 16), 0xffffffff81000000)
        self.assertEqual(int(records["MMAP2"][0]["start"], 16), 0xffffffffc0000000)
        ips = [int(one["ip"], 16) for one in records["SAMPLE"][:3]]
        self.assertEqual(ips, [made.LEAF_A, 0xffffffff81001234, 0xffffffffc0000010])
        chains = [int(one["callchain"][1], 16) for one in records["SAMPLE"][:3]]
        self.assertEqual(chains, ips)
        for one in records["SAMPLE"][:3]:
            self.assertEqual((int(one["addr"], 16), one["user_registers"]["abi"]), (0, 0))

    def test_payloads_keep_their_numbers(self):
        self.redact()
        size, text, raw_bytes, caller, kernel_object = self.raw()
        self.assertEqual((size, caller), (4096, 0xffffffff81000077))
        self.assertRegex(text, rb"^[a-z2-7]{10}\0{14}$")
        self.assertNotIn(raw_bytes, (bytes(8), TOKEN.encode() + b"\0"))
        self.assertEqual(kernel_object >> 47, 0x1ffff)
        self.assertNotEqual(kernel_object, 0xffff8881234567c0)
        self.redact("--drop", "payload")
        size, text, raw_bytes, caller, _ = self.raw()
        self.assertEqual((size, text, raw_bytes, caller), (4096, bytes(24), bytes(8), 0xffffffff81000077))

    def raw(self):
        """The fields of the one payload."""
        return struct.unpack_from("<Q24s8sQQ", bytes.fromhex(self.records()["SAMPLE"][3]["raw"]))

    def test_times_of_day_go_when_times_are_of_the_clock_on_the_wall(self):
        made_here = Redacted().fill()
        # The attr of a recorder with -k realtime: clockid 0, and the flag.
        for event in made_here.events:
            plain = event.attr()
            flags = struct.unpack_from("<Q", plain, 40)[0] | USE_CLOCKID
            event.attr = lambda plain=plain, flags=flags: plain[:40] + struct.pack("<Q", flags) + plain[48:]
        self.capture.write_bytes(made_here.file())
        before = [one["time"] for one in self.records("in.data")["SAMPLE"]]
        self.redact()
        after = [one["time"] for one in self.records()["SAMPLE"]]
        self.assertEqual([time - after[0] for time in after], [time - before[0] for time in before])
        self.assertEqual({x - y for x, y in zip(before, after)}, {5_000_000_000 - 1_000_000_000})

    def test_aliases(self):
        comm = lambda: [one["comm"] for one in self.records()["COMM"]][0]
        self.redact()
        first = comm()
        self.assertRegex(first, r"^[a-z2-7]{10}$")
        self.redact()
        self.assertNotEqual(comm(), first, "another run must have another key")
        self.redact("--key", "one of ours")
        first = comm()
        self.redact("--key", "one of ours")
        self.assertEqual(comm(), first)
        self.redact("--keep", "comm")
        self.assertEqual(comm(), TOKEN)

    def test_a_dry_run_writes_nothing(self):
        before = self.capture.read_bytes()
        said = self.tacho("redact", "in.data", "--dry-run").stdout.decode()
        self.assertIn(f'comm        1 name: hashed, e.g. "{TOKEN}" becomes "', said)
        self.assertIn("stacks      96 bytes: dropped\n", said)
        self.assertNotIn("/etc/", said)  # payloads and stacks are counted, not listed
        self.assertNotIn("HOME", said)
        self.assertIn("stacks      96 bytes: dropped\n", self.tacho("redact", "in.data", "out.data", "--dry-run").stdout.decode())
        self.assertEqual(self.capture.read_bytes(), before)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["in.data"])
        for words in (["in.data", "in.data"], ["in.data", "out.data", "more.data"], []):
            self.tacho("redact", *words, "--dry-run", status=1)

    def test_in_place(self):
        self.capture.chmod(0o640)
        self.tacho("redact", "in.data", "--in-place")
        self.assertNotIn(TOKEN.encode(), bytes_of.capture(self.capture))
        self.assertEqual(self.capture.stat().st_mode & 0o777, 0o640)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["in.data"])

    def test_only_some_processes_and_times(self):
        self.redact("--pid", "17")
        records = self.records()
        self.assertNotIn("SAMPLE", records)
        self.assertNotIn("COMM", records)
        self.assertEqual([one["filename"] for one in records["MMAP2"]], ["[ext4]"])
        self.redact("--time", "5.001,5.003")
        self.assertEqual(len(self.records()["SAMPLE"]), 2)
        self.redact("--events", "io")
        self.assertEqual(len(self.records()["SAMPLE"]), 1)

    def test_wrong_use_is_refused(self):
        for words, text in ((["in.data"], "name the capture and the file to write"),
                            (["in.data", "in.data"], "--in-place replaces it"),
                            (["in.data", "-"], "name files instead of -"),
                            (["in.data", "x", "--keep", "nothing"], "there is no class 'nothing'"),
                            (["in.data", "x", "--drop", "paths"], "paths cannot be dropped; --hide paths makes it last part"),
                            (["in.data", "x", "--hash", "kernel"], "kernel cannot be hashed")):
            with self.subTest(words=words):
                self.assertIn(text, self.tacho("redact", *words, status=1).stderr.decode())
        (self.folder / "a pipe").write_bytes(self.tacho("convert", "-i", "in.data", "-o", "-", status=None).stdout)
        said = self.tacho("redact", "a pipe", "x", status=2).stderr.decode()
        self.assertIn("'tacho convert -i 'a pipe' -o FILE'", said)
        self.assertFalse((self.folder / "x").exists())

    def write(self, *names, type_=made.SOFTWARE, mapped=(), config1=0, **features):
        """A capture with these event names."""
        events = [made.Event(name, type_, 0, made.USUAL, config1=config1) for name in names]
        capture = made.Capture(*events, features={int(bit[1:]): body for bit, body in features.items()})
        kernel = struct.pack("<IIQQQ", 0xffffffff, 0, KERNEL_BASE, 0x2000000, KERNEL_BASE)
        capture.data += made.record(1, made.KERNEL, kernel + made.text_field("[kernel.kallsyms]_text", 24) + capture.trailer())
        for at, name in enumerate(mapped):
            capture.mapped(made.PID, made.START + (at << 20), 0x1000, 0, name)
        capture.sample()
        self.capture.write_bytes(capture.file())
        return capture

    def assert_clean(self, kept=()):
        rest = bytes_of.capture(self.folder / "out.data")
        at = rest.find(TOKEN.encode())
        self.assertEqual(at, -1, rest[max(0, at - 60):at + 20])
        for text in kept:
            self.assertTrue(text in rest, text)

    def test_files_of_probes_are_paths(self):
        names = [f"uprobe:/home/{TOKEN}/app:main", f"uprobe:./{TOKEN}/srv:main", f"uprobe:../{TOKEN}/y:f",
                 f"usdt:/opt/my {TOKEN}/x:prov:mark", "cpu/event=0x3c/u", "sched:sched_switch"]
        self.write(*names)
        for options in ((), ("--hash", "paths")):
            self.redact(*options)
            self.assert_clean([b":prov:mark", b"cpu/event=0x3c/u", b"sched:sched_switch"])
        self.write(f"uprobe:srv-{TOKEN}:main")
        self.redact("--hash", "paths")
        self.assert_clean()

    def test_sections_of_programs(self):
        self.write("cpu-clock", f226=programs_attached(f"uprobe//home/{TOKEN}/srv:f", f"uprobe.s/../{TOKEN}/srv:g",
                                                       f"usdt//opt/{TOKEN}/x:prov:mark", f"kprobe//home/{TOKEN}/x",
                                                       "kprobe/vfs_read", "tracepoint/sched/sched_switch"))
        self.assertIn(TOKEN, self.view("in.data", "header"))
        self.redact()
        self.assert_clean([b"/srv:f", b"/x:prov:mark", b"kprobe/vfs_read", b"tracepoint/sched/sched_switch"])

    def test_paths_in_the_names_of_code_made_at_run_time(self):
        names = [f"LazyCompile:*run file:///home/{TOKEN}/secret/app.mjs:3", f"method@/home/{TOKEN}/a.rb:4",
                 f"LazyCompile:~f /home/me/my {TOKEN}/b.js:7", f"py::f:/srv/{TOKEN}/x y/c.py", "Builtin:Divide /",
                 f"g http://host.{TOKEN}:80/x/d.js:9"]
        table = "".join(f"7f000000{at}000 40 {name}\n" for at, name in enumerate(names)).encode()
        self.write("cpu-clock", f225=attachments(**{f"perf-map_{made.PID}": table}))
        self.assertIn(TOKEN.encode(), bytes_of.capture(self.capture))
        self.redact()
        self.assert_clean([b"/app.mjs:3", b"method@/", b"/a.rb:4", b"/b.js:7", b"py::f:/", b"Builtin:Divide /\n", b"/d.js:9"])

    def test_a_file_of_many_lines_of_a_jitdump_is_written_once(self):
        count, pid = 5000, made.PID
        names = [f"/home/{TOKEN}/".encode() + b"f" * 20000 + b".js"] + [b"\xff"] * (count - 1)
        lines = b"".join(struct.pack("<QII", 0x1000 + at, at, 0) + name + b"\0" for at, name in enumerate(names))
        load = struct.pack("<IIQQQQ", pid, pid, 0x1000, 0x1000, count, 1) + f"run /home/{TOKEN}/a.js:3".encode() + b"\0"
        dump = struct.pack("<IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, pid, 1, 0)
        dump += struct.pack("<IIQQQ", 2, 32 + len(lines), 1000, 0x1000, count) + lines
        dump += struct.pack("<IIQ", 0, 16 + len(load), 1000) + load
        self.write("cpu-clock", f225=attachments(**{f"jitdump__tmp_jit-{pid}.dump": dump}))
        self.redact()
        self.assert_clean([b"f.js\0", b"/a.js:3"])
        self.assertLess(len(bytes_of.capture(self.folder / "out.data")), 2 * len(dump))

    def test_memory_that_programs_named(self):
        kept = ["//anon", "/dev/zero (deleted)", "/SYSV0000abcd (deleted)", "[heap]", "anon_inode:[perf_event]"]
        self.write("cpu-clock", mapped=[*kept, f"/dev/shm/{TOKEN}", f"/dev/hugepages/{TOKEN} (deleted)", f"/dev/mqueue/{TOKEN}",
                                        f"/memfd:{TOKEN}", f"[anon:{TOKEN}]", f"//{TOKEN}/x", f"[{TOKEN}]/x"])
        self.redact()
        self.assert_clean()
        names = [one["filename"] for one in self.records()["MMAP2"]]
        self.assertEqual(names[:len(kept)], kept)
        for name, form in zip(names[len(kept):], (r"/dev/shm/A", r"/dev/hugepages/A \(deleted\)", r"/dev/mqueue/A", r"/memfd:A",
                                                  r"\[anon:A\]", r"/A/x", r"A/x")):
            self.assertRegex(name, "^" + form.replace("A", "[a-z2-7]{10}") + "$")

    def test_breakpoints_tell_no_distance(self):
        for address, shown in ((KERNEL_BASE + 0x1234, "ffffffff81001234"), (OBJECT, None), (0x404060, "0x404060")):
            name = f"mem:{address:#x}/8:rw"
            self.write(name, type_=BREAKPOINT, config1=address)
            self.redact()
            rest = bytes_of.capture(self.folder / "out.data")
            if address != 0x404060:
                self.assertFalse(f"{address:x}".encode() in rest, name)
                self.assertFalse(struct.pack("<Q", address) in rest, name)
            text = self.view("out.data", "header")
            self.assertRegex(text, rf"name = mem:(0x)?{shown or '[0-9a-f]*'}/8:rw")
            place = text.split("name = mem:")[1].split("/")[0]
            self.assertTrue(struct.pack("<Q", int(place, 16)) in rest, "the attr and the name have the same place")

    def test_code_of_a_kernel_without_kaslr_stays(self):
        fields = [payload.Field("caller", format="kaddr"), payload.Field("object", format="hex")]
        channel = made.Event("io", made.SOFTWARE, payload.BPF_OUTPUT, made.USUAL | made.RAW, 1)
        capture = made.Capture(channel, features={payload.PAYLOAD_SCHEMAS: payload.schemas(io=fields)}).started()
        capture.sample(raw=struct.pack("<QQ", made.KERNEL_TEXT + 0x77, OBJECT))
        self.capture.write_bytes(capture.file())
        self.redact()
        caller, kernel_object = struct.unpack_from("<QQ", bytes.fromhex(self.records()["SAMPLE"][0]["raw"]))
        self.assertEqual(caller, made.KERNEL_TEXT + 0x77)
        self.assertNotEqual(kernel_object, OBJECT)

    def test_unions_bring_nothing_back(self):
        fields = [payload.Field("bytes", payload.UNSIGNED, 1, 8), payload.Field("number", payload.SIGNED, 8, at=0),
                  payload.Field("place"), payload.Field("halves", payload.UNSIGNED, 4, 2, at=8)]
        channel = made.Event("io", made.SOFTWARE, payload.BPF_OUTPUT, made.USUAL | made.RAW, 1)
        capture = made.Capture(channel, features={payload.PAYLOAD_SCHEMAS: payload.schemas(io=fields)}).started()
        capture.sample(raw=made.text_field(TOKEN, 8) + struct.pack("<Q", OBJECT))
        self.capture.write_bytes(capture.file())
        self.redact()
        self.assert_clean()
        self.assertFalse(struct.pack("<Q", OBJECT) in (self.folder / "out.data").read_bytes())

    def test_a_record_that_would_be_too_long_goes(self):
        capture = Redacted().fill()
        capture.other(CGROUP_RECORD, 0, struct.pack("<Q", 9) + made.text_field("a/" * 12000, 24008))
        self.capture.write_bytes(capture.file())
        self.assertIn("1 records were left out: their content is not known, or it would be too long", self.redact())
        self.assertEqual(len(self.records()["CGROUP"]), 1)
        self.assertEqual(len(self.records()["SAMPLE"]), 4)

    def test_of_other_processes_nothing_stays(self):
        entry = lambda misc, name: made.record(0, misc, struct.pack("<i20s4x", -1, bytes([7] * 20)) + made.text_field(name, 64))
        mine, theirs = b"7f0000000000 40 mine\n", f"7f0000000000 40 their_{TOKEN}\n".encode()
        self.write("cpu-clock", mapped=["/usr/bin/mine"],
                   f225=attachments(**{f"perf-map_{made.PID}": mine, "perf-map_99": theirs,
                                       "processes": b"pid\n99\t" + TOKEN.encode()}),
                   f2=entry(made.USER, "/usr/bin/mine") + entry(made.USER, f"/usr/bin/{TOKEN}")
                   + entry(made.KERNEL, "[kernel.kallsyms]"))
        capture = self.capture.read_bytes()
        self.assertIn(TOKEN.encode(), bytes_of.capture(self.capture))
        self.redact("--keep", "all", "--pid", str(made.PID))
        self.assert_clean([b" mine\n", b"/usr/bin/mine", b"[kernel.kallsyms]"])
        self.assertEqual(len(self.records()["SAMPLE"]), 1)
        self.assertEqual(self.capture.read_bytes(), capture)
        # Thread lists, and samples without a tid.
        event = made.Event("cpu-clock", made.SOFTWARE, 0, made.USUAL & ~made.TID)
        made_here = made.Capture(event)
        made_here.data += made.record(THREAD_MAP, 0, struct.pack("<QQ16s", 1, 99, TOKEN.encode()))
        made_here.sample()
        self.capture.write_bytes(made_here.file())
        self.redact("--keep", "all", "--pid", str(made.PID))
        self.assert_clean()
        self.assertNotIn("SAMPLE", self.records())

    def test_a_forked_process_keeps_what_it_inherited(self):
        child, entry = made.PID + 1, lambda name: made.record(0, made.USER, struct.pack("<i20s4x", -1, bytes([7] * 20)) + made.text_field(name, 64))
        capture = made.Capture(made.Event("cpu-clock", made.SOFTWARE, 0, made.USUAL),
                               features={2: entry("/usr/bin/inherited") + entry(f"/usr/bin/{TOKEN}")})
        capture.named("parent").mapped(made.PID, made.START, 0x2000, 0, "/usr/bin/inherited")
        capture.time += made.STEP
        capture.other(7, 0, struct.pack("<IIIIQ", child, made.PID, child, made.PID, capture.time))
        capture.time += made.STEP
        capture.mapped(made.PID, made.START + 0x10000, 0x2000, 0, f"/usr/bin/{TOKEN}").named(TOKEN)
        capture.data += made.record(9, made.USER, struct.pack("<QQIIQIIQ", 1, made.LEAF_A, child, child, capture.time + 1, 0, 0, 1000))
        self.capture.write_bytes(capture.file())
        self.redact("--keep", "all", "--pid", str(child))
        self.assert_clean([b"/usr/bin/inherited", b"parent"])
        self.assertIn("/usr/bin/inherited", self.view("out.data", "script", "-F", "comm,ip,sym,dso"))
        self.assertIn("parent", self.view("out.data", "script", "-F", "comm"))

    def test_packed_names_of_other_processes_go(self):
        capture = made.Capture(made.Event("cpu-clock", made.SOFTWARE, 0, made.USUAL))
        for pid, name in ((made.PID, "mine"), (99, f"their_{TOKEN}")):
            capture.mapped(pid, made.START, 0x1000, 0, "//anon")
            capture.time += made.STEP
            body = struct.pack("<QQIIQIIQ", 1, made.START + 0x10, pid, pid, capture.time, 0, 0, 1000)
            capture.data += made.record(9, made.USER, body)
            (self.folder / f"perf-{pid}.map").write_text(f"{made.START:x} 40 {name}\n")
        self.capture.write_bytes(capture.file())
        self.tacho("pack", "in.data", "--perf-map-dir", self.folder)
        self.assertTrue(TOKEN.encode() in bytes_of.capture(self.capture))
        for options in ((), ("--keep", "all")):
            self.redact("--pid", str(made.PID), *options)
            self.assert_clean([b"mine"])

    def test_what_grows_or_is_damaged_is_not_replaced(self):
        whole = self.capture.read_bytes()
        for reason, bytes_there in (("still runs or was killed", whole[:48] + bytes(8) + whole[56:]),
                                    ("is damaged", whole[:len(whole) // 2]), ("is damaged", self.with_a_broken_record(whole))):
            with self.subTest(reason):
                self.capture.write_bytes(bytes_there)
                said = self.tacho("redact", "in.data", "--in-place", status=2).stderr.decode()
                self.assertIn(reason, said)
                self.assertIn("tacho convert -i in.data", said)
                self.assertEqual(self.capture.read_bytes(), bytes_there)
        (self.folder / "a folder").mkdir()
        (self.folder / "a folder" / "data").write_bytes(whole)
        said = self.tacho("redact", "a folder", "--in-place", status=2).stderr.decode()
        self.assertIn("is a folder, which is not replaced", said)
        self.assertEqual([path.name for path in self.folder.iterdir() if path.name.startswith(".")], [])

    @staticmethod
    def with_a_broken_record(whole):
        """The size of the last record but one exceeds the rest of the data."""
        at, size = struct.unpack_from("<QQ", whole, 40)
        last = at
        while last + 8 < at + size and last + struct.unpack_from("<H", whole, last + 6)[0] < at + size:
            last += struct.unpack_from("<H", whole, last + 6)[0]
        return whole[:last + 6] + struct.pack("<H", 65000) + whole[last + 8:]

    @programs.needs_perf
    def test_perf_reads_it(self):
        self.redact()
        fields = "tid,time,event,period"
        self.assertEqual(self.perf("script", "-F", fields, "-i", "out.data").stdout,
                         self.perf("script", "-F", fields, "-i", "in.data").stdout)


if __name__ == "__main__":
    programs.main()
