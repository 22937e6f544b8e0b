// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/layers/layer_writer.hpp>

namespace troupe::graph::layers {

variable_ref mean(const variable_ref& x, call at) {
  return layer_writer{x.net(), "mean", at}.append("mean", {slot("X", x)}, {});
}

variable_ref softmax_with_cross_entropy(
  const variable_ref& logits, const variable_ref& label,
  const softmax_with_cross_entropy_options& options, call at) {
  layer_writer layer{logits.net(), "softmax_with_cross_entropy", at};
  return layer.append_with("Softmax", "softmax_with_cross_entropy",
                           {slot("Logits", logits), slot("Label", label)},
                           {{"soft_label", options.soft_label},
                            {"ignore_index", options.ignore_index},
                            {"axis", std::int32_t{-1}},
                            {"numeric_stable_mode", true},
                            {"use_softmax", true}},
                           "Loss");
}

variable_ref cross_entropy(const variable_ref& logits,
                           const variable_ref& label, call at) {
  return mean(softmax_with_cross_entropy(logits, label, {}, at), at);
}

variable_ref accuracy(const variable_ref& scores, const variable_ref& label,
                      const accuracy_options& options, call at) {
  layer_writer layer{scores.net(), "accuracy", at};
  auto values = layer.temporary();
  auto indices = layer.temporary();
  layer.append("top_k_v2", {slot("X", scores)},
               {slot("Out", values), slot("Indices", indices)},
               {{"k", options.k},
                {"axis", std::int32_t{-1}},
                {"largest", true},
                {"sorted", true}},
               indices);
  auto share = layer.temporary();
  return layer.append(
    "accuracy",
    {slot("Out", values), slot("Indices", indices), slot("Label", label)},
    {slot("Accuracy", share), slot("Correct", layer.temporary()),
     slot("Total", layer.temporary())},
    {}, share);
}

} // namespace troupe::graph::layers
