// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/local/dense_sum.hpp>

#include <troupe/comm/value_checks.hpp>

#include <algorithm>

namespace troupe::comm::local {

namespace {

// Below this size, moving a part to another thread costs more than it saves.
constexpr std::size_t min_part_bytes = std::size_t{128} << 10;
// Parts begin at multiples of this many elements, so that no two threads write
// the same cache line.
constexpr std::size_t part_granularity = 4096;

// The first rank with a tensor, which the others must match.
std::size_t first_rank(collective_kind kind, std::span<const tensor> inputs) {
  const auto found = std::ranges::find_if(
    inputs, [](const tensor& value) { return bool(value); });
  if (found == inputs.end())
    refuse_call(kind, "no rank has a value");
  return static_cast<std::size_t>(found - inputs.begin());
}

std::size_t round_up(std::size_t value, std::size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

} // namespace

dense_sum::dense_sum(std::size_t max_parts)
  : max_parts_(std::max<std::size_t>(max_parts, 1)),
    cache_bytes_(last_level_cache_bytes()) {}

void dense_sum::bind(collective_kind kind, std::span<const tensor> inputs,
                     tensor& output) {
  parts_ = 0;
  sources_.clear();
  const auto first = first_rank(kind, inputs);
  const auto& like = inputs[first];
  const value_form form{first, like.type(), like.dims()};
  require_addable(kind, form);
  for (std::size_t r = first; r < inputs.size(); ++r)
    if (inputs[r]) {
      require_alike(kind, {r, inputs[r].type(), inputs[r].dims()}, form);
      sources_.push_back(inputs[r].raw());
    }
  if (!output)
    refuse_call(kind, "the result has no memory");
  type_ = like.type();
  elements_ = static_cast<std::size_t>(like.numel());
  const auto in_place = std::ranges::find(sources_, output.raw());
  // Non-temporal stores avoid reading lines that are then overwritten. They pay
  // off only if the result is not also a source and would not stay in the
  // cache.
  to_ = {output.raw(), in_place == sources_.end()
                         && elements_ * size_of(type_) * (sources_.size() + 1)
                              > cache_bytes_};
  if (sources_.size() == 1 && in_place != sources_.end())
    elements_ = 0; // the sum is there already
  cut_parts();
}

void dense_sum::run_part(std::size_t part) const noexcept {
  const auto first = part * part_elements_;
  const auto count =
    std::min(part_elements_, elements_ - std::min(first, elements_));
  const auto element = size_of(type_);
  if (sources_.size() == 1)
    copy(sources_[0], to_, first * element, count * element);
  else
    add(type_, sources_, to_, first, count);
}

void dense_sum::cut_parts() {
  const auto wanted = std::clamp<std::size_t>(
    elements_ * size_of(type_) / min_part_bytes, 1, max_parts_);
  part_elements_ =
    round_up((elements_ + wanted - 1) / wanted, part_granularity);
  parts_ =
    elements_ == 0 ? 1 : round_up(elements_, part_elements_) / part_elements_;
}

} // namespace troupe::comm::local
