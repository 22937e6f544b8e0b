# SPDX-License-Identifier: Apache-2.0
"""Branches, loops and tensor arrays, as programs: each with its gradients."""
import numpy as np
import paddle
from oracle import _declare, program_case

random = np.random.RandomState(23)


def values(*dims):
    return random.uniform(-1, 1, dims).astype("float32")


def program(name, inputs, body, wanted=()):
    """`body` gets the variables of `inputs` and returns the result."""
    def build(block):
        made = {n: block.create_parameter(name=n, shape=list(v.shape), dtype="float32") if n == "w" else
                _declare(block, n, v) for n, v in inputs.items()}
        for var in made.values():
            var.stop_gradient = var.name not in wanted
        result = body(**made)
        return [paddle.mean(paddle.square(result)) if wanted else result]
    program_case("control_flow", name, build, inputs, wanted, loss=True)


def number(value, dtype="int64"):
    return paddle.full([1], value, dtype)


def branch(x, w, flag):
    return paddle.static.nn.cond(flag, lambda: paddle.tanh(paddle.matmul(x, w)),
                                 lambda: paddle.matmul(x, paddle.nn.functional.sigmoid(w)))


def branches():
    x, w = values(3, 4), values(4, 2)
    for flag in (True, False):
        program(f"cond_{flag}".lower(), {"x": x, "w": w, "flag": np.array([flag])}, branch, ["x", "w"])
    program("cond_one_side", {"x": x, "w": w, "flag": np.array([True])},
            lambda x, w, flag: paddle.static.nn.cond(flag, lambda: paddle.tanh(x), lambda: paddle.scale(w[:3, :1] + x, 1.0)),
            ["x", "w"])
    program("cond_nested", {"x": x, "w": w, "flag": np.array([True]), "inner": np.array([False])},
            lambda x, w, flag, inner: paddle.static.nn.cond(
                flag, lambda: paddle.tanh(branch(x, w, inner)), lambda: paddle.matmul(x, w)), ["x", "w"])
    for index in (0, 1, 5):
        program(f"switch_case_{index}", {"x": x, "index": np.int32([index])},
                lambda x, index: paddle.static.nn.switch_case(
                    index, {0: lambda: paddle.tanh(x), 1: lambda: paddle.square(x)}, lambda: paddle.scale(x, 3.0)), ["x"])


def loop(x, w, rounds):
    def body(i, h):
        return i + 1, paddle.tanh(paddle.matmul(h, w))
    h = paddle.scale(x, 1.0)
    h.stop_gradient = False
    return paddle.static.nn.while_loop(lambda i, h: paddle.less_than(i, rounds), body, [number(0), h])[1]


def loops():
    x, w = values(3, 4), values(4, 4)
    for rounds in (1, 4):
        program(f"while_{rounds}", {"x": x, "w": w, "rounds": np.int64([rounds])}, loop, ["x", "w"])
    program("while_none", {"x": x, "w": w, "rounds": np.int64([0])}, loop)

    def nested(x, w):
        def body(i, h):
            h = paddle.static.nn.cond(paddle.less_than(i, number(2)), lambda: paddle.tanh(paddle.matmul(h, w)),
                                      lambda: paddle.matmul(h, paddle.nn.functional.sigmoid(w)))
            return i + 1, h
        h = paddle.scale(x, 1.0)
        h.stop_gradient = False
        return paddle.static.nn.while_loop(lambda i, h: paddle.less_than(i, number(4)), body, [number(0), h])[1]
    program("while_with_cond", {"x": x, "w": w}, nested, ["x", "w"])


def arrays():
    x, w = values(3, 4), values(4, 4)

    def write_and_read(x, w):
        array = paddle.tensor.array_write(paddle.matmul(x, w), number(0))
        paddle.tensor.array_write(paddle.tanh(x), number(1), array)
        first = paddle.tensor.array_read(array, number(0))
        second = paddle.tensor.array_read(array, number(1))
        return first * second + first
    program("array", {"x": x, "w": w}, write_and_read, ["x", "w"])

    def length(x):
        array = paddle.tensor.array_write(x, number(3))
        return paddle.tensor.array_length(array)
    program("array_length", {"x": x}, length)

    def recurrence(x, w):
        i, n = number(0), number(3)
        states = paddle.tensor.array_write(paddle.matmul(x, w), i)
        outs = paddle.tensor.create_array("float32")
        going = paddle.less_than(i, n)
        block = paddle.static.nn.control_flow.While(going)
        with block.block():
            h = paddle.tanh(paddle.matmul(paddle.tensor.array_read(states, i), w))
            paddle.increment(i)
            paddle.tensor.array_write(h, i, states)
            paddle.tensor.array_write(h, i - 1, outs)
            paddle.assign(paddle.less_than(i, n), going)
        # All three: Paddle's gradient fails on entries that nobody reads.
        last, middle = paddle.tensor.array_read(outs, n - 1), paddle.tensor.array_read(outs, n - 2)
        return last + middle * paddle.tensor.array_read(outs, n - 3)
    program("while_arrays", {"x": x, "w": w}, recurrence, ["x", "w"])

    def joined(x, w, axis, stack):
        array = paddle.tensor.array_write(paddle.matmul(x, w), number(0))
        paddle.tensor.array_write(paddle.tanh(x), number(1), array)
        return paddle.tensor.manipulation.tensor_array_to_tensor(array, axis, stack)[0]
    for name, axis, stack in (("stack", 0, True), ("stack_last", 2, True), ("concat", 1, False)):
        program(f"array_{name}", {"x": x, "w": w}, lambda x, w: joined(x, w, axis, stack), ["x", "w"])

    def extents(x, w):
        array = paddle.tensor.array_write(paddle.matmul(x, w), number(0))
        paddle.tensor.array_write(x[:2], number(1), array)
        return paddle.tensor.manipulation.tensor_array_to_tensor(array, 0, False)[1]
    program("array_extents", {"x": x, "w": w}, extents)
    program("array_extents_stack", {"x": x, "w": w}, lambda x, w: paddle.tensor.manipulation.tensor_array_to_tensor(
        paddle.tensor.array_write(paddle.matmul(x, w), number(0)), 0, True)[1])


def make():
    branches()
    loops()
    arrays()
