// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/tasks/op_tasks.hpp>
#include <troupe/comm/local/group_merge.hpp>

#include <algorithm>
#include <memory>
#include <string>
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
                  std::vector<collective_group> groups,
                  const comm::local_group_options& options)
    : kind_(kind_of(kind)), root_(root), groups_(std::move(groups)),
      merge_(std::move(ranks), options), values_(merge_.size()) {}

  launch_status run(step_state& step, completion&) override {
    for (auto& g : groups_) {
      take_values(g, step.slot);
      merge_.run(kind_, root_, values_);
    }
    return launch_status::done;
  }

private:
  void take_values(const collective_group& g, std::uint32_t slot) {
    const auto take = [&](const std::vector<storage>& from,
                          variable* comm::rank_value::*to) {
      for (auto& v : values_)
        v.*to = nullptr;
      for (std::size_t i = 0; i < from.size(); ++i)
        values_[from.size() == 1 ? root_ : i].*to = &from[i].at(slot);
    };
    take(g.inputs, &comm::rank_value::in);
    take(g.outputs, &comm::rank_value::out);
  }

  comm::collective_kind kind_;
  std::size_t root_;
  std::vector<collective_group> groups_;
  comm::local::group_merge merge_;
  std::vector<comm::rank_value> values_; // of the current variable, by rank
};

/// Keeps the values of the current run until the run is complete. There is only
/// one run at a time.
class rank_task final : public op_task {
public:
  rank_task(graph::op_kind kind, std::size_t root,
            const collective_ranks& ranks, std::size_t device,
            std::vector<storage> inputs, std::vector<storage> outputs)
    : kind_(kind_of(kind)), root_(root), ranks_(ranks), device_(device),
      inputs_(std::move(inputs)), outputs_(std::move(outputs)),
      values_(std::max(inputs_.size(), outputs_.size())) {}

  launch_status run(step_state& step, completion& whole) override {
    take_values(step.slot);
    return ranks_.start(device_, {kind_, root_, values_}, whole, step).state;
  }

  // The other ranks wait for this one and must learn that it has failed.
  launch_status skip(step_state& step, completion&) override {
    ranks_.of(device_).fail(step.reason());
    return launch_status::done;
  }

private:
  void take_values(std::uint32_t slot) {
    for (std::size_t i = 0; i < values_.size(); ++i)
      values_[i] = {inputs_.empty() ? outputs_[i].name() : inputs_[i].name(),
                    inputs_.empty() ? nullptr : &inputs_[i].at(slot),
                    outputs_.empty() ? nullptr : &outputs_[i].at(slot)};
  }

  comm::collective_kind kind_;
  std::size_t root_;
  const collective_ranks& ranks_;
  std::size_t device_;
  std::vector<storage> inputs_;
  std::vector<storage> outputs_;
  std::vector<comm::rank_value> values_; // of the current step
};

class fetch_task final : public op_task {
public:
  fetch_task(device& on, stream& queue, std::size_t index, const storage& from,
             arena& host)
    : device_(on), queue_(queue), index_(index), from_(from), host_(host) {}

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
      step.fetched[index_] = device_.to_host(value.as_tensor(), host_, queue_);
    } catch (const error& e) {
      throw e.with_context({.variable = std::string{from_.name()}});
    }
    return launch_status::done;
  }

private:
  device& device_;
  stream& queue_;
  std::size_t index_;
  storage from_;
  arena& host_;
};

} // namespace

std::unique_ptr<op_task>
make_collective_task(graph::op_kind kind, std::size_t root,
                     std::vector<device*> ranks,
                     std::vector<collective_group> groups,
                     const comm::local_group_options& options) {
  return std::make_unique<collective_task>(kind, root, std::move(ranks),
                                           std::move(groups), options);
}

std::unique_ptr<op_task> make_rank_task(graph::op_kind kind, std::size_t root,
                                        const collective_ranks& ranks,
                                        std::size_t device,
                                        std::vector<storage> inputs,
                                        std::vector<storage> outputs) {
  return std::make_unique<rank_task>(kind, root, ranks, device,
                                     std::move(inputs), std::move(outputs));
}

std::unique_ptr<op_task> make_fetch_task(device& on, stream& queue,
                                         std::size_t index, const storage& from,
                                         arena& host) {
  return std::make_unique<fetch_task>(on, queue, index, from, host);
}

} // namespace troupe::actors
