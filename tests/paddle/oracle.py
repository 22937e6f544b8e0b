# SPDX-License-Identifier: Apache-2.0
"""Runs single ops in real Paddle and keeps what it computed as test cases.

A case is a program of one op, made by Paddle's own `append_op`, with the
gradient ops that Paddle's own backward appends to it, and the values of all
its variables before and after Paddle's executor ran it. `op_cases_test.cpp`
runs the same program in Troupe and compares.

  python -m venv venv
  venv/bin/pip install paddlepaddle==2.6.2 'protobuf<=3.20.3' setuptools
  venv/bin/python tests/paddle/make_cases.py [FAMILY...]

One case is one compressed NumPy archive, tests/data/paddle_ops/FAMILY/NAME.npz:

  program      uint8    the serialized ProgramDesc
  tolerance    float64  largest error, relative to the largest magnitude
  in:VAR       values before the run        rows:VAR, height:VAR  if it is
  out:VAR      values after the run         selected rows; lod0:VAR, lod1:VAR
                                            offsets of its sequences, if any
"""
import io
import os
import zipfile

import numpy as np
import paddle
from paddle.base import core

paddle.enable_static()

DATA = os.path.join(os.path.dirname(__file__), "..", "data", "paddle_ops")
RUNS = os.path.join(os.path.dirname(__file__), "..", "data", "paddle_runs")


class Rows:
    """A SelectedRows value: `values[i]` belongs to row `rows[i]`."""

    def __init__(self, values, rows, height):
        self.values, self.rows, self.height = np.asarray(values), rows, height


class Lod:
    """A tensor of sequences: `levels` are lists of lengths, outermost first."""

    def __init__(self, values, *levels):
        self.values, self.levels = np.asarray(values), list(levels)


def _variables(slot, value):
    """(name, value) of each variable in a slot."""
    if isinstance(value, list):
        return [(f"{slot}{i}", v) for i, v in enumerate(value)]
    return [(slot, value)]


def _set(scope, name, value):
    if isinstance(value, Rows):
        rows = scope.var(name).get_selected_rows()
        rows.set_height(value.height)
        rows.set_rows(list(value.rows))
        rows.get_tensor().set(value.values, paddle.CPUPlace())
        return
    tensor = scope.var(name).get_tensor()
    if isinstance(value, Lod):
        tensor.set(value.values, paddle.CPUPlace())
        tensor.set_recursive_sequence_lengths(value.levels)
    else:
        tensor.set(np.asarray(value), paddle.CPUPlace())


def _declare(block, name, value):
    array = value.values if isinstance(value, (Rows, Lod)) else np.asarray(value)
    kind = core.VarDesc.VarType
    dims = list(array.shape)
    if isinstance(value, Rows):  # declared like the whole tensor
        dims[0] = value.height
    var = block.create_var(
        name=name, shape=dims, dtype=str(array.dtype),
        type=kind.SELECTED_ROWS if isinstance(value, Rows) else kind.LOD_TENSOR,
        lod_level=None if isinstance(value, Rows) else len(getattr(value, "levels", [])),
        persistable=True)
    var.stop_gradient = array.dtype.kind != "f"
    return var


def _output(block, name, dtype):
    if dtype != "rows":
        return block.create_var(name=name, dtype=dtype, persistable=True)
    return block.create_var(name=name, dtype="float32", persistable=True,
                            type=core.VarDesc.VarType.SELECTED_ROWS)


def _offsets(lengths):
    return np.concatenate([[0], np.cumsum(lengths)]).astype("int64")


def _record(arrays, prefix, name, value):
    if isinstance(value, Rows):
        arrays[f"rows:{name}"] = np.asarray(value.rows, "int64")
        arrays[f"height:{name}"] = np.asarray([value.height], "int64")
        arrays[f"{prefix}:{name}"] = value.values
    elif isinstance(value, Lod):
        arrays[f"{prefix}:{name}"] = value.values
        for i, lengths in enumerate(value.levels):
            arrays[f"lod{i}:{prefix}:{name}"] = _offsets(lengths)
    else:
        arrays[f"{prefix}:{name}"] = np.asarray(value)


def _read(scope, name):
    """The value that the run left; None if there is none."""
    var = scope.find_var(name)
    if var is None:
        return None
    try:
        tensor = var.get_tensor()
    except Exception:
        try:
            rows = var.get_selected_rows()
        except Exception:  # a tensor array, step scopes
            return None
        values = np.array(rows.get_tensor())
        return Rows(values, list(rows.rows()), rows.height())
    if not tensor._is_initialized():
        return None
    lengths = tensor.recursive_sequence_lengths()
    values = np.array(tensor)
    return Lod(values, *lengths) if lengths else values


def write_archive(path, arrays):
    """np.savez_compressed with fixed dates: equal content, equal bytes."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(arrays):
            data = io.BytesIO()
            np.save(data, np.ascontiguousarray(arrays[name]) if np.ndim(arrays[name]) else arrays[name])
            info = zipfile.ZipInfo(name + ".npy", (2000, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, data.getvalue())


def case(family, name, op, inputs, outputs, attrs=None, grads=(),
         grad_outputs=None, tolerance=1e-5, ignore=(), opaque=()):
    """Runs one op in Paddle and writes its case.

    inputs        slot -> array, Rows, Lod, or a list of them
    outputs       slot -> dtype ("float32"), a list of dtypes, "rows" (selected
                  rows), or "=VAR": the variable of an input, written in place
    grads         input slots, or single variables of a slot ("X1"), whose
                  gradients are made too, by Paddle's backward
    grad_outputs  output slots through which gradients flow in; default: first
    ignore        variables whose values are not compared (random numbers,
                  scratch): only their shapes are
    opaque        variables that are not compared at all: only Paddle's own
                  gradient op knows what is in them
    """
    def build(block):
        for slot, value in inputs.items():
            for var, v in _variables(slot, value):
                _declare(block, var, v).stop_gradient |= bool(grads) and not (
                    slot in grads or var in grads)
        made = {}
        for slot, dtype in outputs.items():
            made[slot] = [
                block.var(d[1:]) if d.startswith("=") else _output(block, var, d)
                for var, d in _variables(slot, dtype)]
        block.append_op(
            type=op,
            inputs={s: [block.var(v) for v, _ in _variables(s, x)] for s, x in inputs.items()},
            outputs=made, attrs=attrs or {})
        return [var for slot in (grad_outputs or list(outputs)[:1]) for var in made[slot]]

    values = {v: x for s, y in inputs.items() for v, x in _variables(s, y)}
    wanted = [v for s in grads for v, _ in _variables(s, inputs.get(s))]
    program_case(family, name, build, values, wanted, tolerance, ignore, opaque)


def program_case(family, name, build, values, wanted=(), tolerance=1e-5, ignore=(), opaque=(), loss=False):
    """Like `case` for a program that `build(block)` makes; it declares the
    variables of `values` itself (`_declare`) and returns the variables through
    which gradients flow in. With `loss` there is one such variable, of one
    element, whose gradient is 1 (Paddle cannot start loops elsewhere)."""
    main = paddle.static.Program()
    with paddle.utils.unique_name.guard(), paddle.static.program_guard(main, paddle.static.Program()):
        block = main.global_block()
        targets = build(block)
        scope = core.Scope()
        before = dict(values)
        if wanted and loss:
            paddle.static.append_backward(targets[0])
        elif wanted:
            with paddle.static.scope_guard(scope):  # shapes of the targets
                probe = main.clone()
                for var, value in before.items():
                    _set(scope, var, value)
                exe = paddle.static.Executor(paddle.CPUPlace())
                shapes = [(np.array(x).shape, x.recursive_sequence_lengths()) for x in exe.run(
                    probe, fetch_list=[t.name for t in targets], return_numpy=False)]
            scope = core.Scope()
            random = np.random.RandomState(len(name))
            seeds = []
            for target, (dims, lengths) in zip(targets, shapes):
                seed = random.uniform(-1, 1, dims).astype(str(paddle.base.data_feeder.convert_dtype(target.dtype)))
                seed = Lod(seed, *lengths) if lengths else seed
                before[target.name + "@SEED"] = seed
                seeds.append(_declare(block, target.name + "@SEED", seed))
                # Rows of sequences are unknown or wrong before the run.
                seeds[-1].desc.set_shape(target.shape)
            paddle.static.gradients(targets, [block.var(v) for v in wanted], seeds)
    # Sub-blocks have scopes of their own: of their programs, targets and
    # gradients are fetched and compared, not whatever an op wrote.
    fetched = sorted({t.name for t in targets} | {v + "@GRAD" for v in wanted}) if len(main.blocks) > 1 else []
    original = main.clone()
    for var in main.global_block().vars.values():
        if not fetched or var.name in fetched:
            var.persistable = True
    for program in (main, original):
        for block in program.blocks:  # where the op was made: paths of this machine
            for op in block.ops:
                op.desc.remove_attr("op_callstack")
    with paddle.static.scope_guard(scope):
        for var, value in before.items():
            _set(scope, var, value)
        exe = paddle.static.Executor(paddle.CPUPlace())
        got = exe.run(original if fetched else main, feed={}, fetch_list=fetched, return_numpy=False)
        arrays = {"program": np.frombuffer(main.desc.serialize_to_string(), "uint8"), "tolerance": np.float64(tolerance)}
        for var, value in before.items():
            _record(arrays, "in", var, value)
        for var, value in zip(fetched, got):
            _record(arrays, "out", var, np.array(value))
        written = {a for op in main.global_block().ops for a in op.output_arg_names}
        for var in sorted(written if not fetched else ()):
            value = _read(scope, var)
            if value is None or var in opaque:
                continue
            if var in ignore:
                arrays[f"dims:{var}"] = np.asarray(np.shape(value), "int64")
            else:
                _record(arrays, "out", var, value)
    write_archive(os.path.join(DATA, family, name + ".npz"), arrays)


def run_case(family, name, build, feeds, fetches=(), tolerance=1e-5):
    """Trains a program in Paddle's executor and keeps every step:
    tests/data/paddle_runs/FAMILY/NAME.npz with

      program      uint8    the serialized ProgramDesc
      tolerance    float64  largest relative error
      in:VAR       persistable variables before the first step
      feed:VAR     [steps, ...] what each step was fed
      loss         [steps] the loss of each step
      fetch:VAR    [steps, ...] other values of each step
      out:VAR      persistable variables after the last step

    `build()` makes the network in the default programs and returns the loss
    and what else is fetched. Feeds may name persistable variables: those are
    set before the step, as Paddle's executor sets a learning rate."""
    main, startup = paddle.static.Program(), paddle.static.Program()
    main.random_seed = startup.random_seed = 5
    with paddle.utils.unique_name.guard(), paddle.static.program_guard(main, startup):
        loss, *others = build()
    others = [v.name for v in others] + list(fetches)
    for block in main.blocks:
        for op in block.ops:
            op.desc.remove_attr("op_callstack")
    persistable = sorted(v.name for v in main.list_vars() if v.persistable)
    arrays = {"program": np.frombuffer(main.desc.serialize_to_string(), "uint8"),
              "tolerance": np.float64(tolerance)}
    exe, scope = paddle.static.Executor(paddle.CPUPlace()), core.Scope()
    with paddle.static.scope_guard(scope):
        exe.run(startup)
        value = lambda v: np.array(scope.find_var(v).get_tensor())
        arrays.update({f"in:{v}": value(v) for v in persistable})
        steps = []
        for i in range(len(next(iter(feeds.values())))):
            given = {n: a[i] for n, a in feeds.items()}
            for n in set(given) & set(persistable):
                _set(scope, n, given.pop(n))
            steps.append([np.array(x) for x in exe.run(
                main, feed=given, fetch_list=[loss.name, *others])])
        arrays.update({f"out:{v}": value(v) for v in persistable})
    arrays.update({f"feed:{n}": np.stack(a) for n, a in feeds.items()})
    arrays["loss"] = np.array([s[0] for s in steps], "float64").reshape(-1)
    arrays.update({f"fetch:{n}": np.stack([s[i + 1] for s in steps]) for i, n in enumerate(others)})
    write_archive(os.path.join(RUNS, family, name + ".npz"), arrays)
