// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/data/classifier.hpp>

#include <troupe/base/error.hpp>
#include <troupe/training/data/feed_info.hpp>

#include <algorithm>

namespace troupe {

std::optional<classifier> find_classifier(const graph::program& p) {
  const auto feeds = graph::feed_names(p);
  for (const graph::op_desc& op : p.main().ops) {
    const bool with_softmax = op.type == "softmax_with_cross_entropy";
    if (!with_softmax && op.type != "cross_entropy"
        && op.type != "cross_entropy2")
      continue;
    const auto& label = op.only_input("Label");
    if (std::ranges::binary_search(feeds, label)
        && !op.attributes.get_bool("soft_label", false))
      return with_softmax
               ? classifier{op.only_output("Softmax"), label, ignored_label(op),
                            op.only_input("Logits")}
               : classifier{op.only_input("X"), label, ignored_label(op),
                            op.only_input("X")};
  }
  return std::nullopt;
}

hits count_hits(const tensor& scores, const tensor& labels,
                std::int64_t ignored) {
  const std::int64_t classes = scores.dims().dim(-1);
  const std::int64_t rows = classes > 0 ? scores.numel() / classes : 0;
  if (rows != labels.numel())
    throw error(errc::shape_mismatch, "scores " + to_string(scores.dims())
                                        + " for labels "
                                        + to_string(labels.dims()));
  hits found;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t label = labels.data<std::int64_t>()[row];
    if (label == ignored)
      continue;
    const float* begin = scores.data<float>() + row * classes;
    const auto best = std::max_element(begin, begin + classes) - begin;
    found.correct += best == label;
    ++found.total;
  }
  return found;
}

} // namespace troupe
