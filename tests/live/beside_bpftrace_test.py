#!/usr/bin/env python3
"""Recorders and bpftrace, run at the same time on the same load with the same hooks, must agree. If
bpftrace is not installed (Debian: bpftrace) or refuses a probe, the test is skipped with the reason."""
import csv
import io
import json
import os
import signal
import subprocess
import time
import unittest
from pathlib import Path

import programs
from recorder_loads import ASKS, CROWD, OPENS, READS, WAITS, loop_disk

# 1000 calls of leaf(); naps() takes 3, 6 and 12 ms, five times each.
KNOWN = r"""
#include <time.h>
static volatile long sum;
__attribute__((noinline)) void leaf(long n) { sum += n; }
__attribute__((noinline)) void naps(long ms) { struct timespec t = {0, ms * 1000000}; nanosleep(&t, 0); }
int main(void) {
  for (int i = 0; i < 1000; ++i) leaf(i);
  for (int i = 0; i < 15; ++i) naps(3L << i % 3);
  return 0;
}
"""
HAS_PROBES = Path("/sys/bus/event_source/devices/kprobe").exists()
# bpftrace is system-wide: the programs have unique names.
LOADS = {"opens": OPENS, "reads": READS, "waits": WAITS, "crowd": CROWD, "asks": ASKS, "known": KNOWN}


def own(text):
    """Names of these programs, in quotes or as ./NAME, as they are called here."""
    for name in (*LOADS, "connects"):
        text = text.replace(f'"{name}"', f'"{name}{os.getpid()}"').replace(f"./{name}", f"./{name}{os.getpid()}")
    return text


@programs.needs_root
@programs.needs_btf
@unittest.skipUnless(programs.shutil.which("cc"), "needs cc")
@unittest.skipUnless(programs.shutil.which("bpftrace"), "needs bpftrace")
class BesideBpftrace(programs.Scratch):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.built = programs.built_once(cls, LOADS)

    def setUp(self):
        super().setUp()
        self.need_recorder()
        for name in LOADS:
            (self.folder / own(f"./{name}")).symlink_to(self.built / name)

    def started(self, script):
        """Waits until bpftrace has attached its probes."""
        out, said = self.folder / "theirs", self.folder / "theirs.err"
        with out.open("wb") as to, said.open("wb") as errors:
            process = subprocess.Popen(["bpftrace", "-f", "json", "-e", own(script)], stdout=to, stderr=errors, cwd=self.folder,
                                       env=dict(os.environ, __BPFTRACE_NOTIFY_PROBES_ATTACHED="1"))
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        until = time.monotonic() + programs.PATIENCE
        while "PROBES_ATTACHED" not in out.read_text() + said.read_text():
            if process.poll() is not None or time.monotonic() > until:
                self.skipTest("bpftrace cannot here: " + said.read_text()[-300:])
            time.sleep(0.05)
        return process

    def end(self, process):
        """Ends bpftrace. It misses a Ctrl-C while it is not waiting for events, and a second one while it ends is an error."""
        until = time.monotonic() + programs.PATIENCE
        while process.poll() is None and time.monotonic() < until:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                pass
        self.assertEqual(process.returncode, 0, "bpftrace does not end")

    def beside(self, script, event, *command, options=()):
        """Runs the command with both. Returns bpftrace's maps at the end, by name."""
        process = self.started(script)
        self.run_program(programs.BIN / "tacho-record", "-o", "out.data", "-e", event, *options, "--", *map(own, command))
        self.end(process)
        maps = {}
        for line in (self.folder / "theirs").read_text().splitlines():
            reported = json.loads(line) if line.startswith("{") else {}
            if reported.get("type") in ("map", "hist"):
                maps.update({name.removeprefix("@"): value for name, value in reported["data"].items()})
        return maps

    def rows(self, *options):
        words = [own(option) for option in options]
        return list(csv.DictReader(io.StringIO(self.tacho("table", "-i", "out.data", "--csv", *words).stdout.decode())))

    def counts(self, key, where=None, column="count"):
        """{key: count or sum of values}."""
        rows = self.rows("--by", key, "--columns", column, *(["--where", where] if where else []))
        return {row[key]: int(float(row[column])) for row in rows}

    def test_system_calls_counted(self):
        theirs = self.beside('tracepoint:raw_syscalls:sys_exit /comm == "opens"/ { @calls[args->id] = count(); '
                             'if (args->ret < 0) { @failed[args->id] = count(); } }', "syscall", "./opens")
        names = {"openat": 257, "close": 3, "mmap": 9, "read": 0, "creat": 85, "openat2": 437, "brk": 12}
        if os.uname().machine != "x86_64":
            self.skipTest("the numbers of system calls are those of x86-64 here")
        ours = self.counts("call", 'comm == "opens"')
        self.assertEqual(ours["openat"] >= 15, True)
        self.assertEqual({name: ours.get(name, 0) for name in names},
                         {name: theirs["calls"].get(str(number), 0) for name, number in names.items()})
        self.assertEqual(sum(count for name, count in ours.items() if name != "execve"),
                         sum(count for number, count in theirs["calls"].items() if number != "59"))
        failed = self.counts("call", 'comm == "opens" && error != OK')
        self.assertEqual(failed["openat"], theirs["failed"]["257"])

    def test_files_opened(self):
        theirs = self.beside('tracepoint:syscalls:sys_enter_openat /comm == "opens"/ { @path[tid] = args->filename; }\n'
                             # What is read before the kernel did may not be in memory yet.
                             'tracepoint:syscalls:sys_exit_openat /@path[tid]/ { @paths[str(@path[tid])] = count(); delete(@path[tid]); '
                             'if (args->ret < 0) { @errors[-args->ret] = count(); } }', "open", "./opens")
        ours = self.counts("path", 'comm == "opens" && path != "known_other"')
        ours["known_file"] -= 1  # by openat2()
        self.assertEqual(ours, theirs["paths"])
        self.assertEqual(theirs["paths"]["/proc/self/status"], 7)
        self.assertEqual(self.counts("error", 'comm == "opens"')["ENOENT"], theirs["errors"]["2"])

    def test_programs_started(self):
        theirs = self.beside('tracepoint:sched:sched_process_exec { @programs[str(args->filename)] = count(); }',
                             "exec", "/bin/sh", "-c", "for i in 1 2 3; do /usr/bin/env true; done; /bin/nice true", options=["-a"])
        self.assertEqual(self.counts("path", 'error == OK && path == "/usr/bin/env"'), {"/usr/bin/env": 3})
        for path in ("/usr/bin/env", "/bin/nice"):
            self.assertEqual(self.counts("path", "error == OK")[path], theirs["programs"][path])

    def test_waits_for_a_processor(self):
        theirs = self.beside('tracepoint:sched:sched_wakeup, tracepoint:sched:sched_wakeup_new { @since[args->pid] = nsecs; }\n'
                             'tracepoint:sched:sched_switch { if (args->prev_state == 0) { @since[args->prev_pid] = nsecs; }\n'
                             '  if (@since[args->next_pid]) { if (args->next_comm == "crowd") { @count = count(); '
                             '@sum = sum(nsecs - @since[args->next_pid]); } delete(@since[args->next_pid]); } }', "runqlat", "./crowd")
        # The first wait of a new process still has its parent's comm.
        self.check_waits(theirs, 'comm == "crowd"', delta=3 + theirs["count"] // 20)

    def check_waits(self, theirs, where, delta=2):
        """The same number and sum of waits, except for one or two seen by only one of both, since each reads the clock itself."""
        [row] = self.rows("--by", "comm", "--columns", "count,sum", "--where", where)
        self.assertAlmostEqual(int(row["count"]), theirs["count"], delta=delta)
        self.assertAlmostEqual(float(row["sum"]) / theirs["sum"], 1, delta=0.1)

    def beside_sleepers(self, asleep, event):
        """bpftrace's waits that start in the given state, of a program that sleeps."""
        theirs = self.beside(f'tracepoint:sched:sched_switch {{ if (args->prev_comm == "waits" && {asleep}) '
                             '{ @since[args->prev_pid] = nsecs; }\n  if (@since[args->next_pid]) { @count = count(); '
                             '@sum = sum(nsecs - @since[args->next_pid]); delete(@since[args->next_pid]); } }', event, "./waits")
        self.assertGreaterEqual(theirs["sum"], 25 * 3e6)
        return theirs

    def test_waits_off_the_processor(self):
        theirs = self.beside_sleepers("(args->prev_state & 0xff) == 1", "offcpu")
        self.check_waits(theirs, 'comm == "waits" && state == S')

    def test_waits_off_the_processor_added_up(self):
        theirs = self.beside_sleepers("(args->prev_state & 0xff)", "offcputime/preempted=false/")
        self.check_waits(theirs, 'comm == "waits"')

    def test_calls_of_functions(self):
        program = self.built / "known"
        script = (f'uprobe:{program}:leaf {{ @leaf = count(); }}\nuprobe:{program}:naps {{ @since[tid] = nsecs; }}\n'
                  f'uretprobe:{program}:naps /@since[tid]/ {{ @naps = hist(nsecs - @since[tid]); @sum = sum(nsecs - @since[tid]); '
                  'delete(@since[tid]); }')
        theirs = self.beside(script, f"func/name='{program}:*'/", "./known")
        leaf, naps = self.of_functions("leaf", "naps")
        self.assertEqual((leaf["count"], theirs["leaf"]), (1000, 1000))
        self.assertEqual((naps["count"], sum(slot["count"] for slot in theirs["naps"])), (15, 15))
        self.assertAlmostEqual(naps["sum"] / theirs["sum"], 1, delta=0.1)

    def of_functions(self, *names):
        rows = {row["function"].split("+")[0]: {"count": int(row["count"]), "sum": float(row["sum"])}
                for row in self.rows("--by", "function", "--columns", "count,sum")}
        return [rows[name] for name in names]

    def test_block_requests(self):
        disk, number = loop_disk(self, 1 << 20)
        script = (f'tracepoint:block:block_rq_issue /args->dev == {number}/ {{ @since[args->sector] = nsecs; @bytes = hist(args->bytes); }}\n'
                  f'tracepoint:block:block_rq_complete /args->dev == {number} && @since[args->sector]/ {{ @sum = sum(nsecs - '
                  '@since[args->sector]); delete(@since[args->sector]); }')
        load = f"dd if=/dev/zero of={disk} bs=64k count=12 oflag=direct; dd if={disk} of=/dev/null bs=4k count=20 iflag=direct"
        theirs = self.beside(script, f"bio/dev={number}/", "sh", "-c", load, options=["-a"])
        ours = {row["bytes"]: int(row["count"]) for row in self.rows("--by", "bytes", "--columns", "count")}
        counted = {str(slot["min"]): slot["count"] for slot in theirs["bytes"] if slot["count"]}
        self.assertEqual({"65536": ours["65536"], "4096": ours["4096"]}, {size: counted[size] for size in ("65536", "4096")})
        self.assertGreaterEqual(counted["65536"], 12)
        rows = self.rows("--by", "disk", "--value", "service_ns", "--columns", "sum")
        self.assertAlmostEqual(sum(float(row["sum"]) for row in rows) / theirs["sum"], 1, delta=0.2)

    def test_pages_that_were_not_in_the_cache(self):
        file = self.folder / "known_file"
        file.touch()
        inode = file.stat().st_ino
        theirs = self.beside(f"tracepoint:filemap:mm_filemap_add_to_page_cache /args->i_ino == {inode}/ "
                             "{ @pages = sum(1 << args->order); }", f"pagecache/inode={inode}/", "./reads", options=["-a"])
        if "pages" not in theirs:
            self.skipTest("files are kept in memory here")
        self.assertEqual(self.counts("what", column="sum").get("missed"), theirs["pages"])

    @unittest.skipUnless(HAS_PROBES, "this kernel has no kprobes (tests/vm boots one)")
    def test_functions_of_the_kernel(self):
        # bpftrace prints a negative errno as a large number.
        said = '/comm == "reads" && retval >= 4096 && retval < 0x7fffffff/'
        theirs = self.beside(f'kretprobe:vfs_read {said} {{ @read = sum(retval); @reads[retval] = count(); }}\n'
                             f'kretprobe:vfs_write {said} {{ @written = sum(retval); }}', "vfsio", "./reads")
        bytes_of = {row["op"]: int(float(row["sum"])) for row in self.rows("--by", "op", "--value", "bytes", "--columns", "sum",
                                                                         "--where", 'comm == "reads" && bytes >= 4096')}
        self.assertEqual((bytes_of["read"], bytes_of["write"]), (theirs["read"], theirs["written"]))
        reads = self.counts("bytes", 'comm == "reads" && op == read && bytes >= 4096')
        self.assertEqual(reads, theirs["reads"])
        self.assertEqual((reads["65536"], reads["1048576"]), (32, 1))

    def test_signals_and_locks(self):
        theirs = self.beside('tracepoint:signal:signal_generate /comm == "asks"/ { @signals[args->sig] = count(); }\n'
                             'tracepoint:syscalls:sys_exit_futex /comm == "asks"/ { @futex[-args->ret] = count(); }',
                             "signals,lock", "./asks")
        [row] = self.rows("--event", "signals", "--by", "sig", "--columns", "count", "--where", 'comm == "asks" && sig == USR1')
        self.assertEqual(int(row["count"]), theirs["signals"]["10"])
        [row] = self.rows("--event", "lock", "--by", "error", "--columns", "count", "--where", 'comm == "asks" && error == ETIMEDOUT')
        self.assertEqual(int(row["count"]), theirs["futex"]["110"])

    def test_states_of_connections(self):
        work = (own("open('/proc/self/comm', 'w').write(\"connects\")\n") + "import socket\nhere = socket.socket(); here.bind(('127.0.0.1', 0)); here.listen(16)\n"
                "for _ in range(5):\n one = socket.create_connection(here.getsockname()); other = here.accept()[0]; one.close(); other.close()")
        theirs = self.beside('tracepoint:sock:inet_sock_set_state /args->protocol == 6 && comm == "connects"/ '
                             '{ @to[args->oldstate, args->newstate] = count(); }', "tcp", programs.shutil.which("python3"), "-c", work)
        ours = self.counts("what")
        self.assertEqual((ours["connect"], theirs["to"]["2,1"]), (5, 5))  # SYN_SENT to ESTABLISHED
        self.assertEqual(ours["accept"], theirs["to"]["3,1"])  # SYN_RECV to ESTABLISHED

    def test_samples_of_the_clock(self):
        theirs = self.beside('profile:hz:199 /comm == "crowd"/ { @samples = count(); }', "profile/hz=199/", "./crowd")
        text = self.tacho("script", "-i", "out.data", "-F", "comm,time,event", "-G").stdout.decode()
        ours = sum(line.split()[0] == own('"crowd"').strip('"') for line in text.splitlines() if line.strip())
        # bpftrace's clock event is per CPU, tacho's per thread: on a busy machine they tick at different times.
        self.assertAlmostEqual(ours / theirs["samples"], 1, delta=0.35)


if __name__ == "__main__":
    programs.main()
