# SPDX-License-Identifier: Apache-2.0
"""Training with clipped gradients, dense and row-sparse; limits low enough
that every step is clipped. The reduce mode of Paddle's ParallelExecutor cannot
run the global norm ("Y(elementwise_div_0) is not initialized")."""
import numpy as np
import paddle
from oracle import run_case

STEPS, BATCH = 6, 8


def feeds():
    random = np.random.RandomState(3)
    return {"ids": random.randint(0, 11, (STEPS, BATCH, 3)).astype("int64"),
            "y": random.uniform(-1, 1, (STEPS, BATCH, 1)).astype("float32")}


def network(sparse, optimizer):
    static = paddle.static
    ids = static.data("ids", [-1, 3], "int64")
    y = static.data("y", [-1, 1], "float32")
    words = static.nn.embedding(ids, [11, 4], is_sparse=sparse)
    hidden = static.nn.fc(words, 5, activation="tanh")
    loss = paddle.mean(paddle.square(static.nn.fc(hidden, 1) - y))
    optimizer.minimize(loss)
    return [loss]


def make():
    nn, optim = paddle.nn, paddle.optimizer
    clips = {"global_norm": lambda: nn.ClipGradByGlobalNorm(0.05),
             "norm": lambda: nn.ClipGradByNorm(0.05),
             "value": lambda: nn.ClipGradByValue(0.02)}
    for clip, make_clip in clips.items():
        for sparse in (False, True):
            if sparse and clip == "value":
                continue  # Paddle runs the kernel for dense gradients and dies
            name = clip + "_rows" * sparse
            run_case("clipping", name, lambda: network(
                sparse, optim.SGD(0.5, grad_clip=make_clip())), feeds())
    # State of the update is kept where it runs.
    run_case("clipping", "global_norm_momentum", lambda: network(False, optim.Momentum(
        0.5, 0.9, weight_decay=0.01, grad_clip=clips["global_norm"]())), feeds())
    run_case("clipping", "global_norm_adam_rows", lambda: network(True, optim.Adam(
        0.05, lazy_mode=True, grad_clip=clips["global_norm"]())), feeds(), tolerance=1e-4)
