// SPDX-License-Identifier: Apache-2.0
#include <actors/engine_rig.hpp>

#include <troupe/graph/ssa/ssa_edges.hpp>

#include <algorithm>
#include <bit>
#include <utility>

namespace troupe::test {

using namespace troupe::actors;

namespace {

class body_task final : public op_task {
public:
  explicit body_task(engine_rig::body run) : run_(std::move(run)) {}
  launch_status run(step_state& step, completion&) override {
    run_(step);
    return launch_status::done;
  }

private:
  engine_rig::body run_;
};

} // namespace

engine_rig::engine_rig(std::uint32_t steps_in_flight, std::size_t workers)
  : queue(workers), steps_in_flight_(steps_in_flight),
    device_(make_cpu_device(0)) {
  system = make_actor_system(config, 1);
  trace.emplace(queue);
  context.owner = this;
  context.step_ended = [](void* owner, step_state& step) {
    auto& self = *static_cast<engine_rig*>(owner);
    std::lock_guard guard{self.mutex_};
    self.ended_.push_back(step.id);
  };
}

engine_rig::~engine_rig() {
  messages.reset();
  for (auto* s : streams_)
    s->close();
}

template <class T>
std::uint32_t engine_rig::keep(graph::stream_kind kind, int width,
                               job_queue& jobs) {
  const auto number = static_cast<std::uint32_t>(planned_.size());
  planned_.push_back(
    {static_cast<std::uint32_t>(graph_.devices.size() - 1), kind, width});
  handles_.push_back(make<T>(*system, "stream",
                             device_->make_stream({"test", width}), jobs,
                             std::size_t{0}, stream_seed_));
  streams_.push_back(&object_of<T>(handles_.back()));
  return number;
}

std::uint32_t engine_rig::add_stream(int width, job_queue* jobs) {
  graph_.devices.push_back(
    {device_kind::cpu, static_cast<int>(graph_.devices.size())});
  return keep<stream_actor>(graph::stream_kind::compute, width,
                            jobs ? *jobs : queue);
}

std::uint32_t engine_rig::add_all_reduce() {
  add_stream();
  return keep<all_reduce_actor>(graph::stream_kind::collective, 1, queue);
}

handle_id engine_rig::add_op(std::uint32_t on, body run, std::int32_t priority,
                             std::int32_t collective_index) {
  const std::string name(1, static_cast<char>('a' + descriptions_.size() % 26));
  descriptions_.emplace_back().type = name;
  graph::op_handle o;
  o.id = static_cast<handle_id>(graph_.ops.size());
  o.desc = &descriptions_.back();
  o.device = planned_[on].device;
  o.stream = planned_[on].kind;
  o.priority = priority;
  o.collective_index = collective_index;
  graph_.ops.push_back(o);
  tasks_.push_back(std::make_unique<body_task>(
    [this, name, run = std::move(run)](step_state& step) {
      {
        std::lock_guard guard{mutex_};
        ran_ += (ran_.empty() ? "" : " ") + name + std::to_string(step.id);
      }
      if (run)
        run(step);
    }));
  return o.id;
}

void engine_rig::connect(handle_id from, handle_id to, std::uint32_t distance) {
  graph_.edges.push_back({from, to, graph::edge_kind::order, distance});
}

void engine_rig::wire() {
  graph::merge_edges(graph_.edges);
  context.graph = &graph_;
  for (auto& d : graph_.devices)
    context.devices.push_back(to_string(d));
  for (std::uint32_t slot = 0; slot < std::bit_ceil(steps_in_flight_); ++slot) {
    auto& step = *context.steps.emplace_back(std::make_unique<step_state>());
    step.slot = slot;
    step.shards.resize(graph_.devices.size());
    step.fed.resize(graph_.devices.size());
  }
  graph::wiring_options wiring{.streams = planned_};
  if (!later_.empty())
    wiring.ends_later = [this](const graph::op_handle& o) {
      return std::ranges::find(later_, o.id) != later_.end();
    };
  plan_.emplace(graph_, std::move(wiring));
  places_.emplace(0, context.slots());
  engine::parts p;
  p.context = &context;
  p.plan = &*plan_;
  p.steps_told = steps_in_flight_ + graph_.max_distance();
  p.streams = streams_;
  const auto order = plan_->expected_order();
  p.order = order;
  for (auto& t : tasks_)
    p.tasks.push_back(t.get());
  p.places = &*places_;
  p.workers = queue.workers();
  p.trace = &*trace;
  p.disturbs = disturbs_ ? &*disturbs_ : nullptr;
  messages.emplace(std::move(p));
}

void engine_rig::admit(step_id s) {
  auto& step = state(s);
  step.id = s;
  step.take_error();
  step.failed = false;
  step.under_way = true;
}

void engine_rig::serve(job_queue& jobs) {
  worker here{jobs, 0};
  while (auto* j = jobs.pop(0))
    here.run_chain(*j);
}

std::string engine_rig::ran() {
  std::lock_guard guard{mutex_};
  return std::exchange(ran_, {});
}

std::vector<step_id> engine_rig::ended() {
  std::lock_guard guard{mutex_};
  return ended_;
}

} // namespace troupe::test
