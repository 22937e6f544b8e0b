# SPDX-License-Identifier: Apache-2.0
"""Optimizer ops: three steps each, in place as programs run them, so that
state must follow; dense gradients and selected rows."""
import numpy as np
from oracle import Rows, _declare, program_case

random = np.random.RandomState(7)
DIMS = (7, 5)


def values(*dims):
    return random.uniform(-1, 1, dims or DIMS).astype("float32")


def positive(*dims):
    return random.uniform(0.1, 1, dims or DIMS).astype("float32")


def dense(*dims):
    return [values(*dims) for _ in range(3)]


def rows(*numbers):
    """A gradient of these rows, which may occur several times."""
    return Rows(values(len(numbers), DIMS[1]), list(numbers), DIMS[0])


def sparse():
    """The last row occurs in each: Paddle's sparse Adam reads behind the list
    of rows where it does not. Rows that occur once each are sorted: Paddle's
    momentum, rmsprop and ftrl search them as if they were."""
    return [rows(1, 3, 6), rows(6, 2, 6, 0, 2, 2), rows(6)]


def steps(name, op, gradients, state, attrs=None, lr=0.1, inputs=None,
          outputs=None, tolerance=1e-5, family="optimizers"):
    """Runs `op` once for each gradient.

    state    slot -> first value; read from `slot`, written to `slot`Out
    inputs   slot -> value of further inputs
    outputs  slots that are not named like the input: input slot -> output slot
    """
    given = {"Param": values(), "LearningRate": np.array([lr], "float32"),
             **state, **(inputs or {})}
    out_slots = {**{s: s + "Out" for s in ["Param", *state]}, **(outputs or {})}

    def build(block):
        made = {s: _declare(block, s, v) for s, v in given.items()}
        for i, g in enumerate(gradients):
            made["Grad"] = _declare(block, f"Grad{i}", g)
            block.append_op(
                type=op, inputs={s: [v] for s, v in made.items()},
                outputs={o: [made[s]] for s, o in out_slots.items()},
                attrs=attrs or {})
        return []

    program_case(family, name, build,
                 {**given, **{f"Grad{i}": g for i, g in enumerate(gradients)}},
                 tolerance=tolerance)


def powers(beta1=0.9, beta2=0.999):
    return {"Beta1Pow": np.array([beta1], "float32"),
            "Beta2Pow": np.array([beta2], "float32")}


def moments(**betas):
    return {"Moment1": values(), "Moment2": positive(), **powers(**betas)}


def sgd():
    steps("sgd", "sgd", dense(), {})
    steps("sgd_rows", "sgd", sparse(), {})


def momentum():
    base = {"mu": 0.9}
    l2 = {"regularization_method": "l2_decay", "regularization_coeff": 0.1}
    forms = {"": base, "_nesterov": {**base, "use_nesterov": True},
             "_l2": {**base, **l2},
             "_nesterov_l2": {**base, "use_nesterov": True, **l2},
             "_rescale": {**base, "rescale_grad": 0.25},
             "_rescale_l2": {**base, "rescale_grad": 0.25, **l2}}
    for form, attrs in forms.items():
        steps("momentum" + form, "momentum", dense(), {"Velocity": values()}, attrs)
        steps("momentum_rows" + form, "momentum", sparse(), {"Velocity": values()}, attrs)


def adam():
    big = {"epsilon": 0.05}  # large enough to see how it is scaled
    on, off = np.array([True]), np.array([False])
    betas = {"Beta1Tensor": np.array([0.8], "float32"),
             "Beta2Tensor": np.array([0.9], "float32"),
             "EpsilonTensor": np.array([0.01], "float32")}
    forms = {"": ({}, {}), "_epsilon": (big, {}),
             "_global_powers": ({"use_global_beta_pow": True}, {}),
             "_skipped": ({}, {"SkipUpdate": on}),
             "_not_skipped": ({}, {"SkipUpdate": off}),
             "_beta_tensors": ({}, betas)}
    for form, (attrs, inputs) in forms.items():
        steps("adam" + form, "adam", dense(), moments(), attrs, inputs=inputs)
        steps("adam_rows" + form, "adam", sparse(), moments(), attrs, inputs=inputs)
        steps("adam_lazy" + form, "adam", sparse(), moments(),
              {**attrs, "lazy_mode": True}, inputs=inputs)
    # Without output of the powers they stand still.
    steps("adam_rows_unsorted", "adam", [rows(6, 1), rows(6, 1)], moments(), big)


def adamw():
    decay = {"with_decay": True, "coeff": 0.2}
    forms = {"": decay, "_no_decay": {"with_decay": False, "coeff": 0.2},
             "_lr_ratio": {**decay, "lr_ratio": 0.5},
             "_epsilon": {**decay, "epsilon": 0.05}}
    for form, attrs in forms.items():
        # No rows: Paddle runs the kernel for dense gradients on them and dies.
        steps("adamw" + form, "adamw", dense(), moments(), attrs)
    skip = {"SkipUpdate": np.array([True])}
    steps("adamw_skipped", "adamw", dense(), moments(), decay, inputs=skip)


def adamax():
    power = {"Beta1Pow": np.array([0.9], "float32")}
    for form, attrs in {"": {}, "_epsilon": {"epsilon": 0.3, "beta1": 0.8, "beta2": 0.95}}.items():
        steps("adamax" + form, "adamax", dense(),
              {"Moment": values(), "InfNorm": positive()}, attrs, inputs=power)


def adaptive():
    for form, attrs in {"": {}, "_epsilon": {"epsilon": 0.3}}.items():
        steps("adagrad" + form, "adagrad", dense(), {"Moment": positive()}, attrs)
        steps("adagrad_rows" + form, "adagrad", sparse(), {"Moment": positive()}, attrs)
        steps("decayed_adagrad" + form, "decayed_adagrad", dense(),
              {"Moment": positive()}, {**attrs, "decay": 0.8})
        steps("adadelta" + form, "adadelta", dense(),
              {"AvgSquaredGrad": positive(), "AvgSquaredUpdate": positive()},
              {**attrs, "rho": 0.8})


def rmsprop():
    base = {"epsilon": 0.01, "decay": 0.8, "momentum": 0.7}
    state = lambda: {"MeanSquare": positive() + 1, "Moment": values()}
    mean = lambda: {"MeanGrad": 0.1 * values()}
    for form, gradients in {"": dense, "_rows": sparse}.items():
        steps("rmsprop" + form, "rmsprop", gradients(), {**state(), **mean()}, base)
        steps("rmsprop_centered" + form, "rmsprop", gradients(), {**state(), **mean()},
              {**base, "centered": True})


def lamb():
    for form, attrs in {"": {"weight_decay": 0.1}, "_no_decay": {"weight_decay": 0.0},
                        "_always": {"weight_decay": 0.0, "always_adapt": True},
                        "_epsilon": {"weight_decay": 0.1, "epsilon": 0.05}}.items():
        steps("lamb" + form, "lamb", dense(), moments(), attrs)
        steps("lamb_rows" + form, "lamb", sparse(), moments(), attrs)
    skip = {"SkipUpdate": np.array([True])}
    steps("lamb_skipped", "lamb", dense(), moments(), {"weight_decay": 0.1}, inputs=skip)


def lars():
    base = {"mu": 0.9, "lars_coeff": 0.1}
    for form, attrs in {"": base, "_decay": {**base, "lars_weight_decay": [0.2]},
                        "_no_decay": {**base, "lars_weight_decay": [0.0]},
                        "_epsilon": {**base, "epsilon": 0.3},
                        "_rescale": {**base, "rescale_grad": 0.25}}.items():
        steps("lars_momentum" + form, "lars_momentum", dense(), {"Velocity": values()}, attrs)


def ftrl():
    names = {"SquaredAccumulator": "SquaredAccumOut", "LinearAccumulator": "LinearAccumOut"}
    for form, attrs in {"": {}, "_l1_l2": {"l1": 0.4, "l2": 0.3},
                        "_power": {"l1": 0.4, "l2": 0.3, "lr_power": -0.8}}.items():
        state = lambda: {"SquaredAccumulator": positive(), "LinearAccumulator": values()}
        steps("ftrl" + form, "ftrl", dense(), state(), attrs, outputs=names)
        steps("ftrl_rows" + form, "ftrl", sparse(), state(), attrs, outputs=names)


def dgc():
    # The op that compresses is not in Paddle's CPU build.
    attrs = {"mu": 0.9, "rampup_begin_step": 1.0}
    for form, step in {"early": 0.0, "late": 1.0}.items():
        inputs = {"current_step": np.array([step], "float32"),
                  "nranks": np.array([2.0], "float32")}
        for momentum in ({}, {"use_nesterov": True}):
            steps(f"dgc_momentum_{form}" + "_nesterov" * bool(momentum), "dgc_momentum",
                  dense(), {"Velocity": values()}, {**attrs, **momentum}, inputs=inputs,
                  outputs={"Grad": "Grad_out"})


def make():
    for family in (sgd, momentum, adam, adamw, adamax, adaptive, rmsprop, lamb, lars, ftrl, dgc):
        family()
