#!/usr/bin/env python3
"""tacho folded --off-cpu and --wakers: waits by their time, with whoever ended them, of captures in which every switch
and wake-up is known."""
import struct

import made_capture as made
import made_payload
import programs
from made_payload import Field

FUNCTIONS = ["schedule", "do_wait", "do_wake", "entry", "asm_sysvec_apic_timer_interrupt", "timer_tick", "busy"]
AT = {name: made.KERNEL_TEXT + 0x1000 * (i + 1) for i, name in enumerate(FUNCTIONS)}
MAIN, WAKER, FIRST = 4242, 4300, 4400  # threads
RUNNING, SLEEPING, IDLE = 0, 1, 0x80
STEP = made.STEP  # ns, from one sample to the next


class Waits(programs.Scratch):
    def setUp(self):
        super().setUp()
        (self.folder / "kallsyms").write_text("".join(f"{at:016x} T {name}\n" for name, at in
                                                         [("_text", made.KERNEL_TEXT), *AT.items(), ("_etext", made.KERNEL_TEXT + 0x2000000)]))

    def begin(self, **events):
        self.events = list(events)
        self.capture = made_payload.capture(True, **events)
        for name, tid in (("main", MAIN), ("the waker", WAKER), ("first", FIRST)):
            self.capture.named(name, tid)

    def plain(self, *more):
        self.begin(**{"sched:sched_switch": [Field("prev_state"), Field("next_pid", size=4), Field("pad", size=4)],
                      "sched:sched_waking": [Field("pid", size=4), Field("pad", size=4)], **dict(more)})

    def take(self, event, tid, functions, *values):
        """A sample of a thread with that kernel stack, leaf first."""
        chain = [made.CONTEXT_KERNEL, *(AT[name] + 4 for name in functions)]
        self.capture.sample(self.events.index(event), ip=chain[1], misc=made.KERNEL, chain=chain, tid=tid,
                            raw=struct.pack(*values))

    def switch(self, tid, state, to, functions=("schedule", "do_wait", "entry")):
        self.take("sched:sched_switch", tid, functions, "<QII", state, to, 0)

    def wakes(self, tid, whom, functions=("do_wake", "entry")):
        self.take("sched:sched_waking", tid, functions, "<II", whom, 0)

    def folded(self, *words, status=0):
        (self.folder / "perf.data").write_bytes(self.capture.file())
        done = self.tacho("folded", "--kallsyms", "kallsyms", *words, status=status)
        lines = [line.rsplit(" ", 1) for line in done.stdout.decode().splitlines()]
        return {stack: int(weight) for stack, weight in lines}, done.stderr.decode()

    def test_without_asking_waits_are_taken_and_not_who_ended_them(self):
        """Whichever comes first; who ended them is told and can be asked for."""
        self.begin(waking=[Field("blocked_ns", role="value"), Field("woken_tid", size=4, role="wakes"), Field("pad", size=4)],
                   wait=[Field("off_ns", role="value"), Field("runq_ns", role="queued")])
        self.take("waking", WAKER, ("do_wake", "entry"), "<QII", 500, MAIN, 0)
        lines, said = self.folded()
        self.assertEqual(lines, {})
        self.assertIn("left out the samples of 'waking', which tell who ended waits; --event-filter NAME", said)
        self.take("wait", MAIN, ("schedule", "entry"), "<QQ", 700, 100)
        lines, said = self.folded("--weight", "off_ns")
        self.assertEqual(lines, {"main;entry;schedule": 700})
        self.assertIn("took the samples of 'wait' and left out those of 'waking'", said)
        lines, _ = self.folded("--event-filter", "waking", "--weight", "blocked_ns")
        self.assertEqual(lines, {"the_waker;entry;do_wake": 500})

    def test_a_wait_lies_between_two_switches(self):
        self.plain()
        self.switch(MAIN, SLEEPING, WAKER)
        self.switch(WAKER, RUNNING, 0)    # put aside: no wait
        self.switch(0, RUNNING, MAIN)     # the idle one
        self.switch(MAIN, IDLE, FIRST)    # a worker of the kernel that idles
        self.switch(FIRST, SLEEPING, MAIN)  # and this wait has no end
        lines, said = self.folded("--off-cpu")
        self.assertEqual(lines, {"main;entry;do_wait;schedule": 2 * STEP})
        self.assertEqual(said, "")

    def test_the_waker_stands_behind_a_marker(self):
        self.plain()
        for _ in range(2):
            self.switch(MAIN, SLEEPING, WAKER)
            self.wakes(WAKER, MAIN)
            self.wakes(FIRST, MAIN)  # it is awake
            self.switch(WAKER, RUNNING, MAIN)
        self.switch(MAIN, SLEEPING, WAKER)
        self.switch(WAKER, RUNNING, MAIN)  # nobody was seen
        lines, said = self.folded("--wakers")
        self.assertEqual(lines, {"main;entry;do_wait;schedule;-- waker --;do_wake;entry;the_waker": 6 * STEP,
                                 "main;entry;do_wait;schedule": STEP})
        self.assertEqual(said, "tacho folded: 2 of 3 waits have a waker\n")

    def test_an_interrupt_is_not_the_thread_that_it_hit(self):
        self.plain()
        self.switch(MAIN, SLEEPING, WAKER)
        self.wakes(WAKER, MAIN, ["do_wake", "timer_tick", "asm_sysvec_apic_timer_interrupt", "busy", "entry"])
        self.switch(WAKER, RUNNING, MAIN)
        lines, _ = self.folded("--wakers=3")
        self.assertEqual(lines, {"main;entry;do_wait;schedule;-- waker --;do_wake;timer_tick;"
                                 "asm_sysvec_apic_timer_interrupt;[irq]": 2 * STEP})

    def test_wakers_of_wakers_up_to_a_depth(self):
        self.plain()
        self.switch(MAIN, SLEEPING, WAKER)
        self.switch(WAKER, SLEEPING, FIRST)
        self.wakes(FIRST, WAKER, ["do_wake", "busy"])
        self.switch(FIRST, RUNNING, WAKER)
        self.wakes(WAKER, MAIN)
        self.switch(WAKER, RUNNING, MAIN)
        one = "main;entry;do_wait;schedule;-- waker --;do_wake;entry;the_waker"
        of_waker = "the_waker;entry;do_wait;schedule;-- waker --;do_wake;busy;first"
        self.assertEqual(self.folded("--wakers")[0], {one: 5 * STEP, of_waker: 2 * STEP})
        self.assertEqual(self.folded("--wakers=2")[0], {one + ";-- waker --;do_wake;busy;first": 5 * STEP, of_waker: 2 * STEP})

    def test_events_that_are_waits_and_events_that_wake(self):
        self.begin(nap=[Field("slept_ns", unit="ns", role="value"), Field("at", count=2, role="stack")],
                   ends=[Field("whom", size=4, role="wakes"), Field("pad", size=4), Field("by", made_payload.TEXT, 1, 16, role="waker")])
        stack = AT["schedule"] + 4, AT["do_wait"] + 4
        self.take("ends", WAKER, ["do_wake", "entry"], "<II16s", MAIN, 0, b"the waker")
        self.take("ends", MAIN, ["do_wake", "busy"], "<II16s", MAIN, 0, b"a stranger")  # the wait before was left out
        self.take("nap", MAIN, ["entry"], "<QQQ", 700, *stack)
        self.take("nap", MAIN, ["entry"], "<QQQ", 40, *stack)
        lines, _ = self.folded("--wakers")
        self.assertEqual(lines, {"main;do_wait;schedule;-- waker --;do_wake;busy;a_stranger": 700, "main;do_wait;schedule": 40})

    def test_filters_choose_who_waits_and_not_who_ends_the_wait(self):
        self.plain()
        self.switch(MAIN, SLEEPING, WAKER)
        self.wakes(WAKER, MAIN)
        self.switch(WAKER, SLEEPING, MAIN)
        self.wakes(MAIN, WAKER)
        self.switch(MAIN, SLEEPING, WAKER)
        self.switch(WAKER, RUNNING, MAIN)
        of_main = {"main;entry;do_wait;schedule;-- waker --;do_wake;entry;the_waker": 2 * STEP, "main;entry;do_wait;schedule": STEP}
        of_waker = {"the_waker;entry;do_wait;schedule;-- waker --;do_wake;entry;main": 2 * STEP}
        self.assertEqual(self.folded("--wakers")[0], {**of_main, **of_waker})
        for choice in (("--comm", "main"), ("--where", 'comm == "main"'), ("--where", f"tid == {MAIN}")):
            lines, said = self.folded("--wakers", *choice)
            self.assertEqual(lines, of_main, choice)
            self.assertEqual(said, "tacho folded: 1 of 2 waits have a waker\n")
        self.assertEqual(self.folded("--wakers", "--comm", "the waker")[0], of_waker)
        self.assertEqual(self.folded("--off-cpu", f"--tid={WAKER}")[0],
                         {"the_waker;entry;do_wait;schedule": 2 * STEP})
        self.assertEqual(self.folded("--off-cpu", f"--pid={made.PID}", "--cpu", "0", "--comm", "main")[0],
                         {"main;entry;do_wait;schedule": 3 * STEP})
        for choice in (f"--tid={FIRST}", "--cpu=1", "--pid=1"):
            lines, said = self.folded("--off-cpu", choice)
            self.assertEqual(lines, {}, choice)
            self.assertIn("no wait has an end in the capture", said)

    def test_what_cannot_choose_waits_is_refused(self):
        self.plain()
        self.switch(MAIN, SLEEPING, WAKER)
        self.switch(WAKER, RUNNING, MAIN)
        for choice in (("--dsos", "x"), ("--symbols", "do_wait"), ("--symbol-filter", "wait")):
            self.assertIn("leave --dsos, --symbols and --symbol-filter out", self.folded("--off-cpu", *choice, status=1)[1])

    def test_captures_without_waits_or_wakers_are_refused(self):
        self.begin(ends=[Field("whom", size=4, role="wakes"), Field("pad", size=4)])
        self.take("ends", WAKER, ["do_wake"], "<II", MAIN, 0)
        self.assertIn("--off-cpu: no event of the capture is a wait", self.folded("--off-cpu", status=1)[1])
        self.begin(**{"sched:sched_switch": [Field("prev_state"), Field("next_pid", size=4), Field("pad", size=4)]})
        self.switch(MAIN, SLEEPING, WAKER)
        self.assertIn("--wakers: no event of the capture tells who woke", self.folded("--wakers", status=1)[1])
        self.assertIn("leave --weight and --event out", self.folded("--off-cpu", "--weight", "period", status=1)[1])
        self.assertIn("--wakers", self.folded("--wakers=0", status=1)[1])


if __name__ == "__main__":
    programs.main()
