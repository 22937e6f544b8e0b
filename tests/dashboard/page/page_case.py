# What tests of the dashboard's page share: a browser, a server with a synthetic run,
# and the words in which the tests read the page. Ends the program with 77 if there
# is no selenium or no Chromium.
import os
import shutil
import sys
import time
import unittest

SKIPPED = 77

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
except ImportError:
    print("skipped: needs selenium (apt-get install python3-selenium)")
    sys.exit(SKIPPED)

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
if not CHROMIUM or not DRIVER:
    print("skipped: needs chromium and chromedriver (apt-get install chromium-driver)")
    sys.exit(SKIPPED)

from fixture_server import PAGE, FixtureServer
from synthetic_run import SyntheticRun

PATIENCE_S = 60  # a slow machine is no failure
PATHS = {f"/api/v1/{name}" for name in ("run", "graph", "series", "timeline", "why", "memory",
                                        "collectives", "actors", "control", "live")}

# Run before the page's own scripts: what the policy forbade is kept.
WATCH_POLICY = """
window.violations = [];
document.addEventListener('securitypolicyviolation',
  event => window.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
"""


def browser():
    options = Options()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--window-size=1280,860"):
        options.add_argument(argument)
    options.binary_location = CHROMIUM
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(service=Service(DRIVER), options=options)
    driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH_POLICY})
    driver.set_script_timeout(PATIENCE_S)
    return driver


class PageCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.driver = browser()

    @classmethod
    def tearDownClass(cls):
        cls.driver.quit()

    def setUp(self):
        self.server = None
        self.expected_log = ("willReadFrequently",)  # of reading the pictures here
        self.look(1280, 860)

    def tearDown(self):
        # Nothing may have left the origin, nor have been forbidden, nor failed.
        resources = self.script(
            "return performance.getEntriesByType('resource').map(entry => entry.name)")
        violations = self.script("return window.violations ?? []")
        self.driver.get("about:blank")
        if self.server:
            self.server.stop()
            origin = f"http://127.0.0.1:{self.server.port}/"
            self.assertEqual([r for r in resources if not r.startswith(origin)], [])
            files = {"/"} | {f"/{name}" for name in os.listdir(PAGE)}
            self.assertEqual(self.server.paths - PATHS - files, set())
        self.assertEqual(violations, [])
        log = [entry["message"] for entry in self.driver.get_log("browser")]
        self.assertEqual(
            [m for m in log if not any(word in m for word in self.expected_log)], [])

    # -- words of the tests ------------------------------------------------------

    def open(self, run=None, warm_steps=30, **settings):
        run = run or SyntheticRun()
        for _ in range(warm_steps):
            run.advance(400)
            run.frame()
        self.server = FixtureServer(run)
        for name, value in settings.items():
            setattr(self.server, name, value)
        self.server.start()
        self.driver.get(f"http://127.0.0.1:{self.server.port}/")

    def look(self, width, height, theme="dark", motion="no-preference"):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": theme},
            {"name": "prefers-reduced-motion", "value": motion}]})

    def script(self, text, *arguments):
        return self.driver.execute_script(text, *arguments)

    def wait(self, condition, what):
        end = time.monotonic() + PATIENCE_S
        while not condition():
            self.assertLess(time.monotonic(), end, f"waited in vain: {what}")
            time.sleep(0.05)

    def wait_equal(self, read, expected):
        """Waits until the page shows what is expected; says what it shows else."""
        end = time.monotonic() + PATIENCE_S
        while True:
            seen = read()
            if seen == expected:
                return
            if time.monotonic() > end:
                self.assertEqual(seen, expected)
            time.sleep(0.05)

    def text(self, selector):
        """Text of an element, with plain spaces; None if there is none that shows."""
        return self.script("""
            const element = document.querySelector(arguments[0]);
            return element && element.offsetParent !== null
              ? element.innerText.replace(/[\\u2009\\s]+/g, ' ').trim() : null;""", selector)

    def rows(self, view, caption):
        """Cells of the table with that caption, as texts."""
        return self.script("""
            const table = [...document.querySelectorAll(`#view_${arguments[0]} table`)]
              .find(table => table.caption.textContent === arguments[1]);
            return [...table.tBodies[0].rows].map(row => [...row.cells].map(
              cell => cell.innerText.replace(/[\\u2009\\s]+/g, ' ').trim()));""", view, caption)

    def head(self):
        return self.script("""
            return Object.fromEntries([...document.querySelectorAll('#head_line > div')].map(
              div => [div.children[0].textContent,
                      div.children[1].innerText.replace(/[\\u2009\\s]+/g, ' ').trim()]));""")

    def find(self, selector):
        return self.driver.find_element("css selector", selector)

    def press(self, *keys):
        self.find("body").send_keys(*keys)

    def show(self, view):
        self.find(f"#tab_{view}").click()

    def wait_live(self):
        self.wait(lambda: self.text("#connection") == "live", "live")
        self.wait(lambda: self.head()["state"] not in ("", "\u2013"), "a frame")

    def pause(self):
        self.server.change(lambda run: run.control("pause", 1))
        self.wait(lambda: self.head()["state"].endswith("paused"), "paused")
