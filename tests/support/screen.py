"""A terminal of a given size with a shell, driven by tmux: sends keys, reads the screen."""
import os
import re
import shutil
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import programs

needs_tmux = unittest.skipUnless(shutil.which("tmux"), "needs tmux")
PATIENCE = 20  # seconds until a screen shows what it should


class Screen:
    """One tmux server with one shell. close() ends it."""

    def __init__(self, folder, width=80, height=24, **variables):
        self.folder = folder
        self.socket = Path(tempfile.mkdtemp(prefix="tacho-tmux-")) / "tmux"
        environment = {"HOME": str(folder), "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "TZ": "UTC",
                       "TERM": "xterm-256color", "PS1": "$ ", "PAGER": "cat", "HISTFILE": "/dev/null"}
        environment.update({name: value for name, value in os.environ.items() if name.endswith("SAN_OPTIONS")})
        shell = "env -i " + " ".join(f"{name}='{value}'" for name, value in {**environment, **variables}.items()
                                     if value is not None) + " bash --norc --noprofile"
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(width), "-y", str(height), "-c", str(folder), shell)
        self.wait_for(r"^\$")

    def tmux(self, *words):
        done = subprocess.run(["tmux", "-S", self.socket, *words], capture_output=True, timeout=60,
                              env={**os.environ, "LC_ALL": "C.UTF-8"})
        if done.returncode != 0:
            raise AssertionError(f"tmux {words}: {done.stderr.decode()}")
        return done.stdout.decode()

    def close(self):
        if self.socket is not None:
            subprocess.run(["tmux", "-S", self.socket, "kill-server"], capture_output=True)
            shutil.rmtree(self.socket.parent, ignore_errors=True)
        self.socket = None

    def run(self, *words):
        """Types a command of tacho."""
        self.tmux("send-keys", "-l", " ".join(map(str, [programs.BIN / "tacho", *words])))
        self.tmux("send-keys", "Enter")
        return self

    def type(self, text):
        self.tmux("send-keys", "-l", text)
        self.tmux("send-keys", "Enter")
        return self

    def keys(self, *keys):
        for key in keys:
            self.tmux("send-keys", key)
        return self

    def click(self, row, column, button=0):
        """SGR mouse: button 0 is the first, 64 and 65 the wheel. Rows and columns from 0."""
        at = f"{button};{column + 1};{row + 1}"
        self.tmux("send-keys", "-l", f"\033[<{at}M")
        if button < 64:
            self.tmux("send-keys", "-l", f"\033[<{at}m")
        return self

    def resize(self, width, height):
        self.tmux("resize-window", "-x", str(width), "-y", str(height))
        return self

    def text(self, *options):
        return self.tmux("capture-pane", "-p", *options)

    def colours(self):
        """The pairs of colours (of letters, of the background; None: the terminal's own) in which something is drawn."""
        found, front, back, is_reverse = set(), None, None, False
        for codes, text in re.findall(r"\033\[([0-9;]*)m|([^\033\n]+)", self.text("-e")):
            if text:
                pair = (back, front) if is_reverse else (front, back)
                if text.strip() and pair != (None, None):
                    found.add(pair)
                continue
            words = iter([int(code or 0) for code in codes.split(";")])
            for word in words:
                if word == 0:
                    front, back, is_reverse = None, None, False
                elif word in (7, 27):
                    is_reverse = word == 7
                elif word in (38, 48):
                    next(words)
                    front, back = (next(words), back) if word == 38 else (front, next(words))
                elif 30 <= word % 60 < 50:  # 90 to 107 are bright
                    colour = None if word % 10 == 9 else word % 10 + (8 if word >= 90 else 0)
                    front, back = (colour, back) if word % 60 < 40 else (front, colour)
        return found

    def lines(self):
        return self.text().split("\n")

    def wait_for(self, pattern, *options):
        """Waits until a part of the screen matches, and returns the screen. `options`: of text()."""
        end = time.monotonic() + PATIENCE
        while True:
            text = self.text(*options)
            if re.search(pattern, text, re.MULTILINE):
                return text
            if time.monotonic() > end:
                raise AssertionError(f"never showed {pattern!r}:\n{text}")
            time.sleep(0.05)

    def wait_until_gone(self, pattern):
        end = time.monotonic() + PATIENCE
        while re.search(pattern, text := self.text(), re.MULTILINE):
            if time.monotonic() > end:
                raise AssertionError(f"still shows {pattern!r}:\n{text}")
            time.sleep(0.05)
        return text

    def state(self):
        """The state of the terminal that a program may change: alternate screen, cursor, mouse and modes."""
        flags = self.tmux("display-message", "-p", "#{alternate_on} #{cursor_flag} #{mouse_any_flag} #{keypad_cursor_flag}"
                          " #{keypad_flag}").strip()
        modes = self.folder / "modes"
        modes.unlink(missing_ok=True)
        self.type(f"stty -a > {modes}.new; mv {modes}.new {modes}")
        end = time.monotonic() + PATIENCE
        while not modes.exists() and time.monotonic() < end:
            time.sleep(0.02)
        return flags, re.sub(r"(rows|columns) \d+", "", modes.read_text())

    def shell(self):
        return int(self.tmux("display-message", "-p", "#{pane_pid}"))


def contrast(one, other):
    """WCAG's contrast ratio, 1 to 21, of two of xterm's 256 colours."""
    def luminance(colour):
        base = [(0, 0, 0), (205, 0, 0), (0, 205, 0), (205, 205, 0), (0, 0, 238), (205, 0, 205), (0, 205, 205), (229, 229, 229),
                (127, 127, 127), (255, 0, 0), (0, 255, 0), (255, 255, 0), (92, 92, 255), (255, 0, 255), (0, 255, 255), (255, 255, 255)]
        levels = (0, 95, 135, 175, 215, 255)
        cube = colour - 16
        parts = (base[colour] if colour < 16 else (8 + 10 * (colour - 232),) * 3 if colour >= 232 else
                 (levels[cube // 36], levels[cube // 6 % 6], levels[cube % 6]))
        linear = [part / 255 / 12.92 if part <= 10 else ((part / 255 + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def wait_until(holds):
    end = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > end:
            raise AssertionError("never held")
        time.sleep(0.02)


def children(parent):
    try:
        return [int(child) for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []  # it has ended


def name_of(process):
    try:
        return Path(f"/proc/{process}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return None
