"""Debian's chromium without a window, driven by python3-selenium: for tests of pictures and pages."""
import base64
import json
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.append("/usr/lib/python3/dist-packages")  # Debian's packages, where another python3 runs the tests
try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.action_chains import ActionChains
except ImportError:
    webdriver = None

SHIFT = "\ue008"
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
needs_browser = unittest.skipUnless(webdriver and CHROMIUM and DRIVER,
                                    "needs a browser (Debian: chromium chromium-driver python3-selenium)")


class Browser:
    """A browser; its requests and console messages are recorded."""

    def __init__(self, width=1280, height=800):
        self.folder = tempfile.mkdtemp(prefix="tacho-browser-")
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                     "--no-first-run", "--disable-background-networking", "--disable-component-update",
                     "--disable-sync", "--disable-extensions", "--force-device-scale-factor=1",
                     f"--user-data-dir={self.folder}", f"--window-size={width},{height}"):
            options.add_argument(word)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(service=Service(DRIVER), options=options)
        self.driver.set_page_load_timeout(60)
        self.driver.get("about:blank")
        self.size(width, height)
        self.requests()  # of the page that a browser begins with

    def close(self):
        self.driver.quit()
        shutil.rmtree(self.folder, ignore_errors=True)

    def size(self, width, height=800):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def prefers(self, scheme):
        """"dark" or "light"."""
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia",
                                    {"features": [{"name": "prefers-color-scheme", "value": scheme}]})

    def telephone(self, width=390, height=844):
        """A touch screen, which shows what is not made for it as wide as a desk's window, and smaller."""
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": True})
        self.driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})

    def tap(self, x, y):
        for kind, points in (("touchStart", [{"x": x, "y": y}]), ("touchEnd", [])):
            self.driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    def no_telephone(self, width=1280):
        self.driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})
        self.size(width)

    def printed(self):
        """The bytes of the PDF."""
        return base64.b64decode(self.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"])

    def open(self, path, fragment=""):
        self.driver.get("about:blank")
        self.driver.get(Path(path).resolve().as_uri() + fragment)

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def complaints(self):
        """Console messages since the last call."""
        return [line["message"] for line in self.driver.get_log("browser") if line["level"] in ("SEVERE", "WARNING")]

    def requests(self):
        """URLs requested since the last call, without the files themselves and data URLs."""
        found = []
        for line in self.driver.get_log("performance"):
            message = json.loads(line["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                found.append(message["params"]["request"]["url"])
        return [url for url in found if not url.startswith(("file:", "about:", "data:"))]


class PageTest:
    """What tests do with a page or picture in their `browser`."""

    def settle(self):
        """Waits for hashchange and drawing, which are asynchronous."""
        self.browser.driver.execute_async_script("const done = arguments[0]; setTimeout(() => requestAnimationFrame(() => done()), 30);")

    def press(self, *keys, shift=False):
        for key in keys:
            actions = ActionChains(self.browser.driver, duration=0)
            (actions.key_down(SHIFT).send_keys(key).key_up(SHIFT) if shift else actions.send_keys(key)).perform()
            self.settle()

    def back(self, step="back"):
        self.browser.run(f"history.{step}()")
        self.settle()
        self.settle()

    def wait_until(self, script):
        self.browser.driver.set_script_timeout(60)
        self.browser.driver.execute_async_script(f"""const done = arguments[0], ask = () => (() => {{{script}}})() ? done() : setTimeout(ask, 20);
            ask();""")

    def fragment(self):
        return self.browser.run("return location.hash")
