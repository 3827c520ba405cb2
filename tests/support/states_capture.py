"""Captures in which every change of a thread's state is known: by switches of the scheduler, or by recorders."""
import struct

import made_capture as made
import made_payload
import programs
from made_payload import Field

FUNCTIONS = ["schedule", "do_nanosleep", "futex_wait", "io_schedule", "do_wake", "busy", "entry", "worker_thread"]
AT = {name: made.KERNEL_TEXT + 0x1000 * (i + 1) for i, name in enumerate(FUNCTIONS)}
MAIN, WORKER, OTHER = made.PID, 4300, 4400
RUNNING, SLEEPING, DEAD = 0, 1, 32
MS = 1_000_000
FORK, EXIT = 7, 4
CLOCK = made.Event("cpu-clock", made.SOFTWARE, 0, made.USUAL | made.CALLCHAIN)
SLEEP, LOCK = ("schedule", "do_nanosleep", "entry"), ("schedule", "futex_wait", "entry")

SWITCHES = {"sched:sched_switch": [Field("prev_state"), Field("next_pid", size=4), Field("pad", size=4)],
            "sched:sched_waking": [Field("pid", size=4), Field("pad", size=4)]}
RECORDERS = {"offcpu": [Field("off_ns", unit="ns", role="value"), Field("runq_ns", unit="ns", role="queued")],
             "waking": [Field("blocked_ns", unit="ns", role="value"), Field("woken_tid", size=4, role="wakes"),
                        Field("pad", size=4)],
             "runqlat": [Field("wait_ns", unit="ns", role="value"),
                         Field("why", made_payload.ENUM, 4, role="why_queued",
                               enumerators=((0, "woken"), (1, "created"), (2, "preempted"))), Field("pad", size=4)]}


class StatesCapture(programs.Scratch):
    def setUp(self):
        super().setUp()
        lines = [("_text", made.KERNEL_TEXT), *AT.items(), ("_etext", made.KERNEL_TEXT + 0x2000000)]
        (self.folder / "kallsyms").write_text("".join(f"{at:016x} T {name}\n" for name, at in lines))

    def begin(self, events, clock=True):
        sample_type = made.USUAL | made.RAW | made.CALLCHAIN
        channels = [made.Event(name, made.SOFTWARE, made_payload.BPF_OUTPUT, sample_type, 1) for name in events]
        self.names = [*events, "cpu-clock"]
        self.capture = made.Capture(*channels, *([CLOCK] if clock else []),
                                    features={made_payload.PAYLOAD_SCHEMAS: made_payload.schemas(**events)})
        self.zero = self.capture.time
        self.capture.time = 0  # before the recording
        self.capture.started()
        for name, tid in (("main", MAIN), ("other", OTHER)):
            self.capture.named(name, tid)

    def at(self, ms):
        self.capture.time = self.zero + round(ms * MS)

    def take(self, ms, event, tid, functions, *values, period=1000, cpu=0):
        """Adds a sample of a thread with a kernel stack, leaf first."""
        self.at(ms)
        self.capture.time -= made.STEP
        chain = [made.CONTEXT_KERNEL, *(AT[name] + 4 for name in functions)] if functions else []
        self.capture.sample(self.names.index(event), ip=chain[1] if chain else made.MAIN, misc=made.KERNEL, chain=chain,
                            tid=tid, raw=struct.pack(*values) if values else b"", period=period, cpu=cpu)

    def task(self, ms, type_, tid):
        self.at(ms)
        self.capture.other(type_, 0, struct.pack("<IIIIQ", MAIN, MAIN, tid, MAIN, self.capture.time))
        if type_ == FORK:
            self.capture.named("worker", tid)

    def switch(self, ms, tid, state, to, functions=SLEEP):
        self.take(ms, "sched:sched_switch", tid, functions, "<QII", state, to, 0)

    def wakes(self, ms, tid, whom, functions=("do_wake", "entry")):
        self.take(ms, "sched:sched_waking", tid, functions, "<II", whom, 0)

    def runs(self, ms, tid, *functions):
        self.take(ms, "cpu-clock", tid, functions)

    def off(self, ms, tid, off, queued, functions=SLEEP, cpu=0):
        self.take(ms, "offcpu", tid, functions, "<QQ", round(off * MS), round(queued * MS), cpu=cpu)

    def queued(self, ms, tid, wait, why):
        self.take(ms, "runqlat", tid, (), "<QII", round(wait * MS), {"woken": 0, "created": 1, "preempted": 2}[why], 0)

    def switches(self):
        """main sleeps while the worker is forked, runs, is preempted, wakes main and exits."""
        self.begin(SWITCHES)
        self.runs(0, MAIN, "busy", "entry")
        self.runs(3, MAIN, "busy", "entry")
        self.task(5, FORK, WORKER)
        self.switch(10, MAIN, SLEEPING, WORKER)
        self.runs(20, WORKER, "entry")
        self.switch(30, WORKER, RUNNING, OTHER, ("schedule", "entry"))
        self.switch(40, OTHER, SLEEPING, WORKER, LOCK)
        self.wakes(45, WORKER, MAIN)
        self.task(49, EXIT, WORKER)
        self.switch(50, WORKER, DEAD, MAIN)
        self.runs(58, MAIN, "busy", "entry")
        self.runs(60, MAIN, "entry")

    def recorders(self):
        """The same as events of -e offcpu,waking,runqlat. Waits at the start of the recording are not seen."""
        self.begin(RECORDERS)
        self.runs(0, MAIN, "busy", "entry")
        self.runs(3, MAIN, "busy", "entry")
        self.task(5, FORK, WORKER)
        self.queued(10, WORKER, 5, "created")
        self.runs(20, WORKER, "entry")
        self.queued(30, OTHER, 2, "woken")
        self.queued(40, WORKER, 10, "preempted")
        self.take(45, "waking", WORKER, ("do_wake", "entry"), "<QII", 35 * MS, MAIN, 0)
        self.task(49, EXIT, WORKER)
        self.queued(50, MAIN, 5, "woken")  # before the offcpu event of the same wait; in other tests after it
        self.off(50, MAIN, 40, 5)
        self.runs(58, MAIN, "busy", "entry")
        self.runs(60, MAIN, "entry")
        self.off(60, OTHER, 20, 0, LOCK)

    def view(self, name, *words, status=0):
        (self.folder / "perf.data").write_bytes(self.capture.file())
        return self.tacho(name, "--kallsyms", "kallsyms", "--wall", *words, status=status)

    def times(self, *words):
        """({(tid, state and stack): ms} of folded text, stderr)."""
        done = self.view("folded", "--tid", *words)
        times = {}
        for line in done.stdout.decode().splitlines():
            stack, weight = line.rsplit(" ", 1)
            thread, rest = stack.split(";", 1)
            times[int(thread.rsplit("/", 1)[1]), rest] = int(weight) / MS
        return times, done.stderr.decode()

    def states(self, times, tid):
        sums = {}
        for (thread, rest), ms in times.items():
            if thread == tid:
                state = rest.split(";")[0]
                sums[state] = round(sums.get(state, 0) + ms, 3)
        return sums
