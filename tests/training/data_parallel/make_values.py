#!/usr/bin/env python3
"""Computes the values that data_parallel_test.cpp expects, with PyTorch on the
CPU, and writes them to tests/data/data_parallel.npz.

usage: make_values.py [FILE]

PyTorch's DataParallel does not cut a batch on the CPU. So what it would do on n
devices is done here by hand, with its own functions: `torch.chunk` cuts the
batch, `copy.deepcopy` makes replicas, and their gradients are added up. Numbers
without pattern take the place of random ones, so that the file is the same for
each run of one release of PyTorch. Weights are stored as Troupe has them:
[in, out]. The committed file was made by PyTorch 2.15.0.
"""

import copy
import pathlib
import sys

import numpy
import torch
from torch import nn

FILE = pathlib.Path(__file__).resolve().parents[2] / "data/data_parallel.npz"


def numbers(*dims, seed=0):
    """Numbers without pattern in [-1, 1]."""
    i = numpy.arange(int(numpy.prod(dims))) + 17 * seed
    return torch.tensor(
        numpy.sin(i * i + 3.0 * i + 1), dtype=torch.float32
    ).reshape(dims)


def fill(module, seed):
    """Gives all parameters their values. Returns the module."""
    with torch.no_grad():
        for n, p in enumerate(module.parameters()):
            p.copy_(numbers(*p.shape, seed=seed + n))
    return module


def transposed(weight):
    return weight.t() if weight.dim() == 2 else weight


def parameters_of(prefix, module):
    return {
        f"{prefix}.{name}": transposed(p.detach()).clone()
        for name, p in module.named_parameters()
    }


def gradients_of(prefix, module):
    return {
        f"{prefix}.{name}.grad": transposed(p.grad)
        for name, p in module.named_parameters()
    }


def on_replicas(module, batch, n):
    """What DataParallel computes on n devices: outputs of all chunks. The
    gradients of the replicas are added up into `module` by `add_gradients`."""
    chunks = torch.chunk(batch, n)
    replicas = [copy.deepcopy(module) for _ in chunks]
    return torch.cat([r(c) for r, c in zip(replicas, chunks)]), replicas


def add_gradients(module, replicas):
    for p, *copies in zip(
        module.parameters(), *(r.parameters() for r in replicas)
    ):
        p.grad = sum(c.grad for c in copies)


def chunks():
    """Extents of the chunks of b samples for n devices, padded with -1."""
    table = -numpy.ones((12, 6, 6), dtype=numpy.int64)
    for b in range(12):
        for n in range(1, 6):
            sizes = [len(c) for c in torch.chunk(torch.zeros(b, 2), n)]
            table[b, n, : len(sizes)] = sizes
    values = {"chunks": torch.tensor(table)}
    x = numbers(2, 5, 3)
    for i, chunk in enumerate(torch.chunk(x, 3, dim=1)):
        values[f"axis1.{i}"] = chunk.contiguous()
    values["axis1"] = x
    return values


def mlp():
    """Batches of 1 to 7 samples; the loss is outside of the module."""
    net = fill(nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3)), 1)
    values = parameters_of("mlp", net)
    for b in (1, 2, 5, 7):
        x = numbers(b, 4, seed=b).requires_grad_()
        target = numbers(b, 3, seed=20 + b)
        net.zero_grad()
        y = net(x)
        y.retain_grad()
        loss = nn.functional.mse_loss(y, target)
        loss.backward()
        values |= {
            f"mlp{b}.x": x,
            f"mlp{b}.target": target,
            f"mlp{b}.y": y,
            f"mlp{b}.loss": loss,
            f"mlp{b}.y.grad": y.grad,
            f"mlp{b}.x.grad": x.grad,
        }
        values |= gradients_of(f"mlp{b}", net)
    return values


def batch_norm():
    """Statistics are those of replica 0. PyTorch keeps the unbiased variance,
    Paddle and Troupe the biased one: `momentum` mixes that in here."""
    norm = nn.BatchNorm1d(3)
    net = fill(nn.Sequential(nn.Linear(4, 3, bias=False), norm), 5)
    values = parameters_of("norm", net)
    x = numbers(7, 4, seed=9)
    y, replicas = on_replicas(net, x, 2)
    weights = numbers(7, 3, seed=11)
    (y * weights).sum().backward()
    add_gradients(net, replicas)
    first = net[0](torch.chunk(x, 2)[0]).detach()
    values |= {
        "norm.x": x,
        "norm.y": y,
        "norm.y.grad": weights,
        "norm.mean": replicas[0][1].running_mean,
        "norm.variance": 0.9 + 0.1 * first.var(0, unbiased=False),
    }
    return values | gradients_of("norm", net)


def recurrent():
    """A step of SGD with learning rate 0.1, as test_data_parallel_rnn."""
    net = fill(nn.RNN(3, 4, batch_first=True), 7)
    values = parameters_of("rnn", net)
    x = numbers(5, 3, 3, seed=3)
    out, last = net(x)
    last[0].square().sum().backward()
    with torch.no_grad():
        for p in net.parameters():
            p -= 0.1 * p.grad
    values |= {"rnn.x": x, "rnn.last": last[0]}
    return values | parameters_of("rnn.after", net)


def embedding():
    """A sparse table: the gradient has a row for each id of the batch."""
    net = fill(nn.Embedding(6, 2, sparse=True), 13)
    ids = torch.tensor([1, 3, 3, 0, 5])
    values = {"table": net.weight.detach(), "ids": ids[:, None]}
    y = net(ids)
    (y * numbers(5, 2, seed=2)).sum().backward()
    values |= {
        "table.y": y,
        "table.y.grad": numbers(5, 2, seed=2),
        "table.grad": net.weight.grad.to_dense(),
    }
    return values


def main():
    values = chunks() | mlp() | batch_norm() | recurrent() | embedding()
    numpy.savez_compressed(
        sys.argv[1] if len(sys.argv) > 1 else FILE,
        **{k: v.detach().contiguous().numpy() for k, v in values.items()},
    )


main()
