#!/usr/bin/env python3
"""Troupe's benchmark nets in PyTorch, with the same shapes, initial values,
batches and optimizers. Needs a virtual environment with `pip install torch`.

usage: torch_zoo.py NET [--threads T] [--mode MODE]

Modes:
eager           nothing is compiled
compile         torch.compile compiles the forward pass with its loss, and
                therefore also the backward pass
compile_step    it compiles the optimizer's step too
reduce_overhead, max_autotune
                both are compiled in that mode of torch.compile
cl, compile_cl and so on
                the same; images and convolutions have the memory format
                channels_last

If T threads take all cores, each is bound to a core, as Troupe's workers are.

Under torchrun, the ranks train together: DistributedDataParallel over Gloo, each
with its share of every batch.
"""
import os

import peer

peer.bind_openmp()

import torch
from torch import nn
from torch.nn import functional as F

PLAIN_MODES = ["eager", "compile", "compile_step", "reduce_overhead",
               "max_autotune"]
MODES = PLAIN_MODES + ["cl"] + [mode + "_cl" for mode in PLAIN_MODES[1:]]
# Of torch.compile, where it is not the default.
COMPILE_MODES = {"reduce_overhead": "reduce-overhead",
                 "max_autotune": "max-autotune"}
MEMORY_AT_START = peer.process_bytes("VmRSS")


def conv(channels, filters, kernel, stride=1, groups=1):
    return nn.Conv2d(channels, filters, kernel, stride, (kernel - 1) // 2,
                     groups=groups, bias=False)


def shortcut(channels, filters, stride):
    if channels == filters and stride == 1:
        return nn.Identity()
    return nn.Sequential(conv(channels, filters, 1, stride),
                         nn.BatchNorm2d(filters))


class BasicBlock(nn.Module):
    def __init__(self, channels, filters, stride):
        super().__init__()
        self.conv1 = conv(channels, filters, 3, stride)
        self.norm1 = nn.BatchNorm2d(filters)
        self.conv2 = conv(filters, filters, 3)
        self.norm2 = nn.BatchNorm2d(filters)
        self.shortcut = shortcut(channels, filters, stride)

    def forward(self, x):
        h = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(h)) + self.shortcut(x))


class Bottleneck(nn.Module):
    def __init__(self, channels, inner, filters, stride, groups):
        super().__init__()
        self.conv1 = conv(channels, inner, 1)
        self.norm1 = nn.BatchNorm2d(inner)
        self.conv2 = conv(inner, inner, 3, stride, groups)
        self.norm2 = nn.BatchNorm2d(inner)
        self.conv3 = conv(inner, filters, 1)
        self.norm3 = nn.BatchNorm2d(filters)
        self.shortcut = shortcut(channels, filters, stride)

    def forward(self, x):
        h = F.relu(self.norm1(self.conv1(x)))
        h = F.relu(self.norm2(self.conv2(h)))
        return F.relu(self.norm3(self.conv3(h)) + self.shortcut(x))


def mlp():
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256),
                         nn.ReLU(), nn.Linear(256, 10))


def lenet():
    return nn.Sequential(nn.Conv2d(1, 20, 5), nn.MaxPool2d(2), nn.ReLU(),
                         nn.Conv2d(20, 50, 5), nn.MaxPool2d(2), nn.ReLU(),
                         nn.Flatten(), nn.Linear(800, 500), nn.ReLU(),
                         nn.Linear(500, 10))


def resnet18():
    layers = [conv(3, 64, 3), nn.BatchNorm2d(64), nn.ReLU()]
    channels = 64
    for filters in (64, 128, 256, 512):
        for stride in (1 if filters == 64 else 2, 1):
            layers.append(BasicBlock(channels, filters, stride))
            channels = filters
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(512, 10))


def bottleneck_net(shrink, groups):
    layers = [conv(3, 64, 7, 2), nn.BatchNorm2d(64), nn.ReLU(),
              nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for filters, blocks in ((256, 3), (512, 4), (1024, 6), (2048, 3)):
        for i in range(blocks):
            stride = 2 if i == 0 and filters > 256 else 1
            layers.append(Bottleneck(channels, filters // shrink, filters,
                                     stride, groups))
            channels = filters
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(2048, 1000))


class GptBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.grow = nn.Linear(width, 4 * width)
        self.shrink = nn.Linear(4 * width, width)

    def attend(self, x):
        batch, tokens, width = x.shape
        parts = self.qkv(x).view(batch, tokens, 3, self.heads, -1)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.shrink(F.gelu(self.grow(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self, words=256, tokens=128, width=256, heads=8, depth=4):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.positions = nn.Parameter(torch.empty(tokens, width))
        self.blocks = nn.ModuleList(GptBlock(width, heads)
                                    for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.logits = nn.Linear(width, words, bias=False)

    def forward(self, tokens):
        x = self.embedding(tokens) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.logits(self.norm(x)).flatten(0, 1)


class WideDeep(nn.Module):
    def __init__(self, slots=26, rows=100_000, width=16, dense=13):
        super().__init__()
        self.deep_table = nn.Embedding(slots * rows, width, sparse=True)
        self.deep = nn.Sequential(
            nn.Linear(slots * width + dense, 400), nn.ReLU(),
            nn.Linear(400, 400), nn.ReLU(), nn.Linear(400, 400), nn.ReLU(),
            nn.Linear(400, 1))
        self.wide_table = nn.Embedding(slots * rows, 1, sparse=True)
        self.wide = nn.Linear(dense, 1)
        self.register_buffer("offsets", torch.arange(slots) * rows)

    def forward(self, ids, dense):
        ids = ids + self.offsets
        deep = torch.cat([self.deep_table(ids).flatten(1), dense], 1)
        return (self.deep(deep).squeeze(1) + self.wide_table(ids).sum((1, 2))
                + self.wide(dense).squeeze(1))


class Word2Vec(nn.Module):
    def __init__(self, words=2000, width=32):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.hidden = nn.Linear(4 * width, 256)
        self.scores = nn.Linear(256, words)

    def forward(self, *context):
        embedded = self.embedding(torch.cat(context, 1)).flatten(1)
        return self.scores(torch.sigmoid(self.hidden(embedded)))


NETS = {
    "mlp": mlp, "lenet": lenet, "resnet18": resnet18,
    "resnet50": lambda: bottleneck_net(shrink=4, groups=1),
    "resnext50": lambda: bottleneck_net(shrink=2, groups=32),
    "gpt": Gpt, "widedeep": WideDeep, "word2vec": Word2Vec,
}

# Troupe's names of layers: the i-th of a kind is called "fc_i" and so on.
KINDS = {nn.Linear: "fc", nn.Conv2d: "conv2d", nn.BatchNorm2d: "batch_norm",
         nn.LayerNorm: "layer_norm", nn.Embedding: "embedding"}
OTHER_NAMES = {"gpt": {"positions": "positions.w_0"},
               "word2vec": {"embedding.weight": "shared_w"}}


def initialise(module):
    """Troupe's initial values; `apply` calls it for inner modules first."""
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
    elif isinstance(module, nn.Conv2d):
        nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
    elif isinstance(module, nn.Embedding):
        nn.init.xavier_uniform_(module.weight)
    elif isinstance(module, Gpt):
        nn.init.normal_(module.embedding.weight, std=0.02)
        nn.init.normal_(module.positions, std=0.02)
    if getattr(module, "bias", None) is not None:
        nn.init.zeros_(module.bias)


def parameters_by_name(name, net):
    """Yields Troupe's name of each parameter, the parameter, and whether it is
    the transpose of Troupe's."""
    counts = {}
    for prefix, module in net.named_modules():
        kind = KINDS.get(type(module))
        number = counts.get(kind, 0)
        counts[kind] = number + 1
        for part, parameter in module.named_parameters(recurse=False):
            own = (prefix + "." if prefix else "") + part
            made = f"{kind}_{number}.{'w_0' if part == 'weight' else 'b_0'}"
            yield (OTHER_NAMES.get(name, {}).get(own, made), parameter,
                   kind == "fc" and part == "weight")


def to_tensor(array):
    dtype, shape, data = array
    types = {"<f4": torch.float32, "<i8": torch.int64}
    return torch.frombuffer(data, dtype=types[dtype]).reshape(shape)


@torch.no_grad()
def load(name, net, start):
    missing = set(start.parameters())
    for known, parameter, transposed in parameters_by_name(name, net):
        value = to_tensor(start.parameter(known))
        parameter.copy_(value.t() if transposed else value)
        missing.remove(known)
    assert not missing, f"parameters that {name} here has not: {missing}"


def random_batch(name):
    def values(shape, below):
        return torch.rand(shape) if below is None \
            else torch.randint(below, shape)
    return {feed: values(shape, below)
            for feed, shape, below in peer.FEEDS[name]}


def make_batches(name, start, channels_last):
    batches = [{feed: to_tensor(array) for feed, array in batch.items()}
               for batch in start.batches()] if start \
        else [random_batch(name) for _ in range(peer.BATCHES)]
    made = []
    for batch in batches:
        *inputs, target = batch_in_order(name, batch)
        if channels_last:
            inputs = [x.to(memory_format=torch.channels_last)
                      if x.dim() == 4 else x for x in inputs]
        target = target.flatten()
        made.append((inputs, target.float() if name == "widedeep" else target))
    return made


def batch_in_order(name, batch):
    return [batch[feed] for feed, _, _ in peer.FEEDS[name]]


def make_optimizer(name, net, fused=True):
    """Uses the fused form, the fastest on CPUs if it is not compiled, except
    for sparse gradients, which it does not support."""
    return torch.optim.SGD(net.parameters(), peer.LEARNING_RATE,
                           momentum=peer.momentum_of(name),
                           fused=fused and name != "widedeep")


def compiled(mode, loss_of, optimizer_step):
    """Both functions, compiled as the mode says."""
    if mode in ("eager", "cl"):
        return loss_of, optimizer_step
    if mode == "compile":
        return torch.compile(loss_of), optimizer_step
    how = COMPILE_MODES.get(mode)
    return (torch.compile(loss_of, mode=how),
            torch.compile(optimizer_step, mode=how))


def rank_and_ranks():
    """(0, 1) without torchrun."""
    return int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))


def share_of(rank, ranks, batches):
    return [([x.chunk(ranks)[rank] for x in inputs],
             target.chunk(ranks)[rank]) for inputs, target in batches]


def make_step(arguments):
    name, mode = arguments.net, arguments.mode
    start = peer.StartFile(arguments.start) if arguments.start else None
    channels_last = mode.endswith("cl")
    mode = mode.removesuffix("_cl")
    torch.manual_seed(0)
    net = NETS[name]()
    if start:
        load(name, net, start)
    else:
        net.apply(initialise)
    if channels_last:
        net = net.to(memory_format=torch.channels_last)
    rank, ranks = rank_and_ranks()
    batches = share_of(rank, ranks, make_batches(name, start, channels_last))
    if ranks > 1:
        torch.distributed.init_process_group("gloo")
        net = nn.parallel.DistributedDataParallel(net)
    optimizer = make_optimizer(name, net,
                               fused=mode in ("eager", "cl", "compile"))
    criterion = F.binary_cross_entropy_with_logits if name == "widedeep" \
        else F.cross_entropy

    def loss_of(inputs, target):
        return criterion(net(*inputs), target)

    forward, update = compiled(mode, loss_of, optimizer.step)

    def step(i):
        optimizer.zero_grad()
        loss = forward(*batches[i % len(batches)])
        loss.backward()
        update()
        return loss.item()

    return step


def main():
    arguments = peer.parse_arguments(__doc__, MODES)
    torch.set_num_threads(arguments.threads)
    peer.run(f"torch {torch.__version__} {arguments.mode}", arguments,
             make_step(arguments), MEMORY_AT_START)


if __name__ == "__main__":
    main()
