"""A capture of 100,000 distinct frames in call chains, each below a thousandth of a percent of all."""
import re

import made_capture as made

HANDLERS = 50_000
CALLED = ("malloc", "_int_malloc", "memcpy", "free_pages")  # by handlers in turn
SIZE = 16  # bytes of a function


def write(folder):
    """Writes thin.data and kallsyms, and returns the options that read them: `serve` calls each handler once, and that a
    function, `malloc` through `_int_malloc` too; `idle` has a quarter of all."""
    names = ["serve", "idle", *CALLED, *(f"h{i}" for i in range(HANDLERS))]
    address = {name: made.KERNEL_TEXT + SIZE * (1 + i) for i, name in enumerate(names)}
    (folder / "kallsyms").write_text(f"{made.KERNEL_TEXT:x} T _text\n" + "".join(
        f"{at:x} T {name}\n" for name, at in address.items()) + f"{made.KERNEL_TEXT + 0x2000000:x} T _etext\n")
    capture = made.Capture(made.Event("cpu-clock", made.SOFTWARE, 0, made.USUAL | made.CALLCHAIN))
    capture.data = bytearray()  # grows in place
    capture.started()
    total = 0
    for i in range(HANDLERS):
        called = CALLED[i % len(CALLED)]
        chain = ["malloc", "_int_malloc"] if called == "_int_malloc" and i % 8 == 1 else [called]
        period = 1 + i % 7
        total += period
        capture.sample(ip=address[chain[-1]] + 4, misc=made.KERNEL, period=period, chain=[
            made.CONTEXT_KERNEL, *(address[name] + 4 for name in [*reversed(chain), f"h{i}", "serve"])])
    capture.sample(ip=address["idle"] + 4, misc=made.KERNEL, period=total // 3,
                   chain=[made.CONTEXT_KERNEL, address["idle"] + 4])
    (folder / "thin.data").write_bytes(capture.file())
    return ["-i", folder / "thin.data", "--kallsyms", folder / "kallsyms"]


def stacks_of_script(text):
    """[(names, leaf first; period)] of tacho script -F comm,period,ip,sym (the thread's name last)."""
    stacks = []
    for block in text.strip().split("\n\n"):
        head, *frames = block.split("\n")
        stacks.append(([line.split()[1] for line in frames] + [head.split()[0]], int(head.split()[1])))
    return stacks


def share_of_matches(stacks, pattern, within=None):
    """Percent of the weight in stacks with a name that matches; of the stacks with the function `within`."""
    wanted = [(names[:names.index(within) + 1] if within else names, period) for names, period in stacks
              if within is None or within in names]
    found = sum(period for names, period in wanted if any(re.search(pattern, name) for name in names))
    return 100 * found / sum(period for _, period in wanted)
