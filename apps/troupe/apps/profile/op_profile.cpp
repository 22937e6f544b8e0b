// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/profile/op_profile.hpp>

#include <troupe/base/clock.hpp>
#include <troupe/base/job_queue.hpp>
#include <troupe/graph/gathered_product.hpp>
#include <troupe/graph/merging_update.hpp>
#include <troupe/kernels/cpu/layout_traffic.hpp>

#include <algorithm>
#include <limits>
#include <utility>

namespace troupe::apps {

/// What one worker has seen. Of the thread that serves the worker's seat just
/// now; the queue orders those that follow each other.
class op_profile::worker_log {
public:
  explicit worker_log(std::size_t types) : times_(types) {}

  /// An op or a kernel of `type` begins at `now`.
  void enter(type_number type, std::uint64_t now) {
    if (times_.size() <= type)
      times_.resize(type + 1);
    frames_.push_back({type, now, 0, cpu::layout_traffic(), 0});
  }

  /// The innermost one ends. What an op's own kernel takes is part of the op.
  void leave(std::uint64_t now) {
    const frame ended = frames_.back();
    frames_.pop_back();
    const auto taken = now - ended.begin;
    const auto moved = cpu::layout_traffic() - ended.layout_begin;
    auto& of_type = times_[ended.type];
    of_type.self_ns += taken - ended.inside_ns;
    of_type.layout_bytes += moved - ended.layout_inside;
    if (frames_.empty()) {
      busy_ns_ += taken;
    } else {
      frames_.back().inside_ns += taken;
      frames_.back().layout_inside += moved;
    }
    if (frames_.empty() || frames_.back().type != ended.type) {
      ++of_type.count;
      of_type.total_ns += taken;
    }
  }

  void begin_op(handle_id op, type_number type, std::uint64_t now) {
    frames_.clear(); // of a launch that was not finished here
    op_ = op;
    first_ = std::min(first_, now);
    enter(type, now);
  }
  void end_op(handle_id op, step_id step, std::uint64_t now) {
    if (frames_.size() != 1 || op_ != op)
      return;
    leave(now);
    last_ = std::max(last_, now);
    end_step_ = std::max(end_step_, step + 1);
  }
  /// Another worker's op of `type`, which counts there.
  void begin_help(type_number type, std::uint64_t now) {
    helps_ = !in_op();
    if (helps_)
      enter(type, now);
  }
  void end_help(std::uint64_t now) {
    if (!std::exchange(helps_, false) || frames_.size() != 1)
      return;
    const auto type = frames_.front().type;
    leave(now);
    --times_[type].count;
    last_ = std::max(last_, now);
  }
  bool in_op() const noexcept { return !frames_.empty(); }

  void add_to(profile_times& all, const std::vector<std::string>& names) const {
    for (std::size_t t = 0; t < times_.size(); ++t) {
      if (times_[t].count == 0 && times_[t].total_ns == 0)
        continue;
      auto& sum = all.ops[names[t]];
      sum.count += times_[t].count;
      sum.total_ns += times_[t].total_ns;
      sum.self_ns += times_[t].self_ns;
      sum.layout_bytes += times_[t].layout_bytes;
    }
    all.busy_ns.push_back(busy_ns_);
  }
  std::uint64_t first() const noexcept { return first_; }
  std::uint64_t last() const noexcept { return last_; }
  step_id end_step() const noexcept { return end_step_; }

private:
  struct frame {
    type_number type;
    std::uint64_t begin;
    std::uint64_t inside_ns; // of frames that it enclosed
    std::uint64_t layout_begin;
    std::uint64_t layout_inside;
  };

  std::vector<op_time> times_; // by type
  std::vector<frame> frames_;
  handle_id op_ = no_handle;
  bool helps_ = false;
  std::uint64_t busy_ns_ = 0;
  std::uint64_t first_ = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t last_ = 0;
  step_id end_step_ = 0;
};

class op_profile::watched_kernel final : public kernel {
public:
  watched_kernel(op_profile& profile, type_number type,
                 std::unique_ptr<kernel> code)
    : profile_(profile), type_(type), code_(std::move(code)) {}

  void run(kernel_context& ctx) override {
    auto* log = profile_.here();
    if (!log || !log->in_op())
      return code_->run(ctx);
    log->enter(type_, now_ns());
    code_->run(ctx);
    log->leave(now_ns());
  }

private:
  op_profile& profile_;
  type_number type_;
  std::unique_ptr<kernel> code_;
};

op_profile::op_profile(std::size_t workers, std::uint64_t skipped)
  : skipped_(skipped), logs_(workers) {}

op_profile::~op_profile() = default;

std::shared_ptr<const kernel_table>
op_profile::watched_kernels(std::shared_ptr<const kernel_table> base) {
  auto watched = std::make_shared<kernel_table>();
  for (auto kind : {device_kind::cpu, device_kind::cuda, device_kind::sim})
    for (const auto& type : base->op_types(kind))
      watched->add(type, kind,
                   [this, base, type, kind,
                    number = number_of(type)](const attribute_map& attributes) {
                     return std::make_unique<watched_kernel>(
                       *this, number, base->make(type, kind, attributes));
                   });
  return watched;
}

void op_profile::begin(const graph::ssa_graph& graph) {
  type_of_handle_.assign(graph.size(), 0);
  for (const auto& op : graph.ops) {
    type_of_handle_[op.id] = number_of(op.desc->type);
    note_merging(*op.desc);
  }
  for (auto& log : logs_)
    log = std::make_unique<worker_log>(types_.size());
}

void op_profile::note_merging(const graph::op_desc& op) {
  if (op.type == graph::gathered_product_type)
    gathered_by_.emplace(op.only_input("Y"), op.type);
  if (!graph::is_merging_update(op.type))
    return;
  merged_by_.emplace(op.only_input("Param"), op.type);
  if (op.input("Grad").empty())
    gathered_by_.emplace(op.only_input("Param"), op.type);
}

void op_profile::record(const trace_event& event) noexcept {
  if (event.step < skipped_)
    return;
  auto* log = here();
  if (!log)
    return;
  const auto now = event.time_ns;
  switch (event.kind) {
  case trace_kind::launch:
    return log->begin_op(event.from, type_of_handle_[event.from], now);
  case trace_kind::completion: return log->end_op(event.from, event.step, now);
  case trace_kind::help:
    return log->begin_help(type_of_handle_[event.from], now);
  case trace_kind::helped: return log->end_help(now);
  default: return;
  }
}

profile_times op_profile::times() const {
  profile_times all;
  all.gathered_by = gathered_by_;
  all.merged_by = merged_by_;
  std::vector<std::string> names(types_.size());
  for (const auto& [name, number] : types_)
    names[number] = name;
  auto first = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t last = 0;
  step_id end = skipped_;
  for (const auto& log : logs_) {
    log->add_to(all, names);
    first = std::min(first, log->first());
    last = std::max(last, log->last());
    end = std::max(end, log->end_step());
  }
  all.steps = end - skipped_;
  all.wall_ns = last > first ? last - first : 0;
  return all;
}

op_profile::worker_log* op_profile::here() noexcept {
  const auto* w = worker::current();
  return w && w->index() < logs_.size() ? logs_[w->index()].get() : nullptr;
}

op_profile::type_number op_profile::number_of(std::string_view type) {
  const auto next = static_cast<type_number>(types_.size());
  return types_.try_emplace(std::string(type), next).first->second;
}

} // namespace troupe::apps
