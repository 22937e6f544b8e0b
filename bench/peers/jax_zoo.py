#!/usr/bin/env python3
"""Troupe's benchmark nets in JAX, with the same shapes, initial values, batches
and optimizers. The whole step is one compiled function that works in place.
Needs a virtual environment with `pip install jax`.

usage: jax_zoo.py NET [--threads T]

Images have the layout [batch, height, width, channels], for which XLA's CPU
convolutions are made. JAX runs on T of the cores that the process may use.
"""
import functools
import os

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import peer

MEMORY_AT_START = peer.process_bytes("VmRSS")


class Layers:
    """Layers of a net over named parameters. If none are given, they are made
    when the net first runs, with Troupe's names and initial values."""

    def __init__(self, parameters=None, state=None):
        self.making = parameters is None
        self.parameters = {} if self.making else parameters
        self.state = {} if state is None else dict(state)
        self.random = np.random.default_rng(0)
        self.counts = {}

    def name(self, kind):
        number = self.counts.get(kind, 0)
        self.counts[kind] = number + 1
        return f"{kind}_{number}"

    def parameter(self, name, make):
        if self.making:
            self.parameters[name] = make().astype("f4")
        return self.parameters[name]

    def xavier(self, shape):
        limit = np.sqrt(6 / (shape[0] + shape[1]))
        return self.random.uniform(-limit, limit, shape)

    def bias(self, name, size):
        return self.parameter(name + ".b_0", lambda: np.zeros(size))

    def fc(self, x, size, bias=True):
        name = self.name("fc")
        weight = self.parameter(name + ".w_0",
                                lambda: self.xavier((x.shape[-1], size)))
        out = x @ weight
        return out + self.bias(name, size) if bias else out

    def conv(self, x, filters, kernel, stride=1, groups=1, padding=None,
             bias=False):
        name = self.name("conv2d")
        shape = (kernel, kernel, x.shape[-1] // groups, filters)
        spread = np.sqrt(2 / np.prod(shape[:3]))
        weight = self.parameter(
            name + ".w_0", lambda: self.random.normal(0, spread, shape))
        pad = (kernel - 1) // 2 if padding is None else padding
        out = lax.conv_general_dilated(
            x, weight, (stride, stride), ((pad, pad), (pad, pad)),
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            feature_group_count=groups)
        return out + self.bias(name, filters) if bias else out

    def scale_and_bias(self, name, x):
        size = x.shape[-1]
        scale = self.parameter(name + ".w_0", lambda: np.ones(size))
        return x * scale + self.bias(name, size)

    def batch_norm(self, x):
        name = self.name("batch_norm")
        mean = x.mean((0, 1, 2))
        variance = jnp.square(x - mean).mean((0, 1, 2))
        for part, value in (("mean", mean), ("variance", variance)):
            old = self.state.get((name, part),
                                 jnp.full_like(value, part == "variance"))
            self.state[name, part] = .9 * old + .1 * lax.stop_gradient(value)
        return self.scale_and_bias(name, (x - mean)
                                   * lax.rsqrt(variance + 1e-5))

    def layer_norm(self, x):
        mean = x.mean(-1, keepdims=True)
        variance = jnp.square(x - mean).mean(-1, keepdims=True)
        return self.scale_and_bias(self.name("layer_norm"), (x - mean)
                                   * lax.rsqrt(variance + 1e-5))

    def table(self, rows, width, name=None, spread=None):
        name = name or self.name("embedding") + ".w_0"
        return self.parameter(name, lambda: self.random.normal(
            0, spread, (rows, width)) if spread else self.xavier((rows, width)))


def max_pool(x, kernel, stride, padding=0):
    pads = ((0, 0), (padding, padding), (padding, padding), (0, 0))
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, kernel, kernel, 1),
                             (1, stride, stride, 1), pads)


def cross_entropy(logits, label):
    likely = jnp.take_along_axis(jax.nn.log_softmax(logits),
                                 label.reshape(-1, 1), 1)
    return -likely.mean()


def mlp(layers, image, label):
    h = jax.nn.relu(layers.fc(image, 512))
    h = jax.nn.relu(layers.fc(h, 256))
    return cross_entropy(layers.fc(h, 10), label)


def lenet(layers, image, label):
    h = layers.conv(image, 20, 5, padding=0, bias=True)
    h = jax.nn.relu(max_pool(h, 2, 2))
    h = layers.conv(h, 50, 5, padding=0, bias=True)
    h = jax.nn.relu(max_pool(h, 2, 2))
    h = h.transpose(0, 3, 1, 2).reshape(len(image), -1)
    h = jax.nn.relu(layers.fc(h, 500))
    return cross_entropy(layers.fc(h, 10), label)


def conv_norm(layers, x, *shape, **more):
    return layers.batch_norm(layers.conv(x, *shape, **more))


def residual(layers, x, h, filters, stride):
    if x.shape[-1] != filters or stride != 1:
        x = conv_norm(layers, x, filters, 1, stride)
    return jax.nn.relu(h + x)


def resnet18(layers, image, label):
    x = jax.nn.relu(conv_norm(layers, image, 64, 3))
    for filters in (64, 128, 256, 512):
        for stride in (1 if filters == 64 else 2, 1):
            h = jax.nn.relu(conv_norm(layers, x, filters, 3, stride))
            h = conv_norm(layers, h, filters, 3)
            x = residual(layers, x, h, filters, stride)
    return cross_entropy(layers.fc(x.mean((1, 2)), 10), label)


def bottleneck_net(layers, image, label, shrink, groups):
    x = jax.nn.relu(conv_norm(layers, image, 64, 7, 2))
    x = max_pool(x, 3, 2, 1)
    for filters, blocks in ((256, 3), (512, 4), (1024, 6), (2048, 3)):
        inner = filters // shrink
        for i in range(blocks):
            stride = 2 if i == 0 and filters > 256 else 1
            h = jax.nn.relu(conv_norm(layers, x, inner, 1))
            h = jax.nn.relu(conv_norm(layers, h, inner, 3, stride, groups))
            h = conv_norm(layers, h, filters, 1)
            x = residual(layers, x, h, filters, stride)
    return cross_entropy(layers.fc(x.mean((1, 2)), 1000), label)


def attend(layers, x, heads):
    batch, tokens, width = x.shape
    parts = layers.fc(x, 3 * width).reshape(batch, tokens, 3, heads, -1)
    q, k, v = parts.transpose(2, 0, 3, 1, 4)
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(width // heads)
    seen = jnp.tril(jnp.ones((tokens, tokens), bool))
    mixed = jax.nn.softmax(jnp.where(seen, scores, -1e9)) @ v
    return layers.fc(mixed.transpose(0, 2, 1, 3).reshape(x.shape), width)


def gpt(layers, tokens, targets, words=256, width=256, heads=8, depth=4):
    positions = layers.table(tokens.shape[1], width, "positions.w_0", 0.02)
    x = layers.table(words, width, spread=0.02)[tokens] + positions
    for _ in range(depth):
        x = x + attend(layers, layers.layer_norm(x), heads)
        h = jax.nn.gelu(layers.fc(layers.layer_norm(x), 4 * width),
                        approximate=False)
        x = x + layers.fc(h, width)
    logits = layers.fc(layers.layer_norm(x), words, bias=False)
    return cross_entropy(logits.reshape(-1, words), targets)


SLOTS, ROWS = 26, 100_000


def widedeep(layers, deep_rows, wide_rows, dense, click):
    """Takes the rows of the two tables that the ids select."""
    h = jnp.concatenate([deep_rows.reshape(len(dense), -1), dense], 1)
    for _ in range(3):
        h = jax.nn.relu(layers.fc(h, 400))
    z = (layers.fc(h, 1) + wide_rows.sum((1, 2), keepdims=True)[:, 0]
         + layers.fc(dense, 1))
    return (jax.nn.softplus(z) - z * click).mean()


def word2vec(layers, *words):
    *context, target = words
    embedded = layers.table(2000, 32, "shared_w")[jnp.concatenate(context, 1)]
    h = jax.nn.sigmoid(layers.fc(embedded.reshape(len(target), -1), 256))
    return cross_entropy(layers.fc(h, 2000), target)


NETS = {"mlp": mlp, "lenet": lenet, "resnet18": resnet18,
        "resnet50": functools.partial(bottleneck_net, shrink=4, groups=1),
        "resnext50": functools.partial(bottleneck_net, shrink=2, groups=32),
        "gpt": gpt, "widedeep": widedeep, "word2vec": word2vec}
TABLES = {"embedding_0.w_0": 16, "embedding_1.w_0": 1}  # of widedeep


def loss_function(net):
    """(parameters, state, batch) -> loss, state."""
    def loss(parameters, state, batch):
        layers = Layers(parameters, state)
        return net(layers, *batch), layers.state
    return loss


def train_step(net, momentum):
    loss_of = loss_function(net)

    @functools.partial(jax.jit, donate_argnums=(0, 1, 2))
    def step(parameters, velocities, state, batch):
        (loss, state), gradients = jax.value_and_grad(
            loss_of, has_aux=True)(parameters, state, batch)
        velocities = jax.tree.map(lambda v, g: momentum * v + g, velocities,
                                  gradients)
        parameters = jax.tree.map(lambda p, v: p - peer.LEARNING_RATE * v,
                                  parameters, velocities)
        return parameters, velocities, state, loss
    return step


def train_tables_step(net):
    """Plain SGD. Only those rows of the tables that were looked up change, in
    place."""
    def loss_of(parameters, rows, dense, click):
        return net(Layers(parameters), *rows, dense, click)

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(parameters, tables, state, batch):
        ids, dense, click = batch
        ids = ids + jnp.arange(SLOTS) * ROWS
        rows = [table[ids] for table in tables]
        loss, (gradients, row_gradients) = jax.value_and_grad(
            loss_of, (0, 1))(parameters, rows, dense, click)
        parameters = jax.tree.map(lambda p, g: p - peer.LEARNING_RATE * g,
                                  parameters, gradients)
        tables = [table.at[ids].add(-peer.LEARNING_RATE * gradient)
                  for table, gradient in zip(tables, row_gradients)]
        return parameters, tables, state, loss
    return step


def to_numpy(array):
    dtype, shape, data = array
    return np.frombuffer(data, dtype).reshape(shape)


def own_layout(value):
    """Converts Troupe's filters, [out, in, height, width], to this layout."""
    return value.transpose(2, 3, 1, 0) if value.ndim == 4 else value


def batch_in_order(net, batch):
    inputs = [batch[feed] for feed, _, _ in peer.FEEDS[net]]
    return tuple(jnp.asarray(x.transpose(0, 2, 3, 1) if x.ndim == 4
                             else x.astype("i4") if x.dtype == np.int64 else x)
                 for x in inputs)


def random_batches(net):
    random = np.random.default_rng(0)

    def values(shape, below):
        return random.random(shape, "f4") if below is None \
            else random.integers(0, below, shape)

    return [{feed: values(shape, below)
             for feed, shape, below in peer.FEEDS[net]}
            for _ in range(peer.BATCHES)]


def load(start):
    return {name: jnp.asarray(own_layout(to_numpy(start.parameter(name))))
            for name in start.parameters()}


def make_parameters(net, batch):
    """Makes initial values by running the net once."""
    layers = Layers()
    if net == "widedeep":
        ids, *inputs = batch
        rows = [layers.table(SLOTS * ROWS, width)[:SLOTS * len(ids)].reshape(
            len(ids), SLOTS, width) for width in TABLES.values()]
        inputs = rows + inputs
    else:
        inputs = batch
    NETS[net](layers, *inputs)
    return jax.tree.map(jnp.asarray, layers.parameters)


def initial_state(net, parameters, batch):
    """Statistics of batch norms before the first step."""
    if net == "widedeep":
        return {}
    _, shapes = jax.eval_shape(loss_function(NETS[net]), parameters, {}, batch)
    return {key: jnp.full(value.shape, float(key[1] == "variance"))
            for key, value in shapes.items()}


def make_step(arguments):
    net = arguments.net
    start = peer.StartFile(arguments.start) if arguments.start else None
    batches = [{feed: to_numpy(array) for feed, array in batch.items()}
               for batch in start.batches()] if start else random_batches(net)
    batches = [batch_in_order(net, batch) for batch in batches]
    parameters = load(start) if start else make_parameters(net, batches[0])
    if net == "widedeep":
        step = train_tables_step(NETS[net])
        second = [parameters.pop(name) for name in TABLES]
    else:
        step = train_step(NETS[net], peer.momentum_of(net))
        second = jax.tree.map(jnp.zeros_like, parameters)
    trained = [parameters, second,
               initial_state(net, parameters, batches[0])]

    def next_step(i):
        *trained[:], loss = step(*trained, batches[i % len(batches)])
        return float(loss)

    return next_step


def main():
    arguments = peer.parse_arguments(__doc__, ["jit"])
    cores = sorted(os.sched_getaffinity(0))[:arguments.threads]
    os.sched_setaffinity(0, cores)  # before JAX starts its threads
    peer.run(f"jax {jax.__version__}", arguments, make_step(arguments),
             MEMORY_AT_START)


main()
