# SPDX-License-Identifier: Apache-2.0
"""Dropout where no random numbers decide, and its gradient from a given mask."""
import numpy as np
from oracle import _declare, case, program_case

random = np.random.RandomState(12)


def values(*dims):
    return random.uniform(-2, 2, dims).astype("float32")


def drop(name, p, implementation, test, random_mask=False, **more):
    masked = ["Mask", "Out", "X@GRAD"] if random_mask else ["Mask"] if test else []
    case("dropout", name, "dropout", {"X": values(3, 5), **more}, {"Out": "float32", "Mask": "uint8"},
         {"dropout_prob": p, "is_test": test, "dropout_implementation": implementation,
          "fix_seed": True, "seed": 3}, grads=[] if test else ["X"], ignore=masked)


def gradient(name, p, implementation):
    def build(block):
        for var, value in arrays.items():
            _declare(block, var, value)
        block.create_var(name="dX", dtype="float32", persistable=True)
        op = block.desc.append_op()  # Python knows no gradient ops
        op.set_type("dropout_grad")
        op.set_input("Mask", ["Mask"])
        op.set_input("Out@GRAD", ["dOut"])
        op.set_output("X@GRAD", ["dX"])
        op._set_float32_attr("dropout_prob", p)
        op._set_bool_attr("is_test", False)
        op._set_attr("dropout_implementation", implementation)
        block._sync_with_cpp()
        return []
    arrays = {"Mask": (random.uniform(0, 1, (3, 5)) > p).astype("uint8"), "dOut": values(3, 5)}
    program_case("dropout", name, build, arrays)


def make():
    for implementation in ("downgrade_in_infer", "upscale_in_train"):
        short = implementation.split("_")[0]
        for p in (0.0, 0.3, 1.0):
            drop(f"{short}_test_{p}", p, implementation, True)
            drop(f"{short}_train_{p}", p, implementation, False, p == 0.3)
        for p in (0.0, 0.3, 1.0):
            gradient(f"{short}_gradient_{p}", p, implementation)
    drop("seed_input", 0.3, "upscale_in_train", False, True, Seed=np.array([7], "int32"))
