// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/tasks/op_tasks.hpp>
#include <troupe/base/assert.hpp>
#include <troupe/comm/collective.hpp>
#include <troupe/comm/sparse.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

namespace troupe::actors {

namespace {

comm::collective_kind kind_of(graph::op_kind kind) {
  switch (kind) {
  case graph::op_kind::reduce: return comm::collective_kind::reduce;
  case graph::op_kind::broadcast: return comm::collective_kind::broadcast;
  default: return comm::collective_kind::all_reduce;
  }
}

class collective_task final : public op_task {
public:
  collective_task(graph::op_kind kind, std::size_t root,
                  std::vector<device*> ranks,
                  std::vector<collective_group> groups, part_runner* helpers,
                  std::size_t workers, bool deterministic)
    : kind_(kind), root_(root), ranks_(std::move(ranks)),
      groups_(std::move(groups)), helpers_(helpers) {
    dense_ = comm::make_local_collective(ranks_.size(),
                                         {.kind = kind_of(kind),
                                          .root = root,
                                          .deterministic = deterministic,
                                          .share_results = true,
                                          .max_parts = workers});
  }

  launch_status run(step_state& step, completion&) override {
    for (auto& g : groups_) {
      if (is_sparse(g, step.slot))
        run_sparse(g, step.slot);
      else
        run_dense(g, step.slot);
    }
    return launch_status::done;
  }

private:
  static bool is_sparse(const collective_group& g, std::uint32_t slot) {
    for (auto& s : g.inputs)
      if (s.at(slot).is_rows())
        return true;
    return false;
  }

  void run_dense(const collective_group& g, std::uint32_t slot) {
    take_inputs(g, slot);
    const auto format = take_layout();
    // Results are written to the inputs' memory, unless another variable shares
    // it. Ranks without memory share the result.
    outputs_ = inputs_;
    for (std::size_t i = 0; i < outputs_.size(); ++i)
      if (outputs_[i] && outputs_[i].is_shared())
        outputs_[i] = tensor::make(ranks_[i]->memory(), outputs_[i].dims(),
                                   outputs_[i].type());
    if (kind_ == graph::op_kind::reduce && !outputs_[root_])
      outputs_[root_] = memory_like_inputs();
    dense_->bind(inputs_, outputs_);
    inputs_.clear();
    run_parts(helpers_, dense_->parts(),
              [this](std::size_t part) { dense_->run_part(part); });
    dense_->finish();
    for (std::size_t i = 0; i < g.outputs.size(); ++i)
      g.outputs[i].at(slot).set(in_layout(
        std::move(outputs_[g.outputs.size() == 1 ? root_ : i]), format));
    outputs_.clear();
  }

  /// Collectives are elementwise. If all ranks have the same permuting layout,
  /// they can therefore process elements in storage order. In that case,
  /// returns the layout and replaces the inputs by plain tensors on the same
  /// memory. Otherwise, replaces inputs that are not plain by plain copies and
  /// returns null.
  std::shared_ptr<const layout> take_layout() {
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
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      if (auto& t = inputs_[i]; t && alike)
        t = in_layout(std::move(t), nullptr);
      else if (t && !t.is_plain())
        t = plain_copy(t, *ranks_[i], *ranks_[i]);
    return alike ? format : nullptr;
  }

  /// The same memory in that layout.
  static tensor in_layout(tensor t, std::shared_ptr<const layout> format) {
    if (!t || t.format() == format)
      return t;
    tensor result{t.dims(), t.type(), t.memory(), std::move(format)};
    result.set_levels(t.levels());
    return result;
  }

  /// One tensor per rank; a broadcast reads only the root's.
  void take_inputs(const collective_group& g, std::uint32_t slot) {
    inputs_.assign(ranks_.size(), tensor{});
    for (std::size_t i = 0; i < g.inputs.size(); ++i)
      if (auto& value = g.inputs[i].at(slot); value.is_tensor())
        inputs_[g.inputs.size() == 1 ? root_ : i] = value.as_tensor();
  }

  /// For a root without samples, which has no gradient of its own.
  tensor memory_like_inputs() {
    for (auto& t : inputs_)
      if (t)
        return tensor::make(ranks_[root_]->memory(), t.dims(), t.type());
    return {};
  }

  void run_sparse(const collective_group& g, std::uint32_t slot) {
    TROUPE_ASSERT(kind_ != graph::op_kind::broadcast);
    rows_.clear();
    for (auto& s : g.inputs)
      if (s.at(slot).is_rows())
        rows_.push_back(&s.at(slot).as_rows());
    // Duplicates are kept, as on one device: optimizers add up repeated rows
    // anyway.
    auto merged = comm::merge_rows(rows_, ranks_[root_]->memory(),
                                   comm::row_merge::concatenate);
    for (std::size_t i = 1; i < g.outputs.size(); ++i) {
      selected_rows shared = merged;
      shared.values = merged.values.share();
      g.outputs[i].at(slot).set(std::move(shared));
    }
    g.outputs[0].at(slot).set(std::move(merged));
  }

  graph::op_kind kind_;
  std::size_t root_;
  std::vector<device*> ranks_;
  std::vector<collective_group> groups_;
  part_runner* helpers_;
  std::unique_ptr<comm::collective> dense_;
  // Tensors of the current group; kept to reuse their memory.
  std::vector<tensor> inputs_;
  std::vector<tensor> outputs_;
  std::vector<const selected_rows*> rows_;
};

class fetch_task final : public op_task {
public:
  fetch_task(device& on, std::size_t index, const storage& from, arena& host)
    : device_(on), index_(index), from_(from), host_(host) {}

  launch_status run(step_state& step, completion&) override {
    auto& value = from_.at(step.slot);
    if (!step.wanted[index_] || !value.has_value())
      return launch_status::done;
    if (!value.is_tensor())
      throw error(errc::invalid_argument,
                  value.is_rows() ? "a row-sparse variable cannot be fetched"
                                  : "only a tensor can be fetched",
                  {.variable = std::string{from_.name()}});
    try {
      step.fetched[index_] = device_.to_host(value.as_tensor(), host_);
    } catch (const error& e) {
      throw e.with_context({.variable = std::string{from_.name()}});
    }
    return launch_status::done;
  }

private:
  device& device_;
  std::size_t index_;
  storage from_;
  arena& host_;
};

} // namespace

std::unique_ptr<op_task>
make_collective_task(graph::op_kind kind, std::size_t root,
                     std::vector<device*> ranks,
                     std::vector<collective_group> groups, part_runner* helpers,
                     std::size_t workers, bool deterministic) {
  return std::make_unique<collective_task>(kind, root, std::move(ranks),
                                           std::move(groups), helpers, workers,
                                           deterministic);
}

std::unique_ptr<op_task> make_fetch_task(device& on, std::size_t index,
                                         const storage& from, arena& host) {
  return std::make_unique<fetch_task>(on, index, from, host);
}

} // namespace troupe::actors
