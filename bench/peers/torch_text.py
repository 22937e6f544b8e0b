#!/usr/bin/env python3
"""Trains torch_zoo.py's gpt on the bytes of a text and measures it on another.
Needs a virtual environment with `pip install torch`.

usage: torch_text.py TRAIN HELD_OUT --start FILE [--steps N] [--seed S]

As in `troupe train gpt --data TRAIN --seed S`, samples are consecutive windows
of 128 bytes, and each epoch uses them in the order of sample_order.py.
"""
import argparse
import itertools
import json
import pathlib
import statistics
import time

import peer

peer.bind_openmp()

import torch
from torch.nn import functional as F

import torch_zoo
from sample_order import sample_order

TOKENS = 128
BATCH = 8


def windows(path):
    """Tokens, and for each the token that follows; both [samples, TOKENS]."""
    text = torch.frombuffer(bytearray(pathlib.Path(path).read_bytes()),
                            dtype=torch.uint8).long()
    samples = (len(text) - 1) // TOKENS
    return (text[:samples * TOKENS].view(samples, TOKENS),
            text[1:samples * TOKENS + 1].view(samples, TOKENS))


def batches_of(samples, seed):
    """Yields the sample numbers of one batch after the other, for ever."""
    for epoch in itertools.count():
        order = torch.tensor(sample_order(samples, seed, epoch))
        yield from order.split(BATCH)


def train(net, text, steps, seed):
    """Trains and returns the milliseconds of each step."""
    tokens, targets = windows(text)
    optimizer = torch_zoo.make_optimizer("gpt", net)

    def loss_of(inputs, target):
        return F.cross_entropy(net(inputs), target)

    forward = torch.compile(loss_of)
    ms = []
    for _, chosen in zip(range(steps), batches_of(len(tokens), seed)):
        inputs, target = tokens[chosen], targets[chosen].flatten()
        start = time.perf_counter()
        optimizer.zero_grad()
        loss = forward(inputs, target)
        loss.backward()
        optimizer.step()
        loss.item()
        ms.append(1e3 * (time.perf_counter() - start))
    return ms


@torch.no_grad()
def mean_loss(net, text):
    """The mean loss in nats per byte."""
    tokens, targets = windows(text)
    total = sum(F.cross_entropy(net(inputs), target.flatten(),
                                reduction="sum").item()
                for inputs, target in zip(tokens.split(BATCH),
                                          targets.split(BATCH)))
    return total / targets.numel()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("train")
    parser.add_argument("held_out")
    parser.add_argument("--start", required=True, help="initial values, as "
                        "troupe bench train gpt --save-start writes them")
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    peer.add_threads(parser)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    net = torch_zoo.NETS["gpt"]()
    torch_zoo.load("gpt", net, peer.StartFile(arguments.start))
    ms = train(net, arguments.train, arguments.steps, arguments.seed)
    print(json.dumps({"peer": f"torch {torch.__version__} compile",
                      "ms": statistics.median(ms),
                      "loss": mean_loss(net, arguments.held_out)}))


main()
