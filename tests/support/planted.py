"""Programs with one known cause of their slowness (tests/live/planted), and whether an answer of tacho why names it."""
import fnmatch
import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import programs

SOURCES = programs.ROOT / "tests/live/planted"
CAUSES = ["hot", "two-hot", "spin", "yield", "syscalls", "convoy", "fsync", "chain", "rwlock", "disk", "faults", "peer", "pool",
          "connections", "healthy", "neighbour", "quota", "forks"]
# Their truth is of the process itself, so what follows it is started beside it ({pid}).
BESIDE_CHILDREN = ["peer", "pool", "connections", "healthy", "neighbour", "forks"]
# Some of these causes in other languages: the words that start the program, or that compile it into {program} first.
LANGUAGES = {
    "python": [sys.executable, *(["-X", "perf"] if sys.version_info >= (3, 12) else []), "-B", SOURCES / "planted.py"],
    "node": ["node", "--perf-basic-prof", SOURCES / "planted.mjs"],
    "go": ["go", "build", "-o", "{program}", SOURCES / "planted.go"],
    "rust": ["rustc", "--edition", "2021", "-O", "-g", "-C", "force-frame-pointers=yes", "-o", "{program}", SOURCES / "planted.rs"],
}
CAUSES_IN = {"python": ["hot", "fsync", "peer", "forks"], "node": ["hot", "forks"], "go": ["hot", "forks"], "rust": ["hot", "fsync"]}


def program_in(language, folder):
    """The words that start the program in this language; what is compiled stands in the folder."""
    words = LANGUAGES[language]
    if not shutil.which(words[0]):
        raise programs.unittest.SkipTest(f"needs {words[0]}")
    if "{program}" not in words:
        return words
    program = folder / f"planted-{language}"
    subprocess.run([program if word == "{program}" else word for word in words], check=True)
    return [program]


class Planted(programs.Scratch):
    """A test that runs them, in its folder: its disk is the one they read from."""

    def run_planted(self, cause, seconds=2, around=(), program=(programs.BIN / "planted",)):
        """Runs it, and returns its truth, and what the command `around` it printed. A command with the word {pid} is started
        beside it, once its threads run; the program is the end of any other."""
        truth = self.folder / "truth.json"
        truth.unlink(missing_ok=True)
        words = [*program, cause, seconds, truth]
        if "{pid}" in around:
            answer = self.run_beside(words, around)
        else:
            answer = self.finish(*around, *words).stdout
        read = json.loads(truth.read_text())
        self.addCleanup(Path(f"/tmp/perf-{read.get('pid')}.map").unlink, missing_ok=True)  # of node and Python
        return read, answer

    def finish(self, *words):
        done = self.run_program(*words, status=None)
        if done.returncode == programs.SKIPPED:
            self.skipTest(done.stderr.decode())
        self.assertEqual(done.returncode, 0, done)
        return done

    def run_beside(self, words, around):
        started = subprocess.Popen([str(word) for word in words], cwd=self.folder, stderr=subprocess.PIPE)
        with started:
            while started.poll() is None and not has_threads(started.pid):
                time.sleep(0.01)
            answer = None
            if started.poll() is None:
                answer = self.finish(*(str(started.pid) if word == "{pid}" else word for word in around)).stdout
            said = started.stderr.read().decode()
        if started.returncode == programs.SKIPPED:
            self.skipTest(said)
        self.assertEqual(started.returncode, 0, said)
        return answer


def has_threads(pid):
    try:
        return len(list(Path(f"/proc/{pid}/task").iterdir())) > 1
    except OSError:
        return False


def name_of(symbol):
    """`cache_lock` of `(anonymous namespace)::cache_lock+0x8`, `look_up` of `look_up(Thread&)`, of `main.look_up`,
    of `JS:*look_up file:///a.mjs:1:2` or of `py::look_up:/a.py`."""
    compiled = re.match(r"(?:[A-Z]\w+:\W?|py::)(\w+)", symbol or "")
    if compiled:
        return compiled[1]
    symbol = re.sub(r"\(anonymous namespace\)::|\+(0x)?[0-9a-f]+$|\(.*\)$|<.*>", "", symbol or "")
    return re.split(r"::|\.| ", symbol)[-1]


def is_near(share, right):
    return abs(share - right) <= right / 10


def check(truth, answer):
    """What tacho why --json says other than the program's truth: a list of texts, empty if it is right."""
    findings = answer["findings"]
    if truth["cause"] == "idle":
        return [f"a finding of a program that waits for work: {finding}" for finding in findings]
    if not findings:
        return [f"no finding, but it is {truth['cause']}"]
    first = findings[0]
    wrong = check_finding(truth, first)
    second = truth.get("second")
    if second:
        places = [finding for finding in findings if finding["cause"] == truth["cause"] and second["function"] in functions_of(finding)]
        if not any(is_near(finding["share"], second["share"]) for finding in places):
            wrong.append(f"second {second}: {places}")
    return wrong


def functions_of(finding):
    return [name_of(symbol) for symbol in [finding.get("function"), *finding.get("callers", []), *finding.get("stack", [])]]


def check_finding(truth, finding):
    wrong = []
    if finding["cause"] != truth["cause"]:
        wrong.append(f"cause {finding['cause']}, but it is {truth['cause']}")
    functions = functions_of(finding)
    for function in [truth["function"], *truth.get("callers", [])]:
        if function not in functions and not set(truth.get("native", [])) & set(functions):
            wrong.append(f"no {function} in {functions}")
    if "lock" in truth and name_of(finding.get("lock")) != truth["lock"]:
        wrong.append(f"lock {finding.get('lock')}, but it is {truth['lock']}")
    if "holder" in truth:
        wrong += check_holder(truth["holder"], finding.get("holder") or {})
    if "device" in truth and not (finding.get("device") and truth["device"].startswith(finding["device"])):  # vda of vda1
        wrong.append(f"device {finding.get('device')}, but it is {truth['device']}")
    for member in ["file", "peer", "by", "call"]:
        if member in truth and (finding.get(member) or "").split("/")[-1] != truth[member]:  # "FOLDER/FILE"
            wrong.append(f"{member} {finding.get(member)}, but it is {truth[member]}")
    least, most = 0.9 * truth.get("least", truth["share"]), 1.1 * truth.get("most", truth["share"])
    if truth["cause"] == "fault":  # a thread that is woken is runnable at once; schedstat counts from the time it is in a queue
        least -= 10_000 * finding["count"] / truth["wall_ns"]
    if truth["cause"] == "syscall":  # what a loop of them does in between may be a part of the finding
        least, most = sum(times["system_ns"] for times in truth["per_thread"].values()) / truth["wall_ns"], truth["share"]
    if not is_near(finding["share"], truth["share"]) and not least <= finding["share"] <= most:
        wrong.append(f"share {finding['share']}, but it is {truth['share']}")
    return wrong


def check_holder(truth, holder):
    is_right = fnmatch.fnmatchcase(holder.get("comm", ""), truth["comm"]) and holder.get("doing") == truth["doing"]
    return [] if is_right else [f"holder {holder}, but it is {truth}"]
