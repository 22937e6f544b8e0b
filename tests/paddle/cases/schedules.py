# SPDX-License-Identifier: Apache-2.0
"""Learning-rate schedules: as ops that count @LR_DECAY_COUNTER@, the way Fluid
wrote them, and as values that Paddle's executor sets before each step."""
import numpy as np
import paddle
from oracle import run_case

STEPS, BATCH = 9, 8
lr = paddle.optimizer.lr


def feeds():
    random = np.random.RandomState(3)
    return {"x": random.uniform(-1, 1, (STEPS, BATCH, 3)).astype("float32"),
            "y": random.uniform(-1, 1, (STEPS, BATCH, 1)).astype("float32")}


def network():
    x, y = (paddle.static.data(n, [-1, d], "float32") for n, d in (("x", 3), ("y", 1)))
    return paddle.mean(paddle.square(paddle.static.nn.fc(x, 1) - y))


def of_ops(schedule):
    loss = network()
    rate = schedule()
    optimizer = paddle.optimizer.Momentum(0.1, 0.9)
    optimizer._learning_rate_map[paddle.static.default_main_program()] = rate
    optimizer.minimize(loss)
    return [loss, rate]


def number(value, dtype="int64"):
    return paddle.full([1], value, dtype)


def rate(value):
    return number(value, "float32")


def counted(schedule):
    """A schedule of the number of the step, by branches."""
    def make_rate():
        with paddle.static.default_main_program()._lr_schedule_guard():
            return schedule(lr.autoincreased_step_counter())
    return make_rate


def make_branches():
    nn, less = paddle.static.nn, paddle.less_than
    schedules = {
        "piecewise": lambda: lr.piecewise_decay([2, 5], [0.2, 0.1, 0.02]),
        "warmup": lambda: lr.linear_lr_warmup(0.2, 3, 0.01, 0.2),
        "warmup_piecewise": lambda: lr.linear_lr_warmup(
            lr.piecewise_decay([4, 6], [0.2, 0.1, 0.02]), 3, 0.01, 0.2),
        "cond": counted(lambda step: nn.cond(
            less(step, number(4)), lambda: rate(0.2), lambda: rate(0.05))),
        "case": counted(lambda step: nn.case(
            [(less(step, number(3)), lambda: rate(0.2)), (less(step, number(6)), lambda: rate(0.1))],
            lambda: rate(0.02))),
        "switch_case": counted(lambda step: nn.switch_case(
            paddle.cast(paddle.remainder(step, number(3)), "int32"),
            {0: lambda: rate(0.2), 1: lambda: rate(0.1)}, lambda: rate(0.02)))}
    for name, schedule in schedules.items():
        run_case("schedules", name, lambda: of_ops(schedule), feeds())


def make():
    schedules = {
        "noam": lambda: lr.noam_decay(16, 4),
        "exponential": lambda: lr.exponential_decay(0.1, 3, 0.5),
        "exponential_stairs": lambda: lr.exponential_decay(0.1, 3, 0.5, True),
        "natural_exp": lambda: lr.natural_exp_decay(0.1, 3, 0.5),
        "inverse_time": lambda: lr.inverse_time_decay(0.1, 3, 0.5, True),
        "polynomial": lambda: lr.polynomial_decay(0.1, 6, 0.01, 2.0),
        "cosine": lambda: lr.cosine_decay(0.1, 2, 4)}
    for name, schedule in schedules.items():
        run_case("schedules", name, lambda: of_ops(schedule), feeds())

    def fed():
        loss = network()
        paddle.optimizer.Momentum(0.1, 0.9).minimize(loss)
        return [loss]
    rates = np.linspace(0.3, 0.01, STEPS).astype("float32").reshape(-1, 1)
    run_case("schedules", "fed", fed, {**feeds(), "learning_rate_0": rates})
    make_branches()
