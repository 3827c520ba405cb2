#!/usr/bin/env python3
"""How long pages and flame graphs take to open and to select in Chromium, and how large they are, beside other programs' of the
same stacks.

  bench/pictures_in_browser.py [--folder DIR] [--seconds 60] [--runs 5] [--flamegraph-pl FILE]

Records this machine with perf (12,000 Hz, call graphs) while g++ compiles sources of this project, and makes 200,000 distinct
stacks. What is in DIR already is used again. Times are medians of the runs: from the start of the navigation until the page says that
it is ready, or the picture is drawn. Needs root, perf, g++, chromium, chromedriver, python3-selenium and the built programs (TACHO_BIN,
or build/bin); speedscope of npm in TACHO_NODE_MODULES."""
import argparse
import base64
import os
import random
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

from measured import BIN, ROOT, run

sys.path.append(str(ROOT / "tests/support"))
import browser  # noqa: E402

SPEEDSCOPE = Path(os.environ.get("TACHO_NODE_MODULES", "/nonexistent")) / "speedscope/dist/release/index.html"
READY = "return document.documentElement.dataset.ready === 'yes'"
DRAWN = "return document.readyState === 'complete'"
SHOWN = "return document.querySelectorAll('canvas').length > 1 && !document.body.textContent.includes('Loading')"


def record(folder, seconds):
    """A compiler's capture. Its sources are compiled as long as the recording goes on."""
    capture = folder / "compiler.data"
    if capture.exists():
        return capture
    work = f"end=$((SECONDS + {seconds})); while [ $SECONDS -lt $end ]; do for source in report/views/*/*.cc; do " \
           "timeout $((end - SECONDS + 1)) g++ -std=c++20 -O2 -I. -c -o /dev/null $source; [ $SECONDS -lt $end ] || break; done; done"
    loads = [subprocess.Popen(["bash", "-c", work], cwd=ROOT, stderr=subprocess.DEVNULL) for _ in range(os.cpu_count())]
    run("perf", "record", "-q", "-F", "12000", "-e", "cpu-clock", "-a", "-g", "-m", "16M", "-o", capture, "--", "sleep", seconds)
    for load in loads:
        load.wait()
    return capture


def distinct_stacks(folder, count=200_000):
    path = folder / "distinct.folded"
    if not path.exists():
        chance, stacks = random.Random(47), set()
        while len(stacks) < count:
            depth = chance.randrange(8, 30)
            stacks.add(";".join(["server"] + [f"layer{level}_function_{int(chance.expovariate(0.4))}" for level in range(depth)]))
        path.write_text("".join(f"{stack} {chance.randrange(1, 50)}\n" for stack in sorted(stacks)))
    return path


def made(path, *words):
    """Makes the file: seconds, MB."""
    begin = time.monotonic()
    with open(path, "wb") as out:
        subprocess.run([str(word) for word in words], stdout=out, stderr=subprocess.DEVNULL, check=False)
    return time.monotonic() - begin, path.stat().st_size / 1e6


class Opened:
    def __init__(self, runs):
        self.runs, self.browser = runs, browser.Browser()
        self.browser.driver.set_page_load_timeout(300)
        self.browser.driver.set_script_timeout(300)

    def opens(self, path, condition, fragment=""):
        times = []
        for _ in range(self.runs):
            self.browser.driver.get("about:blank")
            self.browser.driver.get(Path(path).resolve().as_uri() + fragment)
            times.append(self.browser.driver.execute_async_script(f"""const done = arguments[0];
                const ask = () => (() => {{{condition}}})() ? requestAnimationFrame(() => setTimeout(() => done(performance.now()))) : setTimeout(ask, 5);
                ask();"""))
        return statistics.median(times)

    def selects(self):
        """ms from a selected tenth of the page's time until it is drawn, in the page that is open."""
        times = []
        for part in range(self.runs):
            times.append(self.browser.driver.execute_async_script("""const [part, done] = arguments, strip = document.querySelector('.strip'), {width, left, top} = strip.getBoundingClientRect();
                const point = (type, at) => strip.dispatchEvent(new PointerEvent(type, {clientX: left + at * width, clientY: top + 9, pointerId: 1, button: 0, bubbles: true}));
                strip.setPointerCapture = () => {};
                point('pointerdown', 0.1 * part); point('pointermove', 0.1 * part + 0.1);
                addEventListener('hashchange', () => requestAnimationFrame(() => setTimeout(() => done(performance.now() - begin))), {once: true});
                const begin = performance.now();
                point('pointerup', 0.1 * part + 0.1);""", part))
        return statistics.median(times)


def speedscope_page(folder, profile):
    """A page that gives the profile to speedscope, as its command does."""
    data = folder / f"{profile.name}.js"
    data.write_text(f"speedscope.loadFileFromBase64('{profile.name}', '{base64.b64encode(profile.read_bytes()).decode()}')")
    return f"#localProfilePath={data}"


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--folder", type=Path, default=Path("/tmp/tacho-pictures"))
    words.add_argument("--seconds", type=int, default=60)
    words.add_argument("--runs", type=int, default=5)
    words.add_argument("--flamegraph-pl", default=shutil.which("flamegraph.pl"))
    given = words.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    capture, distinct = record(given.folder, given.seconds), distinct_stacks(given.folder)
    tacho, compiler = BIN / "tacho", given.folder / "compiler.folded"
    if not compiler.exists():
        made(compiler, tacho, "folded", "-i", capture)
    opened = Opened(given.runs)

    def say(what, of, seconds, size, milliseconds, more=""):
        print(f"{what:24} {of:10} made in {seconds:6.1f} s {size:8.2f} MB   opens in {milliseconds:8.0f} ms {more}", flush=True)

    page = given.folder / "compiler.html"
    seconds, size = made(page, tacho, "page", "-i", capture)
    milliseconds = opened.opens(page, READY)
    say("tacho page", "compiler", seconds, size, milliseconds, f"  selects in {opened.selects():.0f} ms")
    print(opened.browser.run("return document.querySelector('.gist').textContent"))
    for name, folded in (("compiler", compiler), ("distinct", distinct)):
        picture = given.folder / f"{name}.svg"
        say("tacho flamegraph", name, *made(picture, tacho, "flamegraph", *(["-i", capture] if name == "compiler" else ["--folded", folded])),
            opened.opens(picture, DRAWN))
        if given.flamegraph_pl:
            picture = given.folder / f"{name}-perl.svg"
            say("flamegraph.pl", name, *made(picture, "perl", given.flamegraph_pl, folded), opened.opens(picture, DRAWN))
        if SPEEDSCOPE.exists():
            try:
                say("speedscope", name, 0, folded.stat().st_size / 1e6, opened.opens(SPEEDSCOPE, SHOWN, speedscope_page(given.folder, folded)))
            except browser.webdriver.support.ui.TimeoutException as fault:
                print(f"speedscope {name}: {fault.msg}")
    opened.browser.close()


if __name__ == "__main__":
    main()
