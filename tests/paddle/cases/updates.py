# SPDX-License-Identifier: Apache-2.0
"""Updates that do not happen in every step: gradients added up over steps, by
optimizer ops in a branch, and mixed precision's dynamic loss scaling, with all
ops on its black list, so that it runs in float32."""
import numpy as np
import paddle
from cases.schedules import feeds, network
from oracle import run_case

optimizer, amp = paddle.optimizer, paddle.static.amp
OPS = {"mul", "matmul_v2", "elementwise_add", "elementwise_sub", "square", "reduce_mean"}


def merged(make_optimizer, **options):
    def build():
        loss = network()
        paddle.incubate.optimizer.GradientMergeOptimizer(make_optimizer(), k_steps=3, **options).minimize(loss)
        return [loss]
    return build


def scaled(make_optimizer):
    def build():
        loss = network()
        mixed = amp.decorate(make_optimizer(), amp.AutoMixedPrecisionLists(custom_black_list=OPS),
                             init_loss_scaling=1024.0, incr_every_n_steps=3)
        mixed.minimize(loss)
        return [loss, mixed.get_loss_scaling()]
    return build


def averaged():
    loss = network()
    optimizer.SGD(0.1).minimize(loss)
    paddle.static.ExponentialMovingAverage(0.9).update()
    return [loss]


def looking_ahead():
    loss = network()
    paddle.incubate.optimizer.LookAhead(optimizer.SGD(0.1), alpha=0.5, k=3).minimize(loss)
    return [loss]


def recomputed():
    x, y = (paddle.static.data(n, [-1, d], "float32") for n, d in (("x", 3), ("y", 1)))
    kept = paddle.tanh(paddle.static.nn.fc(x, 4))
    made_again = paddle.tanh(paddle.static.nn.fc(kept, 4))
    loss = paddle.mean(paddle.square(paddle.static.nn.fc(made_again, 1) - y))
    recompute = paddle.incubate.optimizer.RecomputeOptimizer(optimizer.Adam(0.1))
    recompute._set_checkpoints([kept])
    recompute.minimize(loss)
    return [loss]


def overwritten():
    """A net that sets parts of a layer's output."""
    x, y = (paddle.static.data(n, [-1, d], "float32") for n, d in (("x", 3), ("y", 1)))
    h, everywhere = paddle.tanh(paddle.static.nn.fc(x, 4)), slice(None)
    h = paddle.static.setitem(h, (everywhere, slice(1, 3)), 0.5)
    h = paddle.static.setitem(h, (everywhere, slice(3, 4)), paddle.static.nn.fc(x, 1))
    loss = paddle.mean(paddle.square(paddle.static.nn.fc(h, 1) - y))
    optimizer.Momentum(0.1, 0.9).minimize(loss)
    return [loss]


def cells():
    """A net whose cells run in a loop, not as one op."""
    x, y = (paddle.static.data(n, [-1, d], "float32") for n, d in (("x", 3), ("y", 1)))
    steps = paddle.unbind(paddle.reshape(x, [-1, 3, 1]), axis=1)
    out, _ = paddle.nn.RNN(paddle.nn.LSTMCell(1, 4))(paddle.stack(steps[::-1], axis=1))
    both, _ = paddle.nn.BiRNN(paddle.nn.GRUCell(4, 2), paddle.nn.GRUCell(4, 2))(out)
    loss = paddle.mean(paddle.square(paddle.static.nn.fc(both[:, -1], 1) - y))
    optimizer.Adam(0.1).minimize(loss)
    return [loss]


def make():
    for name, build in {
            "merged_sgd": merged(lambda: optimizer.SGD(0.1)),
            "merged_momentum_sum": merged(lambda: optimizer.Momentum(0.1, 0.9), avg=False),
            "merged_adam": merged(lambda: optimizer.Adam(0.1)),
            "scaled": scaled(lambda: optimizer.Momentum(0.1, 0.9)),
            "scaled_adam": scaled(lambda: optimizer.Adam(0.1)),
            "scaled_multi_precision": scaled(lambda: optimizer.Momentum(0.1, 0.9, multi_precision=True))}.items():
        run_case("updates", name, build, feeds())
    overflowing = feeds()
    overflowing["x"][4] = np.finfo("float32").max
    run_case("updates", "scaled_overflow", scaled(lambda: optimizer.Momentum(0.1, 0.9)), overflowing)
    for build in (averaged, looking_ahead, recomputed, overwritten, cells):
        run_case("updates", build.__name__, build, feeds())
