"""bench/run_all with programs that compute nothing."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

# Stands for both programs. Answers with figures that a test can recognize.
PROGRAM = f"""#!{sys.executable}
import json, sys
words = sys.argv[1:]
def option(name, default=None):
    return words[words.index(name) + 1] if name in words else default
def answer(**values):
    print(json.dumps(values))
if "doctor" in words:
    answer(version="1.2", libraries={{"oneDNN": "2.6", "CAF": "0.1"}})
elif "tasks" in words:
    width, steps = int(option("--width")), int(option("--steps"))
    for number, engine in enumerate(option("--engine").split(",")):
        answer(pattern=option("--pattern"), width=width, steps=steps,
               threads=int(option("--threads")), tasks=width * steps,
               engine=engine, ns_per_task=10.0 * number, bytes_per_task=400,
               **({{"hops_per_task": 0.5 if width == 64 else 0.01}}
                  if "--check" in words else {{}}))
elif "schedule" in words:
    answer(devices=option("--devices"), threads=int(option("--threads")),
           op_handles=3, messages_per_step=4, ms=1, ns_per_op=2)
elif "train" in words:
    answer(machine=dict(cores=2, processor="EPYC", instruction_sets=["avx2"],
                        gflops=200, gb_per_s=30))
else:
    answer(net=option("--net"), batch=1, ms=1, vs_ms=1, ratio=1, ratio_low=1,
           ratio_high=1)
"""


class RunAll(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for program in ("troupe", "train_bench"):
                (folder / program).write_text(PROGRAM)
                (folder / program).chmod(0o755)
            subprocess.run([sys.executable, ROOT / "bench/run_all", folder,
                            "--results", folder / "results"], check=True)
            cls.tables = {path.stem: json.loads(path.read_text())
                          for path in (folder / "results").iterdir()}

    def test_tasks_have_onetbbs_lightweight_nodes(self):
        tasks = self.tables["tasks"]
        self.assertEqual(tasks["columns"][3:7], ["troupe", "onetbb",
                                                 "onetbb_light", "ready_queue"])
        self.assertEqual(tasks["rows"][0][3:7], [0, 10, 20, 30])

    def test_graphs_beyond_the_caches_are_measured(self):
        tasks = self.tables["tasks"]
        large = [row[0] for row in tasks["rows"] if row[1] == "64 x 1,000"]
        self.assertEqual(large, ["stencil_1d"] * 2 + ["fft"] * 2 + ["tree"] * 2
                         + ["random_nearest"] * 2)
        self.assertIn("takes 26 MB in Troupe", tasks["notes"][1])

    def test_a_row_tells_how_many_workers_ran_tasks(self):
        workers = {(row[1], row[2]): row[7:]
                   for row in self.tables["tasks"]["rows"]}
        self.assertEqual(workers["16 x 64", 2], [1, 0.01])
        self.assertEqual(workers["64 x 1,000", 2], [2, 0.5])
        self.assertEqual(workers["64 x 1,000", 1][0], 1)

    def test_footers_name_machine_and_versions(self):
        for table in self.tables.values():
            self.assertRegex(table["machine"], r"2 cores of EPYC \(AVX2\), 200 "
                             "GFLOP/s, 30.0 GB/s; other programs kept")
        self.assertIn("troupe 1.2 with oneDNN 2.6",
                      self.tables["tasks"]["notes"][0])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
