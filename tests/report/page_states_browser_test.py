#!/usr/bin/env python3
"""States of threads in the timeline of a page: lanes, single waits, wakers; times and counts below the pointer."""
import re

import browser
import programs
from states_capture import LOCK, MAIN, MS, OTHER, RECORDERS, RUNNING, SLEEP, SLEEPING, WORKER, StatesCapture

if browser.webdriver:
    from selenium.webdriver.common.actions.action_builder import ActionBuilder


@browser.needs_browser
class StatesInABrowser(browser.PageTest, StatesCapture):
    @classmethod
    def setUpClass(cls):
        cls.browser = browser.Browser()
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        super().setUp()
        self.switches()
        self.make_page()

    def make_page(self):
        (self.folder / "perf.data").write_bytes(self.capture.file())
        self.tacho("page", "--kallsyms", "kallsyms", "-o", "page.html", status=None)

    def tearDown(self):
        self.assertEqual(self.browser.complaints(), [])

    def open(self, fragment="#rows=state"):
        self.browser.open(self.folder / "page.html", fragment)
        self.wait_until("return document.documentElement.dataset.ready === 'yes'")

    def tids(self):
        return self.browser.run("return [...document.querySelectorAll('.label')].map((label) => Number(label.textContent.split(' ').pop()))")

    def point(self, canvas, ms, row=0, click=False):
        """Moves the pointer to a time, of the 60 ms of the capture."""
        x, y, width = self.browser.run("""const element = document.querySelector(arguments[0]);
            element.scrollIntoView({block: 'center'});
            const box = element.getBoundingClientRect();
            return [box.x, box.y, box.width];""", canvas)
        actions = ActionBuilder(self.browser.driver, duration=0)
        actions.pointer_action.move_to_location(int(x + width * ms / 60), int(y + 22 * row + 11))
        if click:
            actions.pointer_action.click()
        actions.perform()
        self.settle()

    def tip(self):
        return self.browser.run("return [...document.querySelector('.tip').children].map((line) => line.textContent)")

    def about(self):
        return self.browser.run("return document.querySelector('.wait').innerText")

    def test_names_of_lanes_have_the_times_that_folded_prints(self):
        self.open()
        times, _ = self.times()
        titles = self.browser.run("return [...document.querySelectorAll('.label')].map((label) => label.title)")
        self.assertEqual(len(titles), 3)
        for title in titles:
            name, said = title.split(": ", 1)
            shown = {f"[{state}]": float(ms) for state, ms in re.findall(r"([a-zA-Z-][^,]*?) ([\d.]+) ms", said)}
            self.assertEqual(shown, self.states(times, int(name.split()[-1])))

    def test_a_lane_shows_each_state_at_its_time(self):
        self.open()
        row = self.tids().index(MAIN)
        found = self.lane(row, 5, 25, 47, 55)
        self.assertEqual(found, [self.colour(number) for number in (0, 4, 1, 0)])  # on the CPU, asleep, runnable, on the CPU

    def lane(self, row, *times):
        """The colours of a lane at times."""
        return self.browser.run("""const [row, times] = arguments, bars = document.querySelector('canvas.bars');
            window.read ??= bars.getContext('2d').getImageData(0, 0, bars.width, bars.height).data;
            return times.map((ms) => 4 * (bars.width * (row * 22 + 3) + Math.round(bars.width * ms / 60))).map((at) => [...read.slice(at, at + 3)]);""",
            row, times)

    def colour(self, number):
        return self.browser.run("""const digits = getComputedStyle(document.documentElement).getPropertyValue(arguments[0]).trim();
            return [1, 3, 5].map((at) => parseInt(digits.slice(at, at + 2), 16));""", f"--state-{number}")

    def test_a_wait_leads_to_its_waker(self):
        self.open()
        rows = self.tids()
        self.point("canvas.bars", 20, rows.index(MAIN))
        self.assertEqual(self.tip(), [f"main {MAIN}", "blocked: sleep, 35 ms", "0.01000 s to 0.04500 s", f"woken by worker {WORKER}",
                                      "schedule", "do_nanosleep", "entry", "main"])
        self.point("canvas.bars", 20, rows.index(MAIN), click=True)
        self.assertIn(f"wait={MAIN}%2C", self.fragment())
        self.assertIn("schedule ← do_nanosleep ← entry", self.about())
        self.browser.run("document.querySelector('.wait button').click()")
        self.settle()
        self.assertIn(f"wait={WORKER}%2C", self.fragment())
        self.assertIn(f"worker {WORKER} on-CPU, 10 ms · 0.04000 s to 0.05000 s", self.about())
        self.browser.run("history.back()")
        self.settle()
        self.settle()
        self.browser.run("document.querySelector('canvas.bars').focus()")
        self.press("w")
        self.assertIn(f"worker {WORKER} on-CPU", self.about())

    def click_tool(self, words):
        self.browser.run("[...document.querySelectorAll('.wait button')].find((one) => one.textContent === arguments[0]).click()", words)
        self.settle()

    def test_a_wait_selects_its_event_and_what_its_waker_did(self):
        """The event of a wait comes when the thread runs again: here 5 ms after the wait's end."""
        self.recorders()
        self.make_page()
        self.open(f"#rows=state&event=offcpu&wait={MAIN},{(self.zero + 20 * MS) / 1e9:.9f}")
        self.assertIn(f"meanwhile worker {WORKER}: ", self.about())
        self.click_tool("Select this time")
        selection = lambda: self.browser.run("return document.querySelector('#selection').innerText")
        self.assertRegex(selection(), r"0\.0100+ s to 0\.0500+ s ✕ 1 sample")
        self.click_tool(f"Stacks of worker {WORKER} meanwhile")
        self.assertIn(f"tid={WORKER}", self.fragment())
        self.assertRegex(selection(), f"thread {WORKER} ✕ 1 sample")  # its clock's: it was on the CPU
        self.open(f"#time={(self.zero + 20 * MS) / 1e9:.9f},{(self.zero + 21 * MS) / 1e9:.9f}&tid={OTHER}")
        self.assertRegex(selection(), "0 samples.*: no sample matches all of these; remove one")

    def test_keys_walk_through_waits(self):
        self.open(f"#rows=state&wait={OTHER},{(self.zero + 5 * MS) / 1e9:.9f}")
        self.assertIn("since before the recording, 30 ms", self.about())
        self.browser.run("document.querySelector('canvas.bars').focus()")
        self.press("\ue014", "\ue014")
        self.assertIn("blocked: lock, 20 ms", self.about())
        self.click_tool("Select this time")
        self.assertRegex(self.browser.run("return document.querySelector('#selection').innerText"), r"0\.0400+ s to 0\.0600+ s")
        self.press("\ue007")
        self.assertIn("view=", self.fragment())

    def test_keys_walk_through_the_waits_of_a_thread(self):
        """From a blocked wait to blocked ones, from a time in a run queue to such times; wherever the focus is."""
        for sleeps in range(3):
            self.switch(61 + 4 * sleeps, MAIN, SLEEPING, OTHER, LOCK if sleeps == 1 else SLEEP)
            self.wakes(62 + 4 * sleeps, OTHER, MAIN)
            self.switch(63 + 4 * sleeps, OTHER, RUNNING, MAIN)
        self.make_page()
        at = lambda ms: f"wait={MAIN},{(self.zero + ms * MS) / 1e9:.9f}"
        self.open(f"#rows=state&{at(20)}")
        self.assertIn("blocked: sleep, 35 ms", self.about())
        for key, words in ((".", "blocked: sleep, 1 ms · 0.0610"), (".", "blocked: lock, 1 ms"), (",", "blocked: sleep, 1 ms · 0.0610"),
                           (".", "blocked: lock"), (".", "blocked: sleep, 1 ms · 0.0690"), (".", "0.0690")):
            self.press(key)
            self.assertIn(words, self.about())
        self.assertEqual(self.status(), "no later wait of this thread")
        self.open(f"#rows=state&{at(47)}")
        self.assertIn("runnable, 5 ms", self.about())
        self.press(".")
        self.assertIn("runnable, 1 ms · 0.0620", self.about())
        self.click_tool("◂")
        self.assertIn("runnable, 5 ms", self.about())
        # One that is out of sight comes into the middle of it, at the same scale.
        self.open(f"#rows=state&{at(20)}&view={(self.zero + 30 * MS) / 1e9:.9f},{(self.zero + 34 * MS) / 1e9:.9f}")
        self.press(".")
        self.assertIn(f"view={(self.zero + 59.5 * MS) / 1e9:.9f}%2C{(self.zero + 63.5 * MS) / 1e9:.9f}", self.fragment())
        self.open(f"#{at(20)}")  # rows of processors
        self.press(".")
        self.assertEqual(self.fragment(), f"#{at(20)}")

    def status(self):
        return self.browser.run("return document.querySelector('.timeline > .status').textContent")

    def test_who_had_the_cpu_is_said_of_a_time_in_a_run_queue(self):
        self.open("#rows=state&event=cpu-clock")
        self.point("canvas.bars", 47, self.tids().index(MAIN))
        self.assertEqual(self.tip()[1:], ["runnable, 5 ms", "0.045000 s to 0.050000 s", f"woken by worker {WORKER}", f"CPU 0 had worker {WORKER} 5 ms",
                                          "schedule", "do_nanosleep", "entry", "main"])
        self.point("canvas.bars", 20, self.tids().index(MAIN))
        self.assertFalse([line for line in self.tip() if "CPU 0" in line], "it waited for no CPU")
        # main waits 30 ms for CPU 1, which others have for 5 and 15 ms; worker is on CPU 0.
        self.begin(RECORDERS)
        self.runs(0, MAIN, "busy")
        self.off(10, OTHER, 2, 0, cpu=1)
        self.off(10, WORKER, 2, 0, cpu=0)
        self.off(20, OTHER, 5, 0, cpu=1)
        self.take(35, "cpu-clock", OTHER, ("busy", "entry"), cpu=1)
        self.take(36, "cpu-clock", WORKER, ("busy", "entry"), cpu=0)
        self.off(40, MAIN, 35, 30, cpu=1)
        self.off(45, OTHER, 10, 0, cpu=0)
        self.runs(60, MAIN, "busy")
        self.make_page()
        self.open("#rows=state&event=cpu-clock")
        self.point("canvas.bars", 25, self.tids().index(MAIN), click=True)
        said = f"CPU 1 had other {OTHER} 20 ms, unknown or others: 10 ms"
        self.assertIn(said, self.tip())
        self.assertIn(said, self.about())
        self.click_tool("Stacks of CPU 1 meanwhile")
        self.assertIn("cpu=1", self.fragment())
        self.assertRegex(self.browser.run("return document.querySelector('#selection').innerText"), r"0\.0100+ s to 0\.0400+ s ✕CPU 1 ✕ 1 sample")

    def test_threads_that_seem_to_share_a_cpu_have_no_times(self):
        """Without events of preemption both look as if they ran on CPU 1 all the time."""
        self.begin(RECORDERS)
        self.runs(0, MAIN, "busy")
        for thread in (OTHER, WORKER):
            self.off(9, thread, 2, 0, cpu=1)
        self.off(40, MAIN, 35, 30, cpu=1)
        for thread in (OTHER, WORKER):
            self.off(50, thread, 5, 0, cpu=1)
        self.runs(60, MAIN, "busy")
        self.make_page()
        self.open("#rows=state&event=cpu-clock")
        self.point("canvas.bars", 25, self.tids().index(MAIN))
        (said,) = [line for line in self.tip() if line.startswith("CPU 1 had ")]
        self.assertEqual(sorted(said.removeprefix("CPU 1 had ").split(", ")), [f":{WORKER} {WORKER}", f"other {OTHER}"])

    def test_a_long_name_in_the_legend_does_not_widen_a_narrow_page(self):
        self.browser.size(390)
        self.addCleanup(self.browser.size, 1280)
        self.open("#rows=state&event=cpu-clock")
        self.browser.run("document.querySelector('.marks > span').append('x'.repeat(300))")
        self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), 390)

    def test_a_wait_of_no_known_reason_has_a_colour_of_its_own(self):
        self.begin(RECORDERS)
        self.runs(0, MAIN, "busy")
        for ms in (10, 20, 30):
            self.queued(ms, OTHER, 1, "woken")
        self.off(50, OTHER, 10, 0, SLEEP)
        self.off(60, OTHER, 10, 0, ("schedule", "entry"))
        self.make_page()
        self.open("#rows=state&event=cpu-clock")
        row = self.tids().index(OTHER)
        for ms, words, state in ((15, ["off-CPU: no reason recorded, 9 ms", "0.010000 s to 0.019000 s", "no event of its own: it may be several waits, also for a CPU"], 11),
                                 (45, ["blocked: sleep, 10 ms", "0.04000 s to 0.05000 s"], 4), (55, ["blocked, 10 ms", "0.05000 s to 0.06000 s"], 10)):
            self.point("canvas.bars", ms, row)
            self.assertEqual(self.tip()[1:len(words) + 1], words)
            self.assertEqual(self.lane(row, ms), [self.colour(state)])
        legend = self.browser.run("return [...document.querySelectorAll('.timeline .legend:not(.marks) > span')].map((one) => one.textContent)")
        self.assertEqual(legend, ["on-CPU", "runnable", "blocked: sleep", "blocked", "off-CPU: no reason recorded", "blocked: since before the recording"])

    def marks(self):
        """The words of the legend, and whether each has a drawing."""
        shown = self.browser.run("""return [...document.querySelectorAll('.marks > span')].map((one) => { const mark = one.querySelector('canvas');
            return [one.textContent, mark.getContext('2d').getImageData(0, 0, mark.width, mark.height).data.some((part) => part > 0)]; });""")
        self.assertTrue(all(is_drawn for _, is_drawn in shown), shown)
        return [words for words, _ in shown] if self.browser.run("return !document.querySelector('.marks').hidden") else []

    def test_a_legend_says_what_the_marks_mean(self):
        states = "several states in a column: parts of its time"
        self.open("#rows=state&event=cpu-clock")
        self.assertEqual(self.marks(), ["wake, from the thread that ended the wait", "sample of cpu-clock", states])
        at = lambda ms: f"{(self.zero + ms * MS) / 1e9:.9f}"
        self.open(f"#rows=state&event=cpu-clock&wait={MAIN},{at(20)}&view={at(11)},{at(12)}&time={at(5)},{at(12)}")
        self.assertEqual(self.marks(), [states, "chosen", "selected time", "samples outside of it"], "no wake and no sample is in sight")
        self.open("#event=cpu-clock")  # bars
        self.assertEqual(self.marks(), [])
        self.open(f"#event=cpu-clock&time={at(5)},{at(12)}")
        self.assertEqual(self.marks(), ["selected time", "samples outside of it"])
        self.open("#event=cpu-clock&function=busy")
        self.assertEqual(self.marks(), ["samples without the chosen function"])
        for sample in range(401):
            self.runs(61 + sample / 1000, MAIN, "busy", "entry")
        for wake in range(201):
            self.switch(62 + wake, OTHER if wake % 2 else MAIN, SLEEPING, MAIN if wake % 2 else OTHER)
            self.wakes(62.5 + wake, MAIN if wake % 2 else OTHER, OTHER if wake % 2 else MAIN)
        self.make_page()
        self.open("#rows=state&event=cpu-clock")
        self.assertEqual(self.marks(), ["wakes: too many in sight, zoom in", "samples of cpu-clock: too many in sight, zoom in", states])

    def test_times_are_from_the_start_or_as_recorded(self):
        first, last = (f"{(self.zero + ms * MS) / 1e9:.9f}" for ms in (2, 4))
        self.open(f"#time={first},{last}")
        chip = lambda: self.browser.run("return document.querySelector('.chip').textContent")
        self.assertEqual(chip(), "0.00200 s to 0.00400 s ✕")
        self.browser.run("const box = document.querySelector('[aria-label=times]'); box.value = 'recorded'; box.dispatchEvent(new Event('change'))")
        self.settle()
        self.assertEqual(chip(), f"{first[:-4]} s to {last[:-4]} s ✕")

    def test_the_pointer_shows_the_count_of_its_moment(self):
        self.open("#by=samples")
        for canvas, at in (("canvas.strip", 0), ("canvas.bars", 1)):
            self.point(canvas, 3.01)
            self.assertEqual(self.tip()[at + 1], "1 sample", canvas)
            self.point(canvas, 33)
            self.assertEqual(self.tip()[at + 1], "0 samples", canvas)


if __name__ == "__main__":
    programs.main()
