"""bench/compare_text with a peer that computes nothing.

usage: compare_text_test.py TROUPE   TROUPE: the command
"""
import itertools
import json
import math
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TROUPE = sys.argv[1]

sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "bench/peers"))
import sample_order  # noqa: E402

# Replaces the Python of a virtual environment. It gets torch_text.py and its
# arguments. Its loss shows that it got the texts and initial values.
PEER = f"""#!{sys.executable}
import json, pathlib, sys
script, train, held_out, *rest = sys.argv[1:]
options = dict(zip(rest[::2], rest[1::2]))
assert script.endswith("torch_text.py")
assert options["--steps"] == "2" and options["--threads"] == "1"
assert pathlib.Path(train).read_text() == "a" * 1800 + "b" * 1800
assert pathlib.Path(held_out).read_text() == "a" * 200 + "b" * 200
assert pathlib.Path(options["--start"]).stat().st_size > 1e6
print(json.dumps(dict(loss={math.log(2)} * int(options["--seed"]), ms=3,
                      peer="fake 1.0")))
"""


class SampleOrder(unittest.TestCase):
    def test_the_generator_is_the_one_of_the_standard(self):
        # [rand.predef]: the 10000th number of the default seed.
        numbers = sample_order.mersenne_twister_64(5489)
        self.assertEqual(next(itertools.islice(numbers, 9999, None)),
                         9981545732273789042)

    def test_samples_come_as_in_batch_source_test(self):
        self.assertEqual(sample_order.sample_order(10, 7, 0),
                         [4, 5, 6, 2, 0, 7, 9, 1, 8, 3])
        self.assertEqual(sample_order.sample_order(10, 7, 1),
                         [3, 0, 1, 9, 4, 7, 8, 2, 6, 5])


class CompareText(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.texts = self.folder / "texts"
        self.texts.mkdir()
        for letter in "ab":
            (self.texts / letter).write_text(letter * 2000)
        (self.texts / "link").symlink_to("a")
        self.peer = self.folder / "python"
        self.peer.write_text(PEER)
        self.peer.chmod(self.peer.stat().st_mode | stat.S_IXUSR)

    def compare(self, *arguments):
        return subprocess.run(
            [sys.executable, ROOT / "bench/compare_text", "--troupe", TROUPE,
             "--torch", self.peer, "--results", self.folder, "--texts",
             self.texts, "--steps", "2", "--threads", "1", *arguments],
            text=True, capture_output=True)

    def test_both_sides_learn_from_the_same_text_and_results_are_written(self):
        done = self.compare("--seeds", "3")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads((self.folder / "text.json").read_text())
        ours, peers = found["rows"]
        self.assertEqual(peers, ["torch compile", 2.0, "1.0000 to 3.0000", 3])
        self.assertEqual(ours[0], "troupe")
        self.assertLess(ours[1], 8)  # bits of a byte
        self.assertGreater(ours[3], 0)
        self.assertRegex(found["machine"], "GFLOP/s, .* GB/s; other programs")
        self.assertRegex(found["notes"][0], "troupe .* with oneDNN .*; fake 1.0; "
                         "float32, 1 threads")

    def test_what_is_not_there_is_one_line(self):
        for option in ("--texts", "--torch", "--troupe"):
            done = self.compare(option, self.folder / "none")
            self.assertEqual(done.returncode, 1)
            self.assertEqual(done.stdout, "")
            *_, last = done.stderr.splitlines()
            self.assertIn(f"{self.folder}/none: No such file", last)
            self.assertNotIn("Traceback", done.stderr)

    def test_wrong_use_is_refused(self):
        self.assertEqual(self.compare("--seeds", "0").returncode, 2)
        self.assertEqual(self.compare("--steps", "0").returncode, 2)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
