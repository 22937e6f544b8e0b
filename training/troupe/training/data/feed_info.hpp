// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>
#include <troupe/kernels/dtype.hpp>
#include <troupe/kernels/shape.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// What a program expects as one of its feeds.
struct feed_info {
  std::string name;
  dtype type = dtype::float32;
  shape dims; ///< axis 0 counts samples; -1: any extent
  /// Values are whole numbers in [0, below): class labels, table rows.
  std::optional<std::int64_t> below;
  /// The value of a persistable variable. It need not be fed and is not split
  /// over devices.
  bool persistable = false;
  /// A number outside of that range that means "no label": the loss ignores it.
  std::optional<std::int64_t> ignored = std::nullopt;
  /// No axis counts samples, so it is not split over devices
  /// (graph/whole_feeds.hpp).
  bool whole = false;

  /// Whether axis 0 counts samples.
  bool has_samples() const { return !persistable && !whole; }
};

/// The feeds of a program, sorted by name. Ranges of labels and ids are derived
/// from the ops that read them: the classes of a cross entropy and the label
/// that it ignores, the rows of an embedding table.
std::vector<feed_info> describe_feeds(const graph::program& p);

/// The label that a cross entropy ignores; -100 unless the op has another.
std::int64_t ignored_label(const graph::op_desc& loss);

/// The persistable variables of a program, which can be fed too.
std::vector<feed_info> describe_persistable(const graph::program& p);

/// Null if there is no feed of that name.
const feed_info* find_feed(std::span<const feed_info> feeds,
                           std::string_view name);

/// Number of elements of one sample, or of a whole feed without samples. Throws
/// error(shape_mismatch) if other extents than the batch are unknown.
std::int64_t sample_elements(const feed_info& feed);

/// "image float32 [-1, 784]".
std::string to_string(const feed_info& feed);

} // namespace troupe
