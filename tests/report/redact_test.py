#!/usr/bin/env python3
"""tacho redact: what is planted into every place that a capture has is found before and in no byte after, and what was kept
is shown as before. Records are made here: what a live recording holds is tests/live/redact_test.py's."""
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
KERNEL_BASE = 0xffffffff9a600000  # where KASLR put this kernel
MODULE = 0xffffffffc0123000


def strings(*texts):
    return struct.pack("<I", len(texts)) + b"".join(made.header_string(text) for text in texts)


class Redacted(made.Capture):
    """Tokens in every place: see the names of the classes."""

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
        # Bytes behind the name's end are nobody's, and stay in perf's own captures.
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
        """A sample with registers and a copied stack, half of which is nothing that was copied."""
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

    def test_what_was_planted_is_in_no_byte(self):
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
        self.assertIn("record of a type newer than this program, left out: type 40", said)
        self.assertIn("1 records were left out: nothing is known of their content", said)
        self.assertNotIn(TOKEN.encode(), bytes_of.capture(self.folder / "out.data"))

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
        # A user's name goes with the host, the rest of the path stays.
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
        self.assertIn(f'comm        1 names: hashed, e.g. "{TOKEN}" becomes "', said)
        self.assertIn("stacks      96 bytes: dropped\n", said)
        self.assertNotIn("/etc/", said)  # payloads and stacks are counted, and not shown
        self.assertNotIn("HOME", said)
        self.assertEqual(self.capture.read_bytes(), before)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["in.data"])

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

    def test_wrong_use_is_told(self):
        for words, text in ((["in.data"], "name the capture and the file to write"),
                            (["in.data", "in.data"], "--in-place replaces it"),
                            (["in.data", "-"], "name files in place of -"),
                            (["in.data", "x", "--keep", "nothing"], "there is no class 'nothing'"),
                            (["in.data", "x", "--drop", "paths"], "paths cannot be dropped; --hide paths makes it last part"),
                            (["in.data", "x", "--hash", "kernel"], "kernel cannot be hashed")):
            with self.subTest(words=words):
                self.assertIn(text, self.tacho("redact", *words, status=1).stderr.decode())
        (self.folder / "a pipe").write_bytes(self.tacho("convert", "-i", "in.data", "-o", "-", status=None).stdout)
        said = self.tacho("redact", "a pipe", "x", status=2).stderr.decode()
        self.assertIn("'tacho convert -i 'a pipe' -o FILE'", said)
        self.assertFalse((self.folder / "x").exists())

    @programs.needs_perf
    def test_perf_reads_it(self):
        self.redact()
        fields = "tid,time,event,period"
        self.assertEqual(self.perf("script", "-F", fields, "-i", "out.data").stdout,
                         self.perf("script", "-F", fields, "-i", "in.data").stdout)


if __name__ == "__main__":
    programs.main()
