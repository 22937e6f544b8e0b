#!/usr/bin/env python3
# Opens the page of the command in Chromium, of runs and of files: what it shows are
# the numbers of the recorder, as a script and `troupe trace` read them; what the
# watchdog says on stderr stands on the page as well; it finds the next job.
#
# usage: command_test.py TROUPE [-v] [NAME ...]
#   skipped (77) without selenium or Chromium
import collections
import http.client
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.dont_write_bytecode = True  # the source tree stays as it is
from page_case import PageCase, PATIENCE_S

TROUPE = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else None
WITHIN_S = 2  # from a line on stderr until the page has it
TRAIN = ("train", "lenet", "--synthetic", "--batch", "16", "--devices", "cpu:2")
ENDLESS = ("--steps", "100000000")

# States of all handles, counted, of the newest frame that the page has got.
STATES = """return [...document.querySelectorAll('#view_graph .legend .number')].map(
  one => Number(one.textContent))"""

# Of a WebSocket of its own: the head of the next frame, and its array of states.
FRAME = """
const done = arguments[0];
const socket = new WebSocket(`ws://${location.host}/api/v1/live`, 'troupe.v1');
socket.binaryType = 'arraybuffer';
socket.onmessage = ({data}) => {
  socket.close();
  const size = new DataView(data).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, size)));
  const place = head.arrays.findIndex(one => one.name === 'state');
  const states = new Uint8Array(data, 4 + size, head.arrays[place].count);
  done([head, place, [...states]]);
};
"""


class Run:
    """The command, with its lines and when they came."""

    def __init__(self, folder, words):
        self.lines = []
        self.process = subprocess.Popen(
            [TROUPE, *map(str, words)], cwd=folder, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.readers = [threading.Thread(target=self._read, args=(stream,))
                        for stream in (self.process.stdout, self.process.stderr)]
        for reader in self.readers:
            reader.start()

    def _read(self, stream):
        for line in stream:
            self.lines.append((time.monotonic(), line.rstrip("\n")))

    def line(self, pattern):
        """The match of the first line with this pattern, and when it came."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            for when, line in self.lines:
                if found := re.search(pattern, line):
                    return found, when
            time.sleep(0.01)
        raise AssertionError(f"no line with {pattern} in {self.lines[:8]} ...")

    def process_of_rank(self, rank):
        """The rank's training, which the command has begun."""
        wanted = f"TROUPE_RANK={rank}".encode()
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                environment = (folder / "environ").read_bytes().split(b"\0")
            except OSError:
                continue  # it has ended, or is another user's
            if parent == self.process.pid and wanted in environment:
                return int(folder.name)
        raise AssertionError(f"no rank {rank}")

    def end(self, number=signal.SIGINT):
        if self.process.poll() is None:
            self.process.send_signal(number)
        self.process.wait()
        for reader in self.readers:
            reader.join()
        for stream in (self.process.stdout, self.process.stderr):
            stream.close()


class CommandTest(PageCase):
    def setUp(self):
        super().setUp()
        self.expected_log += ("503",)  # until the run is shown
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.secret_file = self.folder / "secret"

    def start(self, *words):
        run = Run(self.folder, words)
        self.addCleanup(run.end)
        return run

    def follow(self, run, which="dashboard, with controls: +"):
        link = run.line(which + r"(http://127\.0\.0\.1:(\d+)/\S+)")[0]
        self.port = int(link[2])
        self.driver.get(link[1])

    def ask(self, path):
        """What the interface for scripts answers."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        connection.request("GET", f"/api/v1/{path}", headers={
            "Authorization": f"Bearer {self.secret_file.read_text().strip()}"})
        answer = json.load(connection.getresponse())
        connection.close()
        return answer

    def printed(self, *words):
        return json.loads(subprocess.run([TROUPE, *map(str, words)], check=True,
                                         capture_output=True, text=True).stdout)

    def frame(self):
        """The newest frame of a run that stands still: its head, and its states."""
        head, place, states = self.driver.execute_async_script(FRAME)
        self.assertEqual(place, 0)
        return head, collections.Counter(states)

    def expect_banner(self, text, told_at):
        self.wait_equal(lambda: self.text("#banner"), text)
        self.assertLess(time.monotonic() - told_at, WITHIN_S)

    # -- numbers -----------------------------------------------------------------

    def test_a_run_that_is_paused_shows_what_was_recorded(self):
        run = self.start(*TRAIN, *ENDLESS, "--dashboard", "--dashboard-token",
                         self.secret_file)
        self.follow(run)
        self.wait_live()
        time.sleep(1)  # messages and slices of some steps
        self.press(" ")
        self.wait(lambda: self.head()["state"].endswith("paused"), "paused")
        time.sleep(0.3)  # the steps in flight have ended
        head, states = self.frame()
        self.wait_equal(lambda: self.head()["step"], f"{head['step']:,}")
        self.wait_equal(lambda: self.script(STATES)[:4], [states[s] for s in range(4)])
        series = self.ask("series")
        known = [loss for loss in series["loss"] if loss is not None]
        self.assertEqual(self.head()["loss"], written_loss(known[-1]))

        self.show("progress")
        self.wait_equal(lambda: [row[:2] for row in self.rows("progress", "Last steps")],
                        [[f"{step:,}", written_loss(loss)] for step, loss in
                         list(zip(series["steps"], series["loss"]))[:-13:-1]])
        self.wait_equal(
            lambda: [row[:3] for row in self.rows("progress", "Memory")],
            [[one["device"], size(one["bytes"]), size(one["peak_bytes"])]
             for one in self.ask("memory")])

        self.show("actors")
        actors = self.ask("actors")
        self.wait_equal(
            lambda: {name: number for name, number in self.rows(
                "actors", "Actors and messages") if name in ("Op actors", "Messages", "Steps")},
            {"Op actors": f"{actors['op_actors']:,}", "Messages": f"{actors['messages']:,}",
             "Steps": f"{actors['steps']:,}"})
        self.assertEqual(actors["steps"], head["steps_ended"])
        self.assertEqual(actors["messages"], head["messages"])

        self.show("collectives")
        self.wait_equal(
            lambda: sorted(row[0] for row in self.rows("collectives", "Collectives")),
            sorted(one["name"] for one in self.ask("collectives")))

        self.show("why")
        self.wait(lambda: self.text("#view_why"), "what it waits for")
        self.assertIn(self.ask("why")["text"], self.text("#view_why"))

    def test_updates_of_the_strategy_reduce_stand_among_the_collectives(self):
        run = self.start(*TRAIN, *ENDLESS, "--strategy", "reduce", "--dashboard",
                         "--dashboard-token", self.secret_file)
        self.follow(run)
        self.wait_live()
        self.show("collectives")
        self.wait(lambda: self.rows("collectives", "Collectives"), "updates")
        names = sorted(one["name"] for one in self.ask("collectives"))
        self.assertEqual(len(names), 8)
        self.wait_equal(
            lambda: sorted(row[0] for row in self.rows("collectives", "Collectives")), names)

    def test_a_file_shows_the_numbers_of_its_summary(self):
        trace = self.folder / "a.trt"
        run = self.start(*TRAIN, "--steps", "20", "--trace", trace)
        self.assertEqual(run.process.wait(), 0)
        summary = self.printed("trace", "summary", trace, "--json")
        shown = self.start("dashboard", trace, "--dashboard-token", self.secret_file)
        self.follow(shown, "^")
        self.wait(lambda: self.text("#connection") == "a file", "a file")
        self.wait(lambda: self.head()["step"] == "19", "its end")
        self.show("progress")
        self.wait_equal(lambda: [row[0] for row in self.rows("progress", "Last steps")],
                        [str(step) for step in range(19, 7, -1)])
        self.wait_equal(
            lambda: {row[0]: row[2] for row in self.rows("progress", "Memory")},
            {one["device"]: size(one["peak_bytes"]) for one in summary["memory"]})
        self.show("actors")
        self.wait_equal(
            lambda: dict(self.rows("actors", "Actors and messages"))["Messages"],
            f"{sum(summary['messages'].values()):,}")

    # -- what goes wrong ---------------------------------------------------------

    def test_a_slow_op_is_told_on_the_page_as_on_stderr(self):
        run = self.start(*TRAIN, "--steps", "6", "--watchdog", "0.5", "--slow",
                         "conv2d_0.tmp_0=1500ms", "--dashboard")
        self.follow(run)
        told, when = run.line("step .*slow op.*conv2d.*")
        self.expect_banner(told.string, when)

    def test_a_rank_that_is_stopped_is_told_on_the_page_as_on_stderr(self):
        job = self.start("launch", "--nodes", "2", "--", TROUPE, "train", "lenet",
                         "--synthetic", "--batch", "16", "--threads", "1", *ENDLESS,
                         "--watchdog", "0.5", "--dashboard")
        self.follow(job, "dashboard of rank 0, to look: +")
        self.wait_live()
        self.show("collectives")
        other = job.process_of_rank(1)
        os.kill(other, signal.SIGSTOP)
        try:
            told, when = job.line(r"0\| (step .*lost message.*)")
            self.expect_banner(told[1], when)
            self.wait(lambda: any("rank 1" in row[4] for row in self.rows(
                "collectives", "Collectives")), "who is missing")
        finally:
            os.kill(other, signal.SIGCONT)

    def test_the_page_finds_the_next_job(self):
        self.expected_log += ("ERR_CONNECTION", "WebSocket")
        words = (*TRAIN, *ENDLESS, "--dashboard-token", self.secret_file, "--dashboard")
        first = self.start(*words)
        self.follow(first, "dashboard, to look: +")
        self.wait_live()
        before = self.ask("run")["run"]
        first.end()
        self.wait(lambda: self.text("#connection") == "connection lost, trying again", "lost")
        self.start(*words, f"127.0.0.1:{self.port}")
        self.wait_live()
        self.press("6")
        after = self.ask("run")["run"]
        self.assertNotEqual(before, after)
        self.wait_equal(lambda: dict(self.rows("actors", "Run"))["Run"], after)


def written_loss(loss):
    """As the page writes it: with an exponent if it is small, a dash if not known."""
    if loss is None:
        return "\u2013"
    if 0 < loss < 1e-3:
        return re.sub("e([+-])0*", lambda sign: f"e{sign[1]}", f"{loss:.3e}")
    return f"{loss:.4f}"


def size(number):
    """As the page writes bytes."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024 or unit == "GiB":
            break
        number /= 1024
    return f"{number if unit == 'B' else format(number, '.2f' if number < 10 else '.1f')} {unit}"


if __name__ == "__main__":
    if not TROUPE:
        sys.exit("usage: command_test.py TROUPE [-v] [NAME ...]")
    unittest.main()
