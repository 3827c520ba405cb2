"""perf's script text to folded stacks, by the rules of the usual collapsing script with its default options."""
import collections
import re

START = re.compile(rb"^(\S.+?)\s+(\d+)/*(\d+)*\s+")
EVENT = re.compile(rb":\s*(\d+)*\s+(\S+):\s*$")
FRAME = re.compile(rb"^\s*(\w+)\s*(.+) \((.*)\)")
OFFSET = re.compile(rb"\+0x[\da-f]+$")
ARGUMENTS = re.compile(rb"\((?!anonymous namespace\)).*", re.S)


def frame_names(function, module):
    function = OFFSET.sub(b"", function)
    if function.startswith(b"("):
        return []
    names = []
    for name in function.split(b"->"):
        if name == b"[unknown]":
            name = b"[" + (b"unknown" if module == b"[unknown]" else module.rsplit(b"/", 1)[-1]) + b"]"
        name = name.replace(b";", b":")
        if not re.search(rb"\.\(.*\)\.", name):
            name = ARGUMENTS.sub(b"", name)
        names.append(name.translate(None, b"\"'"))
    return names


def collapse(text):
    """A counter of the stacks of the first event. Frames root first."""
    counts, first_event, comm, frames, period = collections.Counter(), None, None, [], 1
    for line in text.split(b"\n"):
        if line.startswith(b"#"):
            continue
        if not line:
            if comm is not None:
                counts[b";".join([comm.replace(b" ", b"_"), *reversed(frames)])] += period
            comm, frames = None, []
        elif start := START.match(line):
            period, frames = 1, []
            comm = start.group(1)
            if event := EVENT.search(line):
                first_event = first_event or event.group(2)
                period = int(event.group(1) or 0) or 1
                if event.group(2) != first_event:
                    comm = None
        elif (frame := FRAME.match(line)) and comm is not None:
            frames += frame_names(frame.group(2), frame.group(3))
    return counts


def read_folded(text):
    counts = collections.Counter()
    for line in text.splitlines():
        stack, count = line.rsplit(b" ", 1)
        counts[stack] += int(count)
    return counts
