#!/usr/bin/env python3
"""Paddle Fluid's ParallelExecutor on the programs of Troupe's benchmark nets.
Needs a virtual environment with `pip install paddlepaddle==2.6.2 setuptools
'protobuf<=3.20.3'`, the last release that has it.

usage: paddle_executor.py NET --program FOLDER [--threads T] [--start FILE]
                          [--mode MODE]

FOLDER is what `troupe train NET --synthetic --steps 1 --save FOLDER` writes.
Modes:
all_reduce, reduce: one CPU place per thread, each with one library thread. A
  batch is split among the places, which merge their gradients by that
  strategy. Batch norms use the statistics of their own place.
onednn: one place, whose ops run on T threads of oneDNN. With two places, Paddle
  2.6.2 merges filter gradients in oneDNN's layouts wrongly.
"""
import argparse
import json
import os
import pathlib
import sys

import peer

MODES = ["all_reduce", "reduce", "onednn"]
# Fluid's default number of threads per place.
THREADS_PER_PLACE = 2
# Ops that run oneDNN's kernels in the mode onednn, with their gradients. Those
# of pooling, `sum` and matmul_v2_grad are left out: they fail, or train to other
# losses.
ONEDNN_OPS = {"batch_norm", "conv2d", "elementwise_add", "gelu", "layer_norm",
              "mul", "relu", "softmax"}
ONEDNN_OPS |= {op + "_grad" for op in ONEDNN_OPS} | {"matmul_v2"}


def program_folder():
    """Takes --program off the command line. The other options are those of all
    peers."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--program", required=True, type=pathlib.Path)
    found, sys.argv[1:] = parser.parse_known_args()
    return found.program


def cpu_place(core):
    place = core.Place()
    place.set_place(core.CPUPlace())
    return place


class ParallelExecutor:
    """Does what Fluid's Python class did, with the parts that the library still
    has."""

    def __init__(self, paddle, numpy, program, loss, places, mode):
        core = paddle.base.core
        made = core.ParallelExecutor
        execution, build = made.ExecutionStrategy(), made.BuildStrategy()
        execution._use_device = core.DeviceType.CPU
        execution.num_threads = THREADS_PER_PLACE * places
        if mode == "onednn":
            execution.num_threads = 1  # each op runs on all library threads
            build.fuse_all_reduce_ops = False  # needs plain layouts
        execution.num_iteration_per_drop_scope = 100
        if mode == "reduce":
            build.reduce_strategy = made.BuildStrategy.ReduceStrategy.Reduce
        build.num_trainers, build.trainer_id = 1, 0
        persistable = [v.name for v in program.list_vars() if v.persistable]
        # The executor keeps references to all of these.
        self.kept = (core.Graph(program.desc), execution, build, persistable,
                     [cpu_place(core) for _ in range(places)])
        self.core, self.numpy, self.loss = core, numpy, loss
        self.executor = made(self.kept[4], persistable, loss,
                             paddle.static.global_scope(), [], execution,
                             build, self.kept[0])

    def step(self, feeds):
        """The mean of the places' losses."""
        tensors = {}
        for name, array in feeds.items():
            tensors[name] = self.core.LoDTensor()
            tensors[name].set(array, self.core.CPUPlace())
        self.executor.feed_and_split_tensor_into_local_scopes(tensors)
        fetched = self.executor.run([self.loss], True)._move_to_list()
        return float(self.numpy.mean([self.numpy.array(loss)
                                      for loss in fetched]))


def to_numpy(numpy, array):
    dtype, shape, data = array
    return numpy.frombuffer(bytes(data), dtype).reshape(shape)


def random_batches(numpy, net):
    draw = numpy.random.RandomState(0)
    return [{name: draw.randn(*shape).astype("float32") if below is None
             else draw.randint(0, below, shape).astype("int64")
             for name, shape, below in peer.FEEDS[net]}
            for _ in range(peer.BATCHES)]


def batches_of(numpy, arguments, start):
    if start is None:
        return random_batches(numpy, arguments.net)
    return [{name: to_numpy(numpy, array) for name, array in batch.items()}
            for batch in start.batches()]


def set_parameters(paddle, numpy, start):
    scope, place = paddle.static.global_scope(), paddle.CPUPlace()
    for name in start.parameters():
        scope.find_var(name).get_tensor().set(
            to_numpy(numpy, start.parameter(name)), place)


def choose_onednn(program):
    for op in program.global_block().ops:
        if op.type in ONEDNN_OPS:
            op._set_attr("use_mkldnn", True)


def make_step(paddle, numpy, arguments, folder):
    read = paddle.static.Program.parse_from_string
    startup = read((folder / "startup.pdmodel").read_bytes())
    program = read((folder / "main.pdmodel").read_bytes())
    loss = json.loads((folder / "program.json").read_text())["loss_var"]
    paddle.static.Executor(paddle.CPUPlace()).run(startup)
    start = peer.StartFile(arguments.start) if arguments.start else None
    if start:
        set_parameters(paddle, numpy, start)
    batches = batches_of(numpy, arguments, start)
    if arguments.mode == "onednn":
        choose_onednn(program)
    executor = ParallelExecutor(paddle, numpy, program, loss,
                                places_of(arguments), arguments.mode)
    return lambda i: executor.step(batches[i % len(batches)])


def places_of(arguments):
    return 1 if arguments.mode == "onednn" else arguments.threads


def main():
    folder = program_folder()
    arguments = peer.parse_arguments(__doc__, MODES)
    library_threads = str(arguments.threads // places_of(arguments))
    # The libraries read these when they are loaded.
    os.environ.update(OMP_NUM_THREADS=library_threads,
                      MKL_NUM_THREADS=library_threads,
                      CPU_NUM=str(places_of(arguments)))
    import numpy
    import paddle
    if arguments.mode == "onednn" \
            and not paddle.base.core.is_compiled_with_mkldnn():
        sys.exit(f"paddle {paddle.__version__} was built without oneDNN")
    paddle.enable_static()
    memory_at_start = peer.process_bytes("VmRSS")
    try:
        step = make_step(paddle, numpy, arguments, folder)
    except OSError as e:
        sys.exit(f"cannot read {e.filename}: {e.strerror}")
    peer.run(f"paddle {paddle.__version__} {arguments.mode}", arguments, step,
             memory_at_start)


if __name__ == "__main__":
    main()
