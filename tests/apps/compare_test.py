"""bench/compare with peers that compute nothing.

usage: compare_test.py TROUPE   TROUPE: the command
"""
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import types
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TROUPE = sys.argv[1]

sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "bench/peers")]
import losses  # noqa: E402
import machine  # noqa: E402
import peer  # noqa: E402


def load_script(path):
    loader = importlib.machinery.SourceFileLoader("script", str(path))
    made = importlib.util.module_from_spec(
        importlib.util.spec_from_loader("script", loader))
    loader.exec_module(made)
    return made


compare_script = load_script(ROOT / "bench/compare")
update_readme = load_script(ROOT / "tools/update-readme")

# Replaces the Python of a virtual environment. It gets a script of bench/peers
# as its first argument and answers turns in the place of that script. Its losses
# are those of the file beside it.
PEER = f"""#!{sys.executable}
import json
import pathlib
import sys
import time
LOSSES = json.loads(pathlib.Path(__file__).with_name("losses.json").read_text())
sys.path.insert(0, {str(ROOT / "bench/peers")!r})
import peer
sys.argv = sys.argv[1:]
if "--program" in sys.argv:
    at = sys.argv.index("--program")
    assert (pathlib.Path(sys.argv[at + 1]) / "main.pdmodel").stat().st_size > 0
    del sys.argv[at:at + 2]
modes = [sys.argv[sys.argv.index("--mode") + 1]] if "--mode" in sys.argv \
    else ["jit"]
arguments = peer.parse_arguments("a peer", modes)
if arguments.mode == "compile":
    sys.exit("cannot compile")
if arguments.mode == "onednn":
    sys.exit("was built without oneDNN")
start = peer.StartFile(arguments.start)
shapes = {{name: start.parameter(name)[1] for name in start.parameters()}}
assert shapes["fc_0.w_0"] == (784, 512), shapes
assert len(start.parameter("fc_0.b_0")[2]) == 4 * 512
batches = start.batches()
assert len(batches) == peer.BATCHES
for name, shape, below in peer.FEEDS["mlp"]:
    dtype, given, data = batches[-1][name]
    assert given == shape and dtype == ("<f4" if below is None else "<i8")

def step(i):
    if arguments.mode == "max_autotune":
        time.sleep(0.02)
    return LOSSES[i % len(LOSSES)]

peer.run("fake 1.0", arguments, step, 0)
"""


class Losses(unittest.TestCase):
    def agreement(self, net, reference, found):
        return losses.Agreement(losses.limits(net), reference, found)

    def test_a_difference_up_to_the_limit_is_rounding(self):
        reference = [1.0] * 5
        same = self.agreement("mlp", reference, [1 + 9e-6] * 5)
        self.assertIsNone(same.first_wrong())
        self.assertEqual(same.complaint("mlp: jax", "troupe"), "")
        self.assertAlmostEqual(same.summary("troupe")["share"], 0.9)
        other = self.agreement("mlp", reference, [1.0] * 4 + [1 + 2e-5])
        self.assertEqual(other.first_wrong(), 4)
        self.assertEqual(
            other.complaint("mlp: jax", "troupe cpu:1"),
            "mlp: jax: loss 1.00002 at step 5, but 1 with troupe cpu:1; the "
            "relative difference may be 1e-05")

    def test_nets_with_batch_norms_have_limits_of_their_own(self):
        found = self.agreement("resnet50", [8.0, 9.0, 11.0], [8.0, 9.3, 11.3])
        self.assertIsNone(found.first_wrong())
        found = self.agreement("resnet50", [8.0, 9.0, 11.0], [8.001, 9, 11])
        self.assertEqual(found.first_wrong(), 0)

    def test_what_is_no_number_disagrees(self):
        nan = float("nan")
        for reference, found in (([1.0] * 5, [1.0, nan, 1.0, 1.0, 1.0]),
                                 ([nan] * 5, [1.0] * 5)):
            self.assertIsNotNone(
                self.agreement("mlp", reference, found).first_wrong())


class Binding(unittest.TestCase):
    def test_threads_that_take_all_cores_are_bound(self):
        self.assertEqual(peer.openmp_binding(2, {5, 3}),
                         {"OMP_PROC_BIND": "true", "OMP_PLACES": "{3},{5}"})

    def test_fewer_threads_are_placed_by_the_system(self):
        self.assertEqual(peer.openmp_binding(1, {3, 5}), {})


class Machine(unittest.TestCase):
    def test_busy_time_is_that_of_all_cores_and_of_the_host(self):
        stat = "cpu  100 20 30 9000 500 1 2 47 60 0\ncpu0 1 2 3 4 5 6 7 8 9 0\n"
        self.assertAlmostEqual(machine.busy_seconds(stat) * machine.TICKS, 200)

    def test_own_work_is_no_load(self):
        before = machine.process_seconds(os.getpid())
        self.assertGreater(before, 0)
        subprocess.run([sys.executable, "-c", "sum(range(3_000_000))"])
        self.assertGreater(machine.process_seconds(os.getpid()), before)
        self.assertGreaterEqual(machine.OtherLoad().cores(), 0)

    def test_a_table_names_the_machine(self):
        one = {"cores": 2, "processor": "EPYC", "gflops": 217.6,
               "gb_per_s": 37.81, "other_cores": 0.04,
               "instruction_sets": ["fma", "sse4_2", "avx2", "avx512f"]}
        other = {**one, "gflops": 211.9, "other_cores": 0.31}
        self.assertEqual(
            machine.describe([one, other]),
            "2 cores of EPYC (AVX2, AVX-512), 212 to 218 GFLOP/s, 37.8 GB/s; "
            "other programs kept 0.0 to 0.3 cores busy meanwhile")
        self.assertIn("(held back to AVX2)",
                      machine.describe([{**one, "without_avx512": True}]))


class Footer(unittest.TestCase):
    def test_notes_follow_the_machine(self):
        made = {"title": "T", "columns": ["a"], "rows": [[1]],
                "machine": "2 cores", "command": "c"}
        self.assertEqual(update_readme.table(made).splitlines()[-2:],
                         ["", "2 cores; `c`"])
        made["notes"] = ["Compared: x.", "What differs: y."]
        self.assertEqual(update_readme.table(made).splitlines()[-5:],
                         ["2 cores; `c`", "", "Compared: x.", "",
                          "What differs: y."])


class Winograd(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.troupe = pathlib.Path(folder.name) / "troupe"

    def options(self, help_text):
        self.troupe.write_text(f"#!/bin/sh\necho '{help_text}'\n")
        self.troupe.chmod(0o755)
        return types.SimpleNamespace(
            troupe=self.troupe, threads=2, no_avx512=True, torch=None, jax=None,
            paddle=None)

    def test_nets_with_it_run_without_it_too(self):
        options = self.options("--no-winograd")
        made = dict(compare_script.commands(options, "resnet50", None))
        self.assertEqual(made["troupe cpu:2 reduce direct"],
                         [*made["troupe cpu:2 reduce"], "--no-winograd"])
        self.assertEqual(compare_script.left_out(options, "resnet50"), {})
        made = dict(compare_script.commands(options, "gpt", None))
        self.assertFalse([name for name in made if "direct" in name])

    def test_a_command_without_the_option_is_one_line(self):
        options = self.options("--threads")
        made = dict(compare_script.commands(options, "resnet50", None))
        self.assertFalse([name for name in made if "direct" in name])
        self.assertEqual(
            compare_script.left_out(options, "resnet50"),
            {"troupe direct": "troupe direct: the command has no "
             "--no-winograd"})

    def test_the_column_is_beside_the_main_one(self):
        def side(name, ms):
            return {"name": name, "ms": ms, "turns_ms": [ms, ms],
                    "grown_bytes": 1}

        row = compare_script.summary({
            "net": "resnet50", "batch": 4, "troupe": "troupe cpu:1",
            "automatic": "troupe cpu:1", "best_peer": "jax", "ratio": 2,
            "ratio_quartiles": [2, 2], "attainable_share": 1,
            "sides": [side("troupe cpu:1", 4), side("jax", 8),
                      side("troupe cpu:1 direct", 5),
                      side("troupe cpu:2 reduce direct", 6)]})
        self.assertEqual(row[-2:], [5, 1.6])
        self.assertFalse(compare_script.is_main("troupe cpu:1 direct"))


class Compare(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        answers = subprocess.run(
            [TROUPE, "bench", "train", "mlp", "--devices", "cpu:1",
             "--threads", "2", "--turns"], input="20\n", check=True, text=True,
            capture_output=True).stdout.splitlines()
        cls.losses = json.loads(answers[-1])["losses"]

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.peer = self.folder / "python"
        self.peer.write_text(PEER)
        self.let_peers_lose(self.losses)
        self.peer.chmod(self.peer.stat().st_mode | stat.S_IXUSR)

    def let_peers_lose(self, values):
        (self.folder / "losses.json").write_text(json.dumps(values))

    def compare(self, *arguments):
        return subprocess.run(
            [sys.executable, ROOT / "bench/compare", "--troupe", TROUPE,
             "--results", self.folder, "--rounds", "2", "--seconds", "0.001",
             *arguments], text=True, capture_output=True)

    def runs(self):
        return json.loads((self.folder / "nets.json").read_text())["runs"]

    def test_sides_take_turns_and_results_are_written(self):
        done = self.compare("mlp", "--torch", self.peer, "--jax", self.peer)
        self.assertEqual(done.returncode, 0, done.stderr)
        run, = self.runs()
        sides = [side for side in run["sides"]
                 if not side["name"].endswith("bf16")]
        names = [side["name"] for side in sides]
        self.assertEqual(names, ["troupe cpu:1",
                                 "troupe cpu:2 all_reduce",
                                 "troupe cpu:2 reduce", "torch eager",
                                 "torch compile_step", "torch reduce_overhead",
                                 "jax"])
        for side in sides:
            self.assertEqual(len(side["turns_ms"]), 2)
            self.assertEqual(len(side["losses"]), 20)
        self.assertEqual(sides[3]["losses"], self.losses)
        self.assertEqual(sides[3]["agreement"], {"with": "troupe cpu:1",
                                                 "steps": 5, "share": 0})
        self.assertIn("cannot compile", run["failed"]["torch compile"])
        self.assertLess(run["ratio"], 1)
        self.assertIn("troupe cpu:", done.stdout)
        table = json.loads((self.folder / "nets.json").read_text())
        self.assertRegex(table["machine"], "GFLOP/s, .* GB/s; other programs")
        self.assertRegex(table["notes"][0], "Compared: troupe .* with oneDNN "
                         ".*; fake 1.0. .* 2 threads")
        self.assertIn("Winograd", table["notes"][1])

    def test_the_slowest_modes_of_pytorch_leave_early(self):
        self.compare("mlp", "--torch", self.peer)
        run, = self.runs()
        slow, = run["slow_modes"]
        self.assertEqual(slow["name"], "torch max_autotune")
        self.assertGreater(slow["ms"], 20)
        self.assertEqual(slow["agreement"]["share"], 0)
        rows = json.loads((self.folder / "sides.json").read_text())["rows"]
        self.assertIn("torch max_autotune, fastest step",
                      [row[1] for row in rows])

    def test_results_of_other_nets_stay(self):
        self.compare("mlp", "--torch", self.peer)
        first, = self.runs()
        self.compare("word2vec")
        self.assertEqual(self.runs()[0], first)
        self.assertEqual(self.runs()[1]["net"], "word2vec")

    def test_losses_that_disagree_fail_the_run(self):
        self.compare("mlp", "--torch", self.peer)
        before = self.runs()
        values = list(self.losses)
        values[2] *= 1.001
        self.let_peers_lose(values)
        done = self.compare("mlp", "--torch", self.peer)
        self.assertEqual(done.returncode, 1)
        self.assertIn("bench/compare: losses disagree\nmlp: torch eager: loss "
                      f"{values[2]:.9g} at step 3, but {self.losses[2]:.9g} "
                      "with troupe cpu:1", done.stderr)
        self.assertEqual(self.runs(), before)

    def test_later_losses_are_shown_and_not_compared(self):
        self.let_peers_lose([*self.losses[:5], *[2.0] * 15])
        done = self.compare("mlp", "--torch", self.peer)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("... 2.000000", done.stdout)

    def test_paddle_gets_the_program_that_troupe_saved(self):
        done = self.compare("mlp", "--paddle", self.peer)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads((self.folder / "paddle.json").read_text())
        (net, mode, theirs, ours, ratio), = found["rows"]
        self.assertEqual(net, "mlp")
        self.assertEqual(mode, "all_reduce")
        self.assertLess(theirs, ours)
        self.assertLess(ratio, 1)

    def test_paddle_runs_in_each_mode(self):
        done = self.compare("mlp", "--paddle", self.peer)
        run, = self.runs()
        names = [side["name"] for side in run["sides"]]
        self.assertIn("paddle ParallelExecutor all_reduce", names)
        self.assertNotIn("paddle ParallelExecutor reduce", names)
        self.assertEqual(run["failed"], {
            "paddle ParallelExecutor reduce":
            "paddle ParallelExecutor reduce: Paddle 2.6.2 computes wrong "
            "gradients with reduce on several places",
            "paddle ParallelExecutor onednn":
            "paddle ParallelExecutor onednn: was built without oneDNN"})
        self.assertIn("was built without oneDNN", done.stdout)

    def test_nets_of_large_products_run_in_bfloat16_too(self):
        doctor = subprocess.run([TROUPE, "doctor", "--json"], check=True,
                                text=True, capture_output=True)
        if "avx512_bf16" not in doctor.stdout:
            self.skipTest("the processor does not multiply in bfloat16")
        done = self.compare("mlp")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads((self.folder / "bf16.json").read_text())
        self.assertEqual([row[:2] for row in found["rows"]],
                         [["mlp", "cpu:1"], ["mlp", "cpu:2 all_reduce"],
                          ["mlp", "cpu:2 reduce"]])
        for row in found["rows"]:
            self.assertGreater(row[4], 0)
            self.assertTrue(0 < float(row[6]) < 0.05, row)
        run, = self.runs()
        self.assertNotIn("bf16", run["troupe"])

    def test_wrong_use_is_refused(self):
        for arguments in (["alexnet"], ["mlp", "--rounds", "1"]):
            done = self.compare(*arguments)
            self.assertEqual(done.returncode, 2)
            self.assertEqual(done.stdout, "")

    def test_a_command_that_is_not_there_is_one_line(self):
        done = self.compare("mlp", "--troupe", self.folder / "none")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, "bench/compare: cannot run "
                         f"{self.folder}/none: No such file or directory\n")


if __name__ == "__main__":
    if len(os.sched_getaffinity(0)) < 2:
        sys.exit(77)  # sides with two threads need two cores
    unittest.main(argv=[sys.argv[0]])
