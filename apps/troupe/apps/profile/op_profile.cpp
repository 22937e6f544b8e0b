// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/profile/op_profile.hpp>

#include <troupe/base/job_queue.hpp>
#include <troupe/base/spin.hpp>
#include <troupe/graph/merging/gathered_product.hpp>
#include <troupe/graph/merging/merging_update.hpp>
#include <troupe/kernels/cpu/layout/layout_traffic.hpp>

#include <algorithm>
#include <limits>
#include <mutex>
#include <utility>

namespace troupe::apps {

/// The times of one worker, in ticks.
class op_profile::worker_log {
public:
  explicit worker_log(std::size_t types) : times_(types) {}

  /// A kernel that ran within an op.
  struct kernel_run {
    type_number type = 0;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t layout_bytes = 0; ///< including kernels within it
  };
  /// Called by the worker, while another thread may take events.
  void ran(const kernel_run& run) {
    std::lock_guard guard{mutex_};
    kernels_.push_back(run);
  }

  void begin_op(handle_id op, std::uint64_t now) {
    op_ = op;
    begin_ = now;
  }
  void end_op(handle_id op, type_number type, step_id step, std::uint64_t now) {
    if (op_ != op)
      return;
    op_ = no_handle;
    enter({type, begin_, now, 0});
    for (auto& run : take_kernels(now))
      enter(run);
    leave_all();
    saw(begin_, now);
    end_step_ = std::max(end_step_, step + 1);
  }
  /// The worker helps with another worker's op. The op's count is added there,
  /// the time here.
  void begin_help(std::uint64_t now) { help_begin_ = now; }
  void end_help(type_number type, std::uint64_t now) {
    const auto began = std::exchange(help_begin_, none);
    if (began == none || op_ != no_handle)
      return;
    enter({type, began, now, 0});
    leave_all();
    --times_[type].count;
    saw(began, now);
  }

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
  static constexpr auto none = std::numeric_limits<std::uint64_t>::max();

  struct frame {
    kernel_run run;
    std::uint64_t inside_ns = 0; // of the frames within it, in ticks
    std::uint64_t inside_layout = 0;
  };

  /// Takes out the kernels that ended by `now`; outer ones come before those
  /// within them.
  std::vector<kernel_run> take_kernels(std::uint64_t now) {
    std::vector<kernel_run> taken;
    {
      std::lock_guard guard{mutex_};
      const auto later = std::ranges::find_if(
        kernels_, [now](auto& run) { return run.end > now; });
      taken.assign(kernels_.begin(), later);
      kernels_.erase(kernels_.begin(), later);
    }
    std::ranges::stable_sort(taken, [](auto& a, auto& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
    });
    return taken;
  }

  void enter(const kernel_run& run) {
    while (!frames_.empty() && frames_.back().run.end <= run.begin)
      leave();
    if (times_.size() <= run.type)
      times_.resize(run.type + 1);
    frames_.push_back({run});
  }

  /// Ends the innermost frame. A frame within one of the same type is the op's
  /// own kernel and counts as part of the op.
  void leave() {
    const auto ended = frames_.back();
    frames_.pop_back();
    const auto taken = ended.run.end - ended.run.begin;
    auto& of_type = times_[ended.run.type];
    of_type.self_ns += taken - std::min(taken, ended.inside_ns);
    of_type.layout_bytes +=
      ended.run.layout_bytes
      - std::min(ended.run.layout_bytes, ended.inside_layout);
    if (frames_.empty()) {
      busy_ns_ += taken;
    } else {
      frames_.back().inside_ns += taken;
      frames_.back().inside_layout += ended.run.layout_bytes;
    }
    if (frames_.empty() || frames_.back().run.type != ended.run.type) {
      ++of_type.count;
      of_type.total_ns += taken;
    }
  }
  void leave_all() {
    while (!frames_.empty())
      leave();
  }

  void saw(std::uint64_t begin, std::uint64_t end) {
    first_ = std::min(first_, begin);
    last_ = std::max(last_, end);
  }

  std::vector<op_time> times_; // by type
  std::vector<frame> frames_;
  handle_id op_ = no_handle; // the op that runs
  std::uint64_t begin_ = 0;
  std::uint64_t help_begin_ = none;
  std::uint64_t busy_ns_ = 0;
  std::uint64_t first_ = none;
  std::uint64_t last_ = 0;
  step_id end_step_ = 0;
  std::mutex mutex_;
  std::vector<kernel_run> kernels_; // sorted by end, guarded by `mutex_`
};

class op_profile::watched_kernel final : public kernel {
public:
  watched_kernel(op_profile& profile, type_number type,
                 std::unique_ptr<kernel> code)
    : profile_(profile), type_(type), code_(std::move(code)) {}

  void run(kernel_context& ctx) override {
    auto* log = profile_.here();
    if (!log || ctx.step().step < profile_.skipped_)
      return code_->run(ctx);
    const auto moved = cpu::layout_traffic();
    const auto begin = ticks();
    code_->run(ctx);
    log->ran({type_, begin, ticks(), cpu::layout_traffic() - moved});
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

void op_profile::begin(const graph::ssa_graph& graph, recorder& from) {
  begin(graph);
  from_ = &from;
  events_.emplace(from, event_reader::start::now, trace_level::ops);
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

void op_profile::take() {
  take(events_->take());
  ns_per_tick_ = from_->ns_per_tick();
}

void op_profile::take(std::span<const trace_event> events) {
  for (auto& e : events) {
    if (e.worker >= logs_.size())
      continue;
    if (e.step < skipped_) {
      if (e.kind == event_kind::run_end)
        skipped_end_ = std::max(skipped_end_, e.time);
      continue;
    }
    auto& log = *logs_[e.worker];
    switch (e.kind) {
    case event_kind::run_begin: log.begin_op(e.from, e.time); break;
    case event_kind::run_end:
      log.end_op(e.from, type_of_handle_[e.from], e.step, e.time);
      break;
    case event_kind::help_begin: log.begin_help(e.time); break;
    case event_kind::help_end:
      log.end_help(type_of_handle_[e.from], e.time);
      break;
    default: break;
    }
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
  // Steps overlap: the first one that counts begins while others still run.
  first = std::max(first, skipped_end_);
  all.wall_ns = last > first ? last - first : 0;
  in_nanoseconds(all);
  return all;
}

void op_profile::in_nanoseconds(profile_times& all) const {
  const auto convert = [this](std::uint64_t& time) {
    time = static_cast<std::uint64_t>(static_cast<double>(time) * ns_per_tick_);
  };
  convert(all.wall_ns);
  for (auto& busy : all.busy_ns)
    convert(busy);
  for (auto& [type, time] : all.ops) {
    convert(time.total_ns);
    convert(time.self_ns);
  }
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
