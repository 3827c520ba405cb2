#!/usr/bin/env python3
"""tacho-report built for arm64 (script/build --arm64) and run by qemu-user must print the same as the native one.

  tests/emulated.py [--patience 600] [--symfs DIR] [CAPTURE...]
  tests/emulated.py [--patience 600] --tests FOLDER [--only NAME...]

Compared are the cases of tests/golden, and VIEWS of its captures and of those in tests/data (or of the given ones), byte by byte,
with messages and exit statuses. --tests: the Python tests that record nothing, as CTest knows them in a build's FOLDER; each test
that passes with this machine's programs must pass with those of arm64. All run with --no-worker: qemu-user has no seccomp.
Needs qemu-user and programs of the same source that run here (TACHO_BIN, or build/bin)."""
import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
BIN = Path(os.environ.get("TACHO_BIN", ROOT / "build/bin")).absolute()
ARM = ROOT / "build-arm64"
GOLDEN = HERE / "golden"
# With qemu's -L the program would see packages/ as the root folder when it opens "/".
EMULATED = ["qemu-aarch64", ARM / "packages/lib/ld-linux-aarch64.so.1", "--library-path",
            ":".join(f"{ARM}/packages/{folder}/aarch64-linux-gnu" for folder in ("lib", "usr/lib")), ARM / "bin/tacho-report"]
sys.path.append(str(GOLDEN))
import golden_test  # noqa: E402

# view: its words. SYMBOLS stands for options; OUT is a file that it writes, which is compared too.
VIEWS = {"script": "script SYMBOLS", "script-as-perf": "script --as-perf SYMBOLS", "script-json": "script --json SYMBOLS",
         "report": "report SYMBOLS", "report-flat": "report --no-children -g none SYMBOLS", "folded": "folded SYMBOLS", "summary": "summary SYMBOLS",
         "header": "header", "evlist": "evlist -v", "dump": "dump", "dump-json": "dump --json", "page": "page -o OUT SYMBOLS",
         "flamegraph": "flamegraph -o OUT SYMBOLS", "export": "export --to pprof -o OUT SYMBOLS", "convert": "convert --plain -o OUT"}


def make_programs(folder, *words):
    """Programs of the usual names. The dispatcher could not start the other one in an emulator, so it is that one."""
    folder.mkdir()
    for name in ("tacho", "tacho-report"):
        path = folder / name
        path.write_text(f"#!/bin/sh\nexec {shlex.join(map(str, words))} \"$@\" --no-worker\n")
        path.chmod(0o755)
    return folder


def printed(program, words, patience):
    """(status, standard output, standard error, file that was written)"""
    environment = dict(os.environ, LC_ALL="C", TZ="UTC", HOME="/nonexistent")
    environment.pop("DEBUGINFOD_URLS", None)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out")
        try:
            done = subprocess.run([program, *(str(out) if word == "OUT" else word for word in words)], cwd=GOLDEN, env=environment,
                                  stdin=subprocess.DEVNULL, capture_output=True, timeout=patience, check=False)
        except subprocess.TimeoutExpired:
            return f"more than {patience} s", b"", b"", b""
        said = [text.replace(folder.encode(), b"FOLDER") for text in (done.stdout, done.stderr)]
        return done.returncode, *said, out.read_bytes() if out.exists() else b""


def cases_of(captures, views, symbols):
    """(name, words of tacho-report)"""
    yield from ((f"golden {name}", arguments) for name, _, arguments in golden_test.cases())
    for capture in captures:
        for view in views:
            yield f"{view} of {capture.name}", [*VIEWS[view].replace("SYMBOLS", symbols).split(), "-i", str(capture)]


def compare(cases, native, emulated, patience):
    """The number of cases that differ."""
    def differences(case):
        ours, theirs = (printed(program, case[1], patience) for program in (native / "tacho-report", emulated / "tacho-report"))
        return ours[0], [what for what, mine, other in zip(("status", "output", "messages", "file"), ours, theirs) if mine != other]

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(differences, cases))
    for (name, words), (_, wrong) in zip(cases, results):
        if wrong:
            print(f"{name}: {' and '.join(wrong)} differ: tacho-report {' '.join(words)}", flush=True)
    differ = sum(bool(wrong) for _, wrong in results)
    print(f"{len(cases)} outputs, {sum(status != 0 for status, _ in results)} of them with a status other than 0: {differ} differ")
    return differ


def tests_of(build):
    """(name, command, environment) of the Python tests that record nothing."""
    done = subprocess.run(["ctest", "--show-only=json-v1"], cwd=build, capture_output=True, check=True)
    for test in json.loads(done.stdout)["tests"]:
        environment = dict(line.split("=", 1) for row in test["properties"] if row["name"] == "ENVIRONMENT" for line in row["value"])
        if environment.get("TACHO_RECORDS") == "none":
            yield test["name"], test["command"], environment


def run_test(command, environment, programs, patience):
    """(number of tests, what failed: tests' names, or the file as a whole)"""
    file = Path(next(word for word in command if word.endswith(".py"))).name
    try:
        done = subprocess.run(command, env=dict(os.environ, **{**environment, "TACHO_BIN": str(programs), "TACHO_PATIENCE": str(patience)}),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=patience, check=False)
    except subprocess.TimeoutExpired:
        return 1, {f"{file} took more than {patience} s"}
    wrong = set(re.findall(r"^(?:FAIL|ERROR): (\S+ \(\S+\))", done.stderr, re.MULTILINE))
    run, skipped = (re.search(expression, done.stderr) for expression in (r"(?m)^Ran (\d+) test", r"skipped=(\d+)"))
    if done.returncode not in (0, 77) and not wrong:
        wrong = {file}
    return (int(run[1]) if run else 1) - (int(skipped[1]) if skipped else 0), wrong


def run_tests(build, names, native, emulated, patience):
    """The number of tests that fail with arm64's programs alone."""
    passed = failed = left_out = 0
    for name, command, environment in tests_of(build):
        if names and name not in names:
            continue
        count, wrong = run_test(command, environment, emulated, patience)
        count = max(count, len(wrong))  # an error of a whole class is in no count
        here = run_test(command, environment, native, patience)[1] if wrong else set()
        print(", ".join([f"{name}: {count - len(wrong)} passed", *(f"{each} failed{' here too' if each in here else ''}" for each in sorted(wrong))]), flush=True)
        passed, failed, left_out = passed + count - len(wrong), failed + len(wrong - here), left_out + len(wrong & here)
    print(f"{passed} tests passed, {failed} failed, {left_out} failed with this machine's programs too")
    return failed if passed else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--patience", type=int, default=600)
    parser.add_argument("--symfs", default="symfs")
    parser.add_argument("--tests", type=Path, metavar="FOLDER")
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("captures", type=Path, nargs="*")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tacho-emulated-") as folder:
        native = make_programs(Path(folder, "native"), BIN / "tacho-report")
        emulated = make_programs(Path(folder, "arm64"), *EMULATED)
        if options.tests:
            return 1 if run_tests(options.tests, options.only, native, emulated, options.patience) else 0
        captures = [path.absolute() for path in options.captures] or [*sorted(GOLDEN.glob("captures/*.data")), *sorted((HERE / "data").glob("*.data"))]
        cases = list(cases_of(captures, VIEWS, f"--symfs {options.symfs} --kallsyms captures/kallsyms"))
        return 1 if compare(cases, native, emulated, options.patience) else 0


if __name__ == "__main__":
    sys.exit(main())
