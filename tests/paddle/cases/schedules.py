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
