# SPDX-License-Identifier: Apache-2.0
"""Makes the programs with sequences, recurrent nets and control flow that
`sequence_programs_test.cpp` trains: tests/data/paddle_sequences/NAME with

  main.pdmodel         the training program
  params0.pdiparams    its persistable variables before the first step
  feeds.npz            feeds of all steps (docs/formats.md)
  losses.npz           `loss` [steps], what Paddle's executor gave

Everything that a device computes depends on its own samples alone, so that two
devices train as one does. Run it as make_cases.py is run.
"""
import os
import sys

import numpy as np
import paddle
from paddle.base import core

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from oracle import DATA, write_archive

FOLDER = os.path.join(os.path.dirname(DATA), "paddle_sequences")
STEPS, BATCH, CLASSES, WORDS = 6, 6, 3, 11
random = np.random.RandomState(5)
static, nn = paddle.static, paddle.static.nn


class Sequences:
    """A feed of a batch of sequences: `rows` are all rows, behind each other."""

    def __init__(self, rows, lengths):
        self.rows, self.lengths = rows, lengths


def classify(features, label):
    logits = nn.fc(features, CLASSES)
    return paddle.mean(paddle.nn.functional.softmax_with_cross_entropy(logits, label))


def labels():
    return random.randint(0, CLASSES, (BATCH, 1)).astype("int64")


def numbers(*dims):
    return random.uniform(-1, 1, dims).astype("float32")


# -- programs: each declares its feeds, gives the loss and a step's feeds ------

def lstm():
    """A bidirectional LSTM of two layers over padded sequences."""
    x = static.data("x", [-1, 5, 4])
    lengths = static.data("lengths", [-1], "int64")
    label = static.data("label", [-1, 1], "int64")
    net = paddle.nn.LSTM(4, 6, num_layers=2, direction="bidirect")
    out, (h, _) = net(x, sequence_length=lengths)
    features = paddle.concat([paddle.mean(out, axis=1), h[0], h[3]], axis=1)
    loss = classify(features, label)
    return loss, lambda: {"x": numbers(BATCH, 5, 4), "label": labels(),
                          "lengths": random.randint(1, 6, (BATCH,)).astype("int64")}


def gru():
    """A GRU over embedded words, the last state decides."""
    words = static.data("words", [-1, 4], "int64")
    label = static.data("label", [-1, 1], "int64")
    _, h = paddle.nn.GRU(5, 6)(nn.embedding(words, [WORDS, 5]))
    loss = classify(h[0], label)
    return loss, lambda: {"words": random.randint(0, WORDS, (BATCH, 4)).astype("int64"), "label": labels()}


def bag():
    """Bags of words of different length, their embeddings pooled."""
    words = static.data("words", [-1, 1], "int64", lod_level=1)
    label = static.data("label", [-1, 1], "int64")
    embedded = paddle.reshape(nn.embedding(words, [WORDS, 5], is_sparse=True), [-1, 5])
    weighed = nn.sequence_softmax(nn.fc(embedded, 1))
    pooled = [nn.sequence_pool(embedded * weighed, "sum"), nn.sequence_pool(embedded, "max"),
              nn.sequence_last_step(paddle.tanh(embedded))]
    loss = classify(paddle.concat(pooled, axis=1), label)

    def feeds():
        lengths = random.randint(1, 5, BATCH)
        rows = random.randint(0, WORDS, (lengths.sum(), 1)).astype("int64")
        return {"words": Sequences(rows, lengths), "label": labels()}
    return loss, feeds


def cond():
    """Every other step takes the other branch, with parameters of its own."""
    x = static.data("x", [-1, 4])
    label = static.data("label", [-1, 1], "int64")
    step = static.create_global_var([1], 0, "int64", persistable=True, name="step")
    h = paddle.tanh(nn.fc(x, 6))
    odd = paddle.equal(paddle.remainder(step, paddle.full([1], 2, "int64")), paddle.full([1], 1, "int64"))
    h = nn.cond(odd, lambda: nn.fc(h, 5), lambda: paddle.tanh(nn.fc(paddle.scale(h, 2.0), 5)))
    loss = classify(h, label)
    paddle.assign(step + 1, step)
    return loss, lambda: {"x": numbers(BATCH, 4), "label": labels()}


def loop():
    """The same layer three times, in a loop."""
    x = static.data("x", [-1, 4])
    label = static.data("label", [-1, 1], "int64")
    w = static.create_parameter([6, 6], "float32", name="loop_w")
    rounds = paddle.full([1], 3, "int64")

    def body(i, h):
        return i + 1, paddle.tanh(paddle.matmul(h, w) + h)
    _, h = nn.while_loop(lambda i, h: paddle.less_than(i, rounds), body,
                         [paddle.full([1], 0, "int64"), paddle.tanh(nn.fc(x, 6))])
    loss = classify(h, label)
    return loss, lambda: {"x": numbers(BATCH, 4), "label": labels()}


def switched_rate():
    """A learning rate that old-style branches switch."""
    x = static.data("x", [-1, 4])
    label = static.data("label", [-1, 1], "int64")
    loss = classify(paddle.tanh(nn.fc(x, 6)), label)
    step = static.create_global_var([1], 0, "int64", persistable=True, name="step")
    rate = static.create_global_var([1], 0.0, "float32", persistable=True, name="rate")
    with static.default_main_program()._lr_schedule_guard():
        two, four = paddle.full([1], 2, "int64"), paddle.full([1], 4, "int64")
        with paddle.static.nn.control_flow.Switch() as switch:
            for bound, value in ((two, 0.5), (four, 0.2)):
                with switch.case(paddle.less_than(step, bound)):
                    paddle.assign(paddle.full([1], value), rate)
            with switch.default():
                paddle.assign(paddle.full([1], 0.05), rate)
        paddle.assign(step + 1, step)
    return loss, lambda: {"x": numbers(BATCH, 4), "label": labels()}, rate


PROGRAMS = {"lstm": lstm, "gru": gru, "bag": bag, "cond": cond, "loop": loop, "switched_rate": switched_rate}


# -- writing --------------------------------------------------------------------

def stacked(steps):
    """Feeds of all steps as the arrays of feeds.npz."""
    arrays = {}
    for name, first in steps[0].items():
        values = [step[name] for step in steps]
        if isinstance(first, Sequences):
            arrays[name] = np.concatenate([v.rows for v in values])
            arrays[name + ".lod0"] = np.stack(
                [np.concatenate([[0], np.cumsum(v.lengths)]) for v in values]).astype("int64")
        else:
            arrays[name] = np.stack(values)
    return arrays


def fed(value):
    if not isinstance(value, Sequences):
        return value
    return paddle.base.create_lod_tensor(value.rows, [list(value.lengths)], paddle.CPUPlace())


def make(name):
    main, startup = static.Program(), static.Program()
    startup.random_seed = main.random_seed = 7
    with paddle.utils.unique_name.guard(), static.program_guard(main, startup):
        loss, feeds, *rate = PROGRAMS[name]()
        optimizer = paddle.optimizer.SGD(0.3)
        if rate:
            optimizer._learning_rate_map[main] = rate[0]
        optimizer.minimize(loss)
    for block in main.blocks:
        for op in block.ops:
            op.desc.remove_attr("op_callstack")
    folder = os.path.join(FOLDER, name)
    os.makedirs(folder, exist_ok=True)
    steps = [feeds() for _ in range(STEPS)]
    exe = static.Executor(paddle.CPUPlace())
    with static.scope_guard(core.Scope()):
        exe.run(startup)
        with open(os.path.join(folder, "main.pdmodel"), "wb") as out:
            out.write(main.desc.serialize_to_string())
        persistables = [v for v in main.list_vars() if static.io.is_persistable(v)]
        static.save_vars(exe, folder, main, vars=sorted(persistables, key=lambda v: v.name),
                         filename="params0.pdiparams")
        losses = [exe.run(main, feed={n: fed(v) for n, v in step.items()}, fetch_list=[loss])[0] for step in steps]
    write_archive(os.path.join(folder, "feeds.npz"), stacked(steps))
    write_archive(os.path.join(folder, "losses.npz"), {"loss": np.array(losses, "float64").reshape(-1)})
    print(name, len(main.global_block().ops), "ops,", len(main.blocks), "blocks,", np.reshape(losses, -1))


if __name__ == "__main__":
    paddle.enable_static()
    for each in sys.argv[1:] or PROGRAMS:
        make(each)
