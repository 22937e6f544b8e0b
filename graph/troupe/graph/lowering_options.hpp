// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace troupe::graph {

/// How a program is turned into a graph: which passes rewrite it, and how
/// gradients are merged. Backends turn off the options that their devices or
/// kernels do not support (actors/backend/backend.hpp). The defaults are
/// usually the fastest.
///
/// Unless noted otherwise, a pass does not change results: they are
/// bit-identical.
struct lowering_options {
  /// Training batch norms compute their statistics over all devices, so that
  /// several devices give the same result as one device on the whole batch. If
  /// false, only ops of type sync_batch_norm do so. Changes results. Not
  /// available with merge_strategy::none.
  bool sync_batch_norm = false;
  /// Consecutive dense gradients of the same dtype are merged by one
  /// all_reduce, up to this many bytes in total. 0: one all_reduce per
  /// gradient.
  std::size_t fuse_all_reduce_bytes = 256 * 1024;
  /// Samples per step over all devices; 0: unknown. Some passes use it to
  /// decide whether they pay off. Steps may have a different number of samples.
  std::int64_t batch = 0;

  /// Fuse batch norm, sum and relu into one op, and their gradients too, unless
  /// a value between them is fetched (passes/fuse_batch_norm.hpp).
  bool fuse_batch_norms = true;
  /// The backward pass recomputes the output of a batch norm followed by a relu
  /// instead of keeping it (passes/recompute_activations.hpp).
  bool recompute_activations = true;
  /// Free a value early if later ops read only its shape
  /// (passes/shape_inputs.hpp).
  bool separate_shape_inputs = true;
  /// Gradient ops of activations and softmax overwrite their input gradient if
  /// no other op reads it (passes/write_in_place.hpp).
  bool write_in_place = true;
  /// Parameters and their optimizer state may stay in a layout of the device's
  /// kernels between steps, if its backend has one. Call
  /// `synchronize_parameters` before reading elements of an executor's
  /// `parameters`; only then are they plain. Not available over processes.
  bool kernel_layouts = false;
  /// Devices that share memory use a single copy of each variable that at most
  /// one of them writes. With the strategies reduce and replicate, parameters
  /// are then not broadcast. Not available over processes.
  bool share_parameters = true;
  /// Among devices that share memory, one device computes the gradient of a
  /// large matrix from the samples of all devices. This is done where it moves
  /// fewer bytes than merging one gradient per device
  /// (merging/gathered_product.hpp). Results differ by rounding. Not available
  /// over processes.
  bool gather_products = true;
  /// With the strategies reduce and replicate, on devices that share memory: an
  /// update op itself merges or gathers gradients that no other op reads
  /// (merging/merging_update.hpp). Not available over processes.
  bool merge_in_updates = true;

  /// On GPUs: weight gradients are computed on a second stream, of lower
  /// priority, while the backward pass goes on (passes/gradient_stream.hpp).
  bool gradient_stream = true;

  /// No passes: the graph of the program as written.
  static lowering_options none() {
    lowering_options o;
    o.fuse_batch_norms = o.recompute_activations = o.separate_shape_inputs =
      o.write_in_place = o.kernel_layouts = o.share_parameters =
        o.gather_products = o.merge_in_updates = o.gradient_stream = false;
    return o;
  }
};

} // namespace troupe::graph
