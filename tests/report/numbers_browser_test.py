#!/usr/bin/env python3
"""Numbers chosen by chance that pages, pictures and the terminal show (frames, selections, rows, lanes, cells, statistics)
equal what counting the lines of tacho script gives. TACHO_NUMBERS=FILE[,FILE] does it with other captures, TACHO_TEST_SCALE with more numbers."""
import collections
import json
import os
import random
import re
import struct
import subprocess

import browser
import made_capture as made
import made_payload
import programs
from flame_graph import Picture
from made_payload import Field

GOLDEN = programs.ROOT / "tests/golden"
SYMBOLS = ["--symfs", GOLDEN / "symfs", "--kallsyms", GOLDEN / "captures/kallsyms"]
COUNT = programs.scaled(50, 8)
UNITS = {"ns": 1, "\u00b5s": 1e3, "ms": 1e6, "s": 1e9, "B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3, "M": 1e6, "G": 1e9, "T": 1e12}


class Sample:
    """A sample as these tests need it, of a line of tacho script --json."""
    __slots__ = ("event", "pid", "tid", "cpu", "time", "period", "stack", "leaf", "fields")

    def __init__(self, line, names):
        read = json.loads(line)
        self.event, self.pid, self.tid, self.cpu, self.time = (read.get(key) for key in ("event", "pid", "tid", "cpu", "time"))
        self.period, self.fields = read["period"] or 1, read.get("fields", {})  # events without a period count
        frames = [frame.get("symbol") or f"[{frame.get('dso', 'unknown').strip('[]').rsplit('/', 1)[-1]}]" for frame in read.get("stack", [])]
        self.leaf = next((name for name, frame in zip(frames, read.get("stack", [])) if not frame.get("inlined")), read["comm"])
        stack = (read["comm"], *reversed(frames))
        self.stack = names.setdefault(stack, stack)


def value_of(text):
    """The number of "1.5 ms", in ns or bytes."""
    number, unit = (text.replace(",", "").split() + [""])[:2]
    return float(number) * UNITS.get(unit, 1)


@browser.needs_browser
class Numbers(browser.PageTest, programs.Scratch):
    @classmethod
    def setUpClass(cls):
        cls.browser = browser.Browser(height=1600)
        cls.addClassCleanup(cls.browser.close)

    def tearDown(self):
        self.assertEqual(self.browser.complaints(), [])

    def take(self, *capture):
        self.capture, self.chance, names = capture, random.Random(os.path.basename(capture[1])), {}
        with subprocess.Popen([programs.BIN / "tacho", "script", "--json", *capture], stdout=subprocess.PIPE, cwd=self.folder) as reader:
            self.samples = [Sample(line, names) for line in reader.stdout]
        self.tacho("page", "-o", "page.html", *capture, status=None)
        self.open()
        self.event = self.browser.run("return document.querySelector('#event').selectedOptions[0].textContent")
        self.start = min(sample.time for sample in self.samples)
        self.checked = collections.Counter()

    def open(self, fragment=""):
        self.browser.open(self.folder / "page.html", fragment)
        self.wait_until("return document.documentElement.dataset.ready === 'yes'")

    def of_event(self, isWanted=lambda sample: True):
        return [sample for sample in self.samples if sample.event == self.event and isWanted(sample)]

    def seconds(self, time):
        return f"{time // 10**9}.{time % 10**9:09}"

    def frames(self, count):
        """[(path of names, lines of the tooltip)] of frames in sight."""
        picks = [self.chance.random() for _ in range(count)]
        return self.browser.run("""const [picks] = arguments, canvas = document.querySelector('canvas.flame'), box = canvas.getBoundingClientRect();
            const point = (x, y) => canvas.dispatchEvent(new PointerEvent('pointermove', {clientX: box.left + x, clientY: box.top + y, bubbles: true}));
            const tip = () => [...document.querySelector('.tip').children].map((line) => line.textContent);
            return picks.map((pick) => {
              const drawn = canvas.drawn.filter(([, , , w]) => w >= 1), [, x, y, w] = drawn[Math.floor(pick * drawn.length)], path = [];
              for (let row = 0; row <= y; row += 18) { point(x + w / 2, row + 9); path.push(tip()[0]); }
              return [path.slice(1), tip()];
            });""", picks)

    def check_frames(self, samples):
        whole = sum(sample.period for sample in samples)
        for path, lines in self.frames(COUNT):
            part = sum(sample.period for sample in samples if list(sample.stack[:len(path)]) == path)
            total = next(line for line in lines if line.startswith("total "))
            self.assertIn(f": {100 * part / whole:.2f} % of the selection", total, path)
            self.assertAlmostEqual(value_of(re.match("total ([^:]*):", total)[1]) / part, 1, delta=5.1e-3)
            self.checked["frames"] += 1

    def check_selections(self):
        times = sorted(sample.time for sample in self.of_event())
        for number in range(COUNT):
            first, last = sorted(self.chance.sample(times, 2))
            kind = ("tid", "pid", "cpu")[number % 3]
            asked = getattr(self.chance.choice(self.of_event()), kind)
            chosen = self.of_event(lambda sample: first <= sample.time <= last and getattr(sample, kind) == asked)
            self.browser.run("location.hash = arguments[0]", f"#time={self.seconds(first)},{self.seconds(last)}&{kind}={asked}")
            self.settle()
            self.settle()
            said = self.browser.run("return document.querySelector('#selection').innerText")
            self.assertEqual(int(re.search(r"([\d,]+) samples?\b", said)[1].replace(",", "")), len(chosen), said)
            if sum(sample.period for sample in chosen) > 0:
                self.check_frames(chosen) if number % 4 == 0 else None
            self.checked["selections"] += 1

    def titles(self, rows):
        """{number of a thread, process or processor: what the tooltip of its name says} of rows in sight."""
        self.open("#rows=" + rows)
        titles = self.browser.run("return [...document.querySelectorAll('.label')].map((label) => label.title)")
        forms = [re.match(r"(?:.* )?(\d+): (.*)", title) for title in titles]
        return {int(form[1]): form[2] for form in forms if form}  # not "CPU not recorded"

    def check_rows(self):
        for rows, key in (("thread", "tid"), ("process", "pid"), ("cpu", "cpu")):
            sums = collections.Counter()
            for sample in self.of_event():
                sums[getattr(sample, key)] += sample.period
            for number, said in self.titles(rows).items():
                self.assertAlmostEqual(value_of(said), sums[number], delta=5.1e-3 * sums[number], msg=f"{rows} {number}")
                self.checked["rows"] += 1

    def check_lanes(self):
        """The states of threads, which are those of wall graphs."""
        if not self.browser.run("return [...document.querySelectorAll('.timeline option')].some((one) => one.value === 'state')"):
            return
        times = collections.Counter()
        for line in self.tacho("folded", "--wall", "--tid", *self.capture, status=None).stdout.decode().splitlines():
            stack, weight = line.rsplit(" ", 1)
            thread, state = stack.split(";")[:2]
            times[int(thread.rsplit("/", 1)[1]), state.strip("[]")] += int(weight)
        for tid, said in self.titles("state").items():
            shown = {form[0].removeprefix("blocked: "): value_of(form[1]) for form in re.findall(r"([a-zA-Z-][^,]*?) ([\d.,]+ [num\u00b5]?s)(?:, |$)", said)}
            right = {state.removeprefix("blocked: "): time for (of, state), time in times.items() if of == tid}
            self.assertEqual(set(shown), set(right), said)
            for state, time in shown.items():
                self.assertAlmostEqual(time / right[state], 1, delta=5.1e-3, msg=f"{tid} {state}")
                self.checked["lanes"] += 1

    def check_cells(self, field):
        self.open(f"#tab=values&field={field}")
        cells = self.browser.run("""const map = document.querySelector('canvas.heat').cells, {scale} = map, found = [];
            map.counts.forEach((count, at) => { if (count > 0) { const row = Math.floor(at / map.columns);
              found.push([at % map.columns, scale.low(row), scale.high(row), count]); } });
            return [map.columns, map.span, found];""")
        columns, span, found = cells
        samples = [(sample.time - self.start, sample.fields[field]) for sample in self.of_event()]
        for column, low, high, count in self.chance.sample(found, min(COUNT, len(found))):
            inside = [value for time, value in samples if min(int(time / span * columns), columns - 1) == column and low <= value <= high]
            self.assertEqual(len(inside), count, (column, low, high))
            self.checked["cells"] += 1

    def check_statistics(self, field):
        times = sorted(sample.time for sample in self.of_event())
        for _ in range(COUNT):
            first, last = sorted(self.chance.sample(times, 2))
            values = sorted(sample.fields[field] for sample in self.of_event(lambda sample: first <= sample.time <= last))
            self.open(f"#tab=values&field={field}&time={self.seconds(first)},{self.seconds(last)}")
            said = self.browser.run("return document.querySelector('.values > p:not(.tools):not(.status)').textContent")
            form = re.match(r"([\d,]+) values?: .*?least ([\d.,]+ ?\w*), median ([\d.,]+ ?\w*), 99 % up to ([\d.,]+ ?\w*), largest ([\d.,]+ ?\w*)", said)
            self.assertIsNotNone(form, said)
            self.assertEqual(int(form[1].replace(",", "")), len(values))
            at = lambda part: values[max(-(-len(values) * part // 100), 1) - 1]
            for shown, right in zip(form.groups()[1:], (values[0], at(50), at(99), values[-1])):
                self.assertAlmostEqual(value_of(shown) / right, 1, delta=5.1e-3, msg=said)
            self.checked["statistics"] += 4

    def check_picture(self):
        self.tacho("flamegraph", "-o", "a.svg", "--event", self.event, *self.capture, status=None)
        frames = [frame for frame in Picture((self.folder / "a.svg").read_text()).panes[0] if frame.path]
        sums = collections.Counter()
        for sample in self.of_event():
            stack = (sample.stack[0].replace(" ", "_"), *(name.replace(";", ":") for name in sample.stack[1:]))
            for depth in range(len(stack)):
                sums[stack[:depth + 1]] += sample.period
        shown = collections.Counter()  # frames of one name that are two functions
        for frame in frames:
            shown[frame.path] += frame.weight
        for frame in self.chance.sample(frames, min(COUNT, len(frames))):
            self.assertEqual(shown[frame.path], sums[frame.path], frame.path)
            self.checked["frames of the picture"] += 1

    def check_terminal(self):
        text = self.tacho("report", "--event", self.event, "--no-children", "-s", "sym", "-g", "none", "--wide", *self.capture, status=None).stdout.decode()
        rows = re.findall(r"(?m)^ +([\d.]+)%  \[.\] (.*?) *$", text)
        sums, samples = collections.Counter(), self.of_event()
        for sample in samples:
            sums[sample.leaf] += sample.period
        for share, name in self.chance.sample(rows, min(COUNT, len(rows))):
            if name in sums:
                self.assertAlmostEqual(float(share), 100 * sums[name] / sum(sums.values()), delta=0.0051, msg=name)
                self.checked["rows of the terminal"] += 1

    # Tests.

    def test_stacks(self):
        for name in ("unwound", "threads"):
            self.take("-i", GOLDEN / f"captures/{name}.data", *SYMBOLS)
            self.check_frames(self.of_event())
            self.check_selections()
            self.check_picture()
            self.check_rows()
            self.check_terminal()
            self.assertGreater(sum(self.checked.values()), 2 * COUNT)

    def test_values(self):
        chance = random.Random(5)
        events = made_payload.capture(True, io=[Field("took", unit="ns", role="value")])
        for i in range(3000):
            events.sample(raw=struct.pack("<Q", int(10 ** chance.uniform(2, 7))), chain=[made.CONTEXT_USER, made.MAIN + 9],
                          tid=made.PID + i % 3)
        (self.folder / "perf.data").write_bytes(events.file())
        self.take("-i", self.folder / "perf.data")
        self.check_cells("took")
        self.check_statistics("took")
        self.check_selections()

    def test_other_captures(self):
        for path in filter(None, os.environ.get("TACHO_NUMBERS", "").split(",")):
            self.take("-i", path)
            self.check_frames(self.of_event())
            self.check_selections()
            self.check_picture()
            self.check_rows()
            self.check_terminal()
            self.check_lanes()
            numeric = [key for key, value in self.of_event()[0].fields.items() if isinstance(value, int)]
            for field in numeric[:1]:
                self.check_cells(field)
                self.check_statistics(field)
            print(path, dict(self.checked))


if __name__ == "__main__":
    programs.main()
