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

namespace troupe::apps {

/// What a program wants to be fed under one name.
struct feed_info {
  std::string name;
  dtype type = dtype::float32;
  shape dims; ///< axis 0 counts samples; -1 where the program leaves it open
  /// Values are whole numbers in [0, below): class labels, table rows.
  std::optional<std::int64_t> below;
  /// Not split over devices: the value of a persistable variable, which need
  /// not be fed.
  bool persistable = false;
  /// A number outside of that range that stands for no label: the loss skips
  /// it.
  std::optional<std::int64_t> ignored = std::nullopt;
  /// Not split over devices either: no axis counts samples
  /// (graph/whole_feeds.hpp).
  bool whole = false;

  bool has_samples() const { return !persistable && !whole; }
};

/// The feeds of a program, sorted by name. Ranges of labels and ids follow
/// from the ops that read them: the classes of a cross entropy and the label
/// that it ignores, the rows of an embedding table.
std::vector<feed_info> describe_feeds(const graph::program& p);

/// The label that a cross entropy ignores, -100 unless the program says which.
std::int64_t ignored_label(const graph::op_desc& loss);

/// The persistable variables of a program, which may be fed as well.
std::vector<feed_info> describe_persistable(const graph::program& p);

/// Null if there is no feed of that name.
const feed_info* find_feed(std::span<const feed_info> feeds,
                           std::string_view name);

/// Elements of one sample, or of a feed without samples. Throws
/// error(shape_mismatch) if the program leaves more than the batch open.
std::int64_t sample_elements(const feed_info& feed);

/// "image float32 [-1, 784]".
std::string to_string(const feed_info& feed);

} // namespace troupe::apps
