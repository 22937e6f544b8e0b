# SPDX-License-Identifier: Apache-2.0
"""What happens to gradients between backward and update: fan-in of rows,
clipping by norm, loss scaling of mixed precision."""
import numpy as np
from oracle import Rows, case

random = np.random.RandomState(11)


def values(*dims):
    return random.uniform(-2, 2, dims).astype("float32")


def rows(numbers, height=7, width=3):
    return Rows(values(len(numbers), width), list(numbers), height)


def write(name, op, inputs, outputs, attrs=None, **more):
    case("gradient_ops", name, op, inputs, outputs, attrs, **more)


def fan_in():
    a, b = rows([5, 1, 5]), rows([1, 0])
    write("sum_rows", "sum", {"X": [a, b, rows([6])]}, {"Out": "rows"})
    write("sum_one_rows", "sum", {"X": [a]}, {"Out": "rows"})
    write("sum_mixed", "sum", {"X": [values(7, 3), a, b]}, {"Out": "float32"})
    write("sum_mixed_rows_first", "sum", {"X": [a, values(7, 3)]}, {"Out": "float32"})
    write("merge_selected_rows", "merge_selected_rows", {"X": rows([5, 1, 5, 0])}, {"Out": "rows"})
    write("get_tensor", "get_tensor_from_selected_rows", {"X": rows([5, 1, 5])}, {"Out": "float32"})
    write("scale_rows", "scale", {"X": rows([5, 1, 5])}, {"Out": "rows"}, {"scale": 0.5})
    write("multiply_rows", "elementwise_mul",
          {"X": rows([5, 1, 5]), "Y": np.array([0.5], "float32")}, {"Out": "rows"}, {"axis": -1})
    write("assign_rows", "assign", {"X": rows([5, 1, 5])}, {"Out": "rows"})


def norms():
    write("squared_l2_norm", "squared_l2_norm", {"X": values(5, 3)}, {"Out": "float32"}, grads=["X"])
    for name, norm in {"clipped": 1.5, "whole": 100.0}.items():
        attrs = {"max_norm": norm}
        write("clip_by_norm_" + name, "clip_by_norm", {"X": values(5, 3)}, {"Out": "float32"}, attrs)
        write("clip_by_norm_rows_" + name, "clip_by_norm", {"X": rows([5, 1, 5])}, {"Out": "rows"}, attrs)
    for name, step in {"early": 0.0, "late": 1.0}.items():
        x = values(5, 3)
        write("dgc_clip_by_norm_" + name, "dgc_clip_by_norm",
              {"X": x, "current_step": np.array([step], "float32")}, {"Out": "=X"},
              {"max_norm": 1.5, "rampup_begin_step": 1.0})


def unscale():
    scale = np.array([1024.0], "float32")
    bad = values(2, 3)
    bad[1, 1] = np.inf
    nan = values(3)
    nan[2] = np.nan
    outs = {"Out": ["float32"] * 3, "FoundInfinite": "bool"}
    for name, second in {"finite": values(2, 3), "infinite": bad, "nan": nan}.items():
        write("unscale_" + name, "check_finite_and_unscale",
              {"X": [values(3, 5), second, values(7)], "Scale": scale}, outs)


def loss_scaling():
    """Good and bad steps before, and whether this one is bad."""
    counts = {"incr_every_n_steps": 3, "decr_every_n_nan_or_inf": 2,
              "incr_ratio": 2.0, "decr_ratio": 0.5}
    forms = {"good": (0, 1, False, 8.0), "raised": (2, 0, False, 8.0),
             "raised_too_far": (2, 0, False, 3e38), "bad": (2, 0, True, 8.0),
             "lowered": (0, 1, True, 8.0), "lowered_to_one": (0, 1, True, 1.5)}
    for stop in (False, True):
        for name, (good, bad, found, scaling) in forms.items():
            write("loss_scaling_" + name + "_stopped" * stop, "update_loss_scaling",
                  {"X": [values(3, 5), values(7)],
                   "FoundInfinite": np.array([found]),
                   "PrevLossScaling": np.array([scaling], "float32"),
                   "InGoodSteps": np.array([good], "int32"),
                   "InBadSteps": np.array([bad], "int32")},
                  {"Out": ["=X0", "=X1"], "LossScaling": "=PrevLossScaling",
                   "OutGoodSteps": "=InGoodSteps", "OutBadSteps": "=InBadSteps"},
                  {**counts, "stop_update": stop})


def overflow():
    """Whether a whole tensor is sound. Fluid's isfinite is gone in 2.6."""
    sound = np.float32([[1.5, -2.0, 3e38]])
    forms = {"sound": sound, "infinite": np.array([[1.0, -np.inf]], "float32"),
             "nan": np.array([[1.0], [np.nan]], "float32"), "double": np.array([np.inf, np.nan]),
             "int32": np.int32([1, 2]), "rows": Rows(np.array([[1.0, np.inf]], "float32"), [2], 5)}
    for op in ("isinf", "isnan"):
        for name, x in forms.items():
            write(f"{op}_{name}", op, {"X": x}, {"Out": "bool"})


def make():
    for family in (fan_in, norms, unscale, loss_scaling, overflow):
        family()
