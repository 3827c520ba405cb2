"""Debian's firefox-esr without a window, driven by Marionette, the protocol that Firefox itself speaks: no driver is needed."""
import base64
import json
import shutil
import socket
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")
needs_firefox = unittest.skipUnless(FIREFOX, "needs Firefox (Debian: firefox-esr)")
SECONDS = 60  # that it may take to start, and that a script may take


class Firefox:
    """A browser with one window."""

    def __init__(self, width=1280, height=800):
        self.folder = tempfile.mkdtemp(prefix="tacho-firefox-")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        preferences = {"marionette.port": port, "app.update.enabled": False, "browser.shell.checkDefaultBrowser": False,
                       "datareporting.policy.dataSubmissionEnabled": False, "network.captive-portal-service.enabled": False}
        (Path(self.folder) / "user.js").write_text("".join(
            f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in preferences.items()))
        self.process = subprocess.Popen([FIREFOX, "--headless", "--marionette", "--no-remote", "--profile", self.folder],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.number = 0
        self.socket = self.connect(port)
        self.read()  # its greeting
        self.ask("WebDriver:NewSession", {"capabilities": {"alwaysMatch": {"timeouts": {"script": 1000 * SECONDS}}}})
        self.size(width, height)

    def connect(self, port):
        end = time.monotonic() + SECONDS
        while True:
            try:
                return socket.create_connection(("127.0.0.1", port), SECONDS)
            except ConnectionRefusedError:
                if self.process.poll() is not None or time.monotonic() > end:
                    raise
                time.sleep(0.1)

    def close(self):
        self.socket.close()
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def read(self):
        """A message: its length in digits, a colon, JSON."""
        length = b""
        while not length.endswith(b":"):
            length += self.socket.recv(1)
        text = b""
        while len(text) < int(length[:-1]):
            text += self.socket.recv(int(length[:-1]) - len(text))
        return json.loads(text)

    def ask(self, command, values):
        self.number += 1
        text = json.dumps([0, self.number, command, values])
        self.socket.sendall(f"{len(text)}:{text}".encode())
        _, number, error, answer = self.read()
        assert number == self.number, "an answer to another question"
        if error:
            raise RuntimeError(f"{command}: {error['message']}")
        return answer

    def size(self, width, height):
        """Of what is in the window, in CSS pixels."""
        inner = self.run("return [outerWidth - innerWidth, outerHeight - innerHeight]")
        self.ask("WebDriver:SetWindowRect", {"width": width + inner[0], "height": height + inner[1]})

    def open(self, path, fragment=""):
        self.ask("WebDriver:Navigate", {"url": "about:blank"})
        self.ask("WebDriver:Navigate", {"url": Path(path).resolve().as_uri() + fragment})

    def run(self, script, *arguments):
        return self.ask("WebDriver:ExecuteScript", {"script": script, "args": list(arguments)})["value"]

    def wait_until(self, script):
        self.ask("WebDriver:ExecuteAsyncScript", {"script": f"""const done = arguments[0], ask = () =>
            (() => {{{script}}})() ? done() : setTimeout(ask, 20); ask();""", "args": []})

    def act(self, kind, **source):
        self.ask("WebDriver:PerformActions", {"actions": [{"type": kind, "id": kind, **source}]})
        self.ask("WebDriver:ExecuteAsyncScript", {"script": "setTimeout(() => requestAnimationFrame(() => arguments[0]()), 30)", "args": []})

    def press(self, *keys):
        self.act("key", actions=[{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")])

    def click(self, x, y):
        """At a point of the window, in CSS pixels."""
        self.act("pointer", parameters={"pointerType": "mouse"}, actions=[
            {"type": "pointerMove", "x": round(x), "y": round(y)}, {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}])

    def picture(self):
        """The bytes of a PNG of what is in the window."""
        return base64.b64decode(self.ask("WebDriver:TakeScreenshot", {"full": False})["value"])
