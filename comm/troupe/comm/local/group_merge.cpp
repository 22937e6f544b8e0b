// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/local/group_merge.hpp>

#include <troupe/base/error.hpp>
#include <troupe/comm/local/merge_rows.hpp>
#include <troupe/comm/value_checks.hpp>
#include <troupe/kernels/device.hpp>
#include <troupe/kernels/part_runner.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace troupe::comm::local {

namespace {

bool gives_value(collective_kind kind, std::size_t root, std::size_t rank) {
  return kind != collective_kind::broadcast || rank == root;
}

bool gets_result(collective_kind kind, std::size_t root, std::size_t rank) {
  return kind != collective_kind::reduce || rank == root;
}

bool gives_rows(collective_kind kind, std::size_t root,
                std::span<const rank_value> values) {
  for (std::size_t r = 0; r < values.size(); ++r)
    if (values[r].in && values[r].in->is_rows() && gives_value(kind, root, r))
      return true;
  return false;
}

/// The same memory in that layout.
tensor in_layout(tensor t, const std::shared_ptr<const layout>& format) {
  if (!t || t.format() == format)
    return t;
  tensor result{t.dims(), t.type(), t.memory(), format};
  result.set_levels(t.levels());
  return result;
}

/// Releases the tensors at the end of a run.
struct emptied {
  std::vector<tensor>& values;
  ~emptied() { values.clear(); }
};

} // namespace

group_merge::group_merge(std::vector<device*> ranks,
                         const local_group_options& options)
  : ranks_(std::move(ranks)), helpers_(options.helpers),
    sum_(options.max_parts) {
  if (ranks_.empty())
    throw error(errc::invalid_argument, "a group without ranks");
}

void group_merge::run(collective_kind kind, std::size_t root,
                      std::span<const rank_value> values) {
  if (values.size() != size())
    refuse_call(kind, std::to_string(values.size()) + " values for "
                        + std::to_string(size()) + " ranks");
  if (root >= size())
    refuse_call(kind, "root " + std::to_string(root) + " of "
                        + std::to_string(size()) + " ranks");
  if (gives_rows(kind, root, values))
    merge_sparse(kind, root, values);
  else
    merge_dense(kind, root, values);
}

void group_merge::merge_dense(collective_kind kind, std::size_t root,
                              std::span<const rank_value> values) {
  const emptied after{inputs_};
  take_inputs(kind, root, values);
  const auto format = take_layout();
  auto result = in_layout(sum(kind, root), format);
  const auto shares = size() > 1 && kind != collective_kind::reduce;
  for (std::size_t r = 0; r < size(); ++r)
    if (values[r].out && gets_result(kind, root, r))
      values[r].out->set(shares ? result.share() : result);
}

void group_merge::take_inputs(collective_kind kind, std::size_t root,
                              std::span<const rank_value> values) {
  inputs_.resize(size());
  for (std::size_t r = 0; r < size(); ++r)
    if (values[r].in && values[r].in->is_tensor() && gives_value(kind, root, r))
      inputs_[r] = values[r].in->as_tensor();
}

/// Sums are elementwise. If all ranks have the same permuting layout, they can
/// therefore process elements in storage order. In that case, returns the
/// layout and replaces the inputs by plain tensors on the same memory.
/// Otherwise, replaces inputs that are not plain by plain copies and returns
/// null.
std::shared_ptr<const layout> group_merge::take_layout() {
  const auto first = std::ranges::find_if(
    inputs_, [](const tensor& t) { return static_cast<bool>(t); });
  if (first == inputs_.end())
    return nullptr;
  const auto format = first->format();
  const auto alike =
    format && format->is_permutation()
    && std::ranges::all_of(inputs_, [&](const tensor& t) {
         return !t || (t.format() && t.format()->equals(*format));
       });
  for (std::size_t r = 0; r < size(); ++r)
    if (auto& t = inputs_[r]; t && alike)
      t = in_layout(std::move(t), nullptr);
    else if (t && !t.is_plain())
      t = clone(t, ranks_[r]->memory());
  return alike ? format : nullptr;
}

/// The plain result: the sum, or the root's value.
tensor group_merge::sum(collective_kind kind, std::size_t root) {
  if (kind == collective_kind::broadcast) {
    if (!inputs_[root])
      refuse_rank(kind, root, "is the root and has no value");
    return inputs_[root];
  }
  auto result = memory_of_sum(kind, root);
  sum_.bind(kind, inputs_, result);
  run_parts(helpers_, sum_.parts(),
            [this](std::size_t part) { sum_.run_part(part); });
  return result;
}

tensor group_merge::memory_of_sum(collective_kind kind,
                                  std::size_t root) const {
  const auto first =
    std::ranges::find_if(inputs_, [](const tensor& t) { return bool(t); });
  if (first == inputs_.end())
    return {};
  const auto owner = kind == collective_kind::reduce
                       ? root
                       : static_cast<std::size_t>(first - inputs_.begin());
  const auto& own = inputs_[owner];
  return own && !own.is_shared() ? own
                                 : tensor::make(ranks_[owner]->memory(),
                                                first->dims(), first->type());
}

void group_merge::merge_sparse(collective_kind kind, std::size_t root,
                               std::span<const rank_value> values) {
  if (kind == collective_kind::broadcast)
    refuse_rank(kind, root, "gives rows, expected a tensor");
  rows_.assign(size(), std::nullopt);
  for (std::size_t r = 0; r < size(); ++r)
    if (const auto* in = values[r].in; in && in->is_rows())
      rows_[r] = view_of(&in->as_rows(), r);
    else if (in && in->is_tensor())
      refuse_rank(kind, r, "gives a tensor, another rank rows");
  // Duplicates are kept, as on one device: optimizers add up repeated rows
  // anyway.
  check_rows(rows_);
  auto merged = merge_rows(rows_, ranks_[root]->memory());
  if (size() > 1 && kind != collective_kind::reduce)
    merged.values = merged.values.share();
  variable* first = nullptr; // gets the rows that the others get copies of
  for (std::size_t r = size(); r-- > 0;)
    if (auto* out = values[r].out; out && gets_result(kind, root, r)) {
      if (first)
        first->set(merged);
      first = out;
    }
  if (first)
    first->set(std::move(merged));
}

} // namespace troupe::comm::local
