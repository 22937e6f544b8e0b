#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real Paddle reads what Troupe writes.

- A net that Troupe builds is saved, and trained on by Troupe and by Paddle's
  executor from the same parameters on the same batches: the losses are equal.
- A program that Paddle wrote comes back the same after Troupe has read and
  written it.

usage: interop_test.py TROUPE FIXTURES

Exits with 77 where `import paddle` does not work. Set TROUPE_PADDLE_PYTHON to a
Python that has paddlepaddle 2.6.2 (with protobuf <= 3.20.3 and setuptools).
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SKIPPED = 77
STEPS = 4
LIMIT = 2e-5  # relative, of losses

# net: batch; without digits, whose dropout draws other numbers in Paddle
NETS = {"mlp": 8, "lenet": 4, "resnet8": 4, "word2vec": 8, "widedeep": 4,
        "gpt": 1}


def use_other_python():
    wanted = os.environ.get("TROUPE_PADDLE_PYTHON")
    if wanted and os.environ.get("TROUPE_PADDLE_PYTHON_USED") != wanted:
        os.environ["TROUPE_PADDLE_PYTHON_USED"] = wanted
        os.execv(wanted, [wanted, *sys.argv])


use_other_python()
os.environ.setdefault("OMP_NUM_THREADS", "1")
try:
    import numpy as np
    import paddle
    from paddle.base.proto import framework_pb2
except Exception as reason:  # an old protobuf raises other errors than import
    print(f"skipped: no Paddle in {sys.executable} ({reason}); set "
          "TROUPE_PADDLE_PYTHON to a Python that has paddlepaddle 2.6.2")
    sys.exit(SKIPPED)


def run(*arguments):
    done = subprocess.run(arguments, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def random_feeds(feeds, batch):
    """Batches for `inspect`'s list of feeds, with a leading axis of steps."""
    numbers = np.random.RandomState(5)
    arrays = {}
    for feed in feeds:
        shape = [STEPS, batch, *feed["shape"][1:]]
        if feed["dtype"].startswith("float"):
            arrays[feed["name"]] = numbers.randn(*shape).astype(feed["dtype"])
        else:
            arrays[feed["name"]] = numbers.randint(
                0, feed["below"] or 2, shape).astype(feed["dtype"])
    return arrays


def read_program(path):
    return paddle.static.Program.parse_from_string(path.read_bytes())


def load_parameters(program, path):
    """Fills the global scope from a combined file."""
    names = sorted(v.name for v in program.list_vars() if v.persistable)
    loader = paddle.static.Program()
    block = loader.global_block()
    for name in names:
        var = program.global_block().var(name)
        block.create_var(name=name, shape=var.shape, dtype=var.dtype,
                         persistable=True)
    block.append_op(type="load_combine", inputs={},
                    outputs={"Out": names},
                    attrs={"file_path": str(path)})
    paddle.static.Executor(paddle.CPUPlace()).run(loader)


def losses_of_paddle(folder, loss, arrays):
    program = read_program(folder / "main.pdmodel")
    executor = paddle.static.Executor(paddle.CPUPlace())
    losses = []
    with paddle.static.scope_guard(paddle.static.Scope()):
        load_parameters(program, folder / "params.pdiparams")
        for step in range(STEPS):
            feed = {name: array[step] for name, array in arrays.items()}
            value = executor.run(program, feed=feed, fetch_list=[loss])[0]
            losses.append(float(np.mean(value)))
    return losses


def losses_of_troupe(troupe, folder, work):
    metrics = work / "metrics.jsonl"
    run(troupe, "train", str(folder), "--params",
        str(folder / "params.pdiparams"), "--feeds", str(work / "feeds.npz"),
        "--metrics", str(metrics))
    return [json.loads(line)["loss"] for line in metrics.read_text().split("\n")
            if line]


def check_net(troupe, net, batch, work):
    saved = work / "saved"
    run(troupe, "train", net, "--synthetic", "--batch", str(batch), "--steps",
        "1", "--save", str(saved))
    described = json.loads(run(troupe, "inspect", str(saved), "--json"))
    arrays = random_feeds(described["feeds"], batch)
    np.savez(work / "feeds.npz", **arrays)
    ours = losses_of_troupe(troupe, saved, work)
    theirs = losses_of_paddle(saved, described["loss"], arrays)
    worst = max(abs(a - b) / abs(b) for a, b in zip(ours, theirs))
    print(f"{net}: losses of Paddle {theirs}, relative difference {worst:.1e}")
    return len(ours) == len(theirs) == STEPS and worst <= LIMIT


def normalized(path):
    """The message with variables and attributes in the order of names; of
    attributes that occur twice, the last."""
    program = framework_pb2.ProgramDesc()
    program.ParseFromString(path.read_bytes())
    for block in program.blocks:
        block.vars.sort(key=lambda var: var.name)
        for op in block.ops:
            attributes = sorted({a.name: a for a in op.attrs}.values(),
                                key=lambda a: a.name)
            kept = [framework_pb2.OpDesc.Attr.FromString(a.SerializeToString())
                    for a in attributes]
            del op.attrs[:]
            op.attrs.extend(kept)
    return program


def check_round_trip(troupe, fixture, work):
    saved = work / "saved"
    run(troupe, "train", str(fixture), "--params",
        str(fixture / "params0.pdiparams"), "--feeds",
        str(fixture / "feeds.npz"), "--steps", "1", "--save", str(saved))
    same = all(normalized(fixture / name) == normalized(saved / name)
               for name in ("main.pdmodel", "startup.pdmodel", "test.pdmodel"))
    print(f"{fixture.name}: {'the same' if same else 'not the same'} after "
          "reading and writing")
    return same


def attempt(check, *arguments):
    with tempfile.TemporaryDirectory() as work:
        try:
            return check(*arguments, pathlib.Path(work))
        except Exception as failure:
            print(f"{check.__name__} {arguments[1]}: {failure}")
            return False


def main():
    troupe, fixtures = sys.argv[1], pathlib.Path(sys.argv[2])
    paddle.enable_static()
    good = [attempt(check_net, troupe, net, batch)
            for net, batch in NETS.items()]
    good += [attempt(check_round_trip, troupe, fixture)
             for fixture in sorted(fixtures.iterdir()) if fixture.is_dir()]
    sys.exit(0 if all(good) else 1)


main()
