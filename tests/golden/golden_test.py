#!/usr/bin/env python3
"""A capture and a command line, and the text that must come out.

    golden_test.py --program build/bin/tacho-report [--rewrite] [NAME...]

Each line of the file `cases` is NAME | STATUS | ARGUMENTS. What the program prints is compared with expected/NAME.txt
and what it says on stderr with expected/NAME.err (no file: nothing). --rewrite writes these files instead: look at
the difference before keeping it. Left out are the line that tells the file's own time, and what is said of modules
without symbols, which tests/symbolize checks.
"""
import argparse
import difflib
import os
import shlex
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
LEFT_OUT = (b"# captured on", b": no symbols: ")


def cases():
    for line in (HERE / "cases").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, status, arguments = (part.strip() for part in line.split("|", 2))
            yield name, int(status), shlex.split(arguments)


def run(program, arguments):
    environment = dict(os.environ, LC_ALL="C", TZ="UTC", HOME="/nonexistent")
    environment.pop("DEBUGINFOD_URLS", None)
    done = subprocess.run([program, *arguments], cwd=HERE, env=environment, stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=60, check=False)
    return kept(done.stdout), kept(done.stderr), done.returncode


def kept(text):
    return b"".join(line for line in text.splitlines(keepends=True) if not any(part in line for part in LEFT_OUT))


def stored(path):
    return path.read_bytes() if path.exists() else b""


def store(path, text):
    if text:
        path.write_bytes(text)
    else:
        path.unlink(missing_ok=True)


def show_difference(want, got, label):
    lines = [text.decode("utf-8", "backslashreplace").splitlines() for text in (want, got)]
    for line in list(difflib.unified_diff(*lines, "expected " + label, "printed " + label, lineterm="", n=1))[:20]:
        print("    " + ascii(line)[1:-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--rewrite", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    program = os.path.abspath(options.program)
    failed, count = 0, 0
    for name, status, arguments in cases():
        if options.names and name not in options.names:
            continue
        count += 1
        text, messages, got_status = run(program, arguments)
        files = [(HERE / "expected" / f"{name}.txt", text), (HERE / "expected" / f"{name}.err", messages)]
        if options.rewrite:
            for path, content in files:
                store(path, content)
        wrong = [(path, content) for path, content in files if stored(path) != content]
        if not wrong and got_status == status:
            continue
        failed += 1
        print(f"{name}: tacho-report {shlex.join(arguments)}")
        if got_status != status:
            print(f"    exit status {got_status}, expected {status}; stderr: {messages[-500:]!r}")
        for path, content in wrong:
            show_difference(stored(path), content, path.name)
    print(f"{count} cases, {failed} differ")
    return 1 if failed or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
