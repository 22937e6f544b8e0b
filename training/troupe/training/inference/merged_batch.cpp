// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/inference/merged_batch.hpp>

#include <troupe/actors/steps/scatter.hpp>
#include <troupe/base/error.hpp>

#include <algorithm>

namespace troupe::inference {

namespace {

std::size_t depth_of(const tensor& value) {
  return value.levels() ? value.levels()->size() : 0;
}

bool differ_in_samples_only(const tensor& a, const tensor& b) {
  if (a.dims().rank() != b.dims().rank() || depth_of(a) != depth_of(b))
    return false;
  for (std::size_t axis = 1; axis < a.dims().rank(); ++axis)
    if (a.dims()[axis] != b.dims()[axis])
      return false;
  return true;
}

/// A single device's value as it is, without a copy.
tensor whole_output(const step_result& result, const std::string& name) {
  const auto found = result.fetched.find(name);
  if (found != result.fetched.end() && found->second.size() == 1)
    return found->second.front();
  return result.merged(name);
}

} // namespace

bool can_merge(const feed_map& a, const feed_map& b) {
  return std::ranges::equal(a, b, [](const auto& left, const auto& right) {
    return differ_in_samples_only(left.second, right.second);
  });
}

feed_map merged_feeds(std::span<const feed_map* const> parts, arena& memory) {
  if (parts.size() == 1)
    return *parts.front();
  feed_map whole;
  std::vector<const tensor*> values;
  for (auto& [name, value] : *parts.front()) {
    values.clear();
    for (auto* feeds : parts)
      values.push_back(&feeds->find(name)->second);
    whole.emplace(name, actors::joined(values, memory));
  }
  return whole;
}

std::vector<output_map> split_outputs(std::span<const std::int64_t> samples,
                                      const step_result& result,
                                      const std::vector<std::string>& outputs) {
  std::vector<output_map> parts(samples.size());
  for (auto& name : outputs) {
    const auto whole = whole_output(result, name);
    std::int64_t first = 0;
    for (std::size_t i = 0; i < samples.size(); first += samples[i++])
      parts[i].emplace(
        name, samples.size() == 1 ? whole : whole.samples(first, samples[i]));
  }
  return parts;
}

void require_samples(const step_result& result,
                     const std::vector<std::string>& outputs,
                     std::int64_t samples) {
  for (auto& name : outputs) {
    const auto whole = whole_output(result, name);
    if (whole.dims().rank() == 0 || whole.num_samples() != samples)
      throw error(errc::shape_mismatch,
                  "the output has shape " + to_string(whole.dims())
                    + " for a batch of " + std::to_string(samples)
                    + " samples, so requests cannot be merged; with max_batch "
                      "= 1 each request runs alone",
                  {.variable = name});
  }
}

} // namespace troupe::inference
