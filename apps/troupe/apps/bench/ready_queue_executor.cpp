// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/bench/ready_queue_executor.hpp>

#include <troupe/actors/backend/backend.hpp>
#include <troupe/actors/steps/executor_graph.hpp>
#include <troupe/actors/steps/scatter.hpp>
#include <troupe/actors/tasks/graph_tasks.hpp>
#include <troupe/apps/bench/grouped.hpp>
#include <troupe/apps/bench/ready_queue.hpp>
#include <troupe/graph/sub_blocks.hpp>
#include <troupe/graph/wiring/wiring_plan.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace troupe::apps {

namespace {

using actors::graph_tasks;
using actors::step_state;

graph::wiring_plan plan_of(const graph::ssa_graph& g) {
  return {g, {.streams = graph::plan_streams(g, 1), .steps_overlap = false}};
}

/// The dependencies between the ops of a step, without the variables between
/// them and without messages that others imply.
task_graph waits_of(const graph::ssa_graph& g, const graph::wiring_plan& plan) {
  std::vector<grouped<std::uint32_t>::entry> before;
  for (auto& e : plan.edges()) {
    const auto from =
      e.from == no_handle ? no_handle : plan.teller_of(e.from).op;
    if (e.sent && g.is_op(e.to) && from != no_handle)
      before.emplace_back(e.to, from);
  }
  std::ranges::sort(before);
  before.erase(std::unique(before.begin(), before.end()), before.end());
  const grouped<std::uint32_t> predecessors{g.ops.size(), before};
  task_graph tasks;
  for (handle_id op = 0; op < g.ops.size(); ++op) {
    const auto list = predecessors[op];
    tasks.predecessors.insert(tasks.predecessors.end(), list.begin(),
                              list.end());
    tasks.first.push_back(
      static_cast<std::uint32_t>(tasks.predecessors.size()));
  }
  return tasks;
}

std::vector<std::shared_ptr<device>> make_device(const executor_options& o) {
  if (o.devices.size() != 1)
    throw error(errc::invalid_argument,
                "the shared ready queue runs one device, not "
                  + std::to_string(o.devices.size()));
  return make_devices(o.devices);
}

/// How many ops of a step still use a temporary.
struct user_count {
  // acq_rel, because the last user frees memory that the others have read
  std::atomic<std::uint32_t> left{0};
  std::uint32_t per_step = 0;

  /// Called when one of them is done. True: it was the last.
  bool release() noexcept {
    if (left.fetch_sub(1, std::memory_order_acq_rel) != 1)
      return false;
    // Relaxed: the next users belong to a step that begins after this one.
    left.store(per_step, std::memory_order_relaxed);
    return true;
  }
};

} // namespace

struct ready_queue_executor::impl {
  struct run_op {
    impl& self;
    void operator()(std::uint32_t op) const { self.run(op); }
  };

  impl(std::shared_ptr<const graph::program> main,
       const executor_options& options);

  void count_users();
  void run(std::uint32_t op);
  void feed(const feed_map& feeds);

  executor_options options;
  std::shared_ptr<const graph::program> program;
  actors::needed_feeds feeds_needed;
  graph::ssa_graph graph;
  std::vector<std::shared_ptr<device>> devices;
  std::unique_ptr<stream> queue_of_device;
  step_state state; // the only step slot
  graph_tasks values;
  std::vector<actors::op_task*> tasks; // by op
  graph::wiring_plan plan;
  std::optional<grouped<std::uint32_t>> released; // temporaries by op
  std::vector<user_count> users;                  // by temporary
  task_graph waits;
  std::optional<ready_queue<run_op>> queue;
  actors::no_completion whole; // ops on a CPU device are done when they return
  step_id next_step = 0;
};

ready_queue_executor::impl::impl(std::shared_ptr<const graph::program> main,
                                 const executor_options& o)
  : options(o), program(std::make_shared<const graph::program>(
                  graph::expose_sub_blocks(*main))),
    feeds_needed(graph::feed_names(*program), program->main()),
    graph(actors::build_graph(program, o, o.loss)), devices(make_device(o)),
    queue_of_device(devices.front()->make_stream({"compute", o.threads})),
    values({.program = program.get(),
            .graph = &graph,
            .devices = devices,
            .parameters = options.parameters.get(),
            .kernels = options.kernels.get()}),
    plan(plan_of(graph)), users(values.places().temporaries()),
    waits(waits_of(graph, plan)) {
  state.shards.resize(1);
  for (auto& op : graph.ops)
    tasks.push_back(&values.make_task(op, *queue_of_device));
  count_users();
  queue.emplace(waits, o.threads, run_op{*this});
}

void ready_queue_executor::impl::count_users() {
  const auto temporary = values.temporary_of_storage();
  std::vector<grouped<std::uint32_t>::entry> uses;
  for (auto& r : plan.releases()) {
    uses.emplace_back(r.op, temporary[r.storage]);
    ++users[temporary[r.storage]].per_step;
  }
  for (auto& u : users)
    u.left.store(u.per_step, std::memory_order_relaxed);
  released.emplace(graph.ops.size(), uses);
}

void ready_queue_executor::impl::run(std::uint32_t op) {
  auto& step = state;
  if (!step.failed.load(std::memory_order_relaxed)) {
    try {
      tasks[op]->run(step, whole);
    } catch (const error& e) {
      step.fail(e);
    } catch (const std::exception& e) {
      step.fail(error(errc::kernel_failure, e.what()));
    }
  }
  for (auto temporary : (*released)[op])
    if (users[temporary].release())
      actors::storage_places::empty(values.places().at(temporary, 0));
}

void ready_queue_executor::impl::feed(const feed_map& feeds) {
  for (auto& [name, value] : feeds) {
    auto held = devices.front()->to_device(value, *queue_of_device);
    if (actors::feeds_persistable(program->main(), name))
      options.parameters->var(name).set(std::move(held));
    else if (const auto* target = values.find_fed(name, 0))
      target->value.at(0).set(std::move(held));
  }
}

ready_queue_executor::ready_queue_executor(
  std::shared_ptr<const graph::program> main, const executor_options& options)
  : impl_(std::make_unique<impl>(std::move(main), options)) {}

ready_queue_executor::~ready_queue_executor() = default;

std::size_t ready_queue_executor::ops() const noexcept {
  return impl_->graph.ops.size();
}

double ready_queue_executor::run(const feed_map& feeds) {
  auto& self = *impl_;
  auto& step = self.state;
  const auto samples =
    actors::check_feeds(feeds, self.feeds_needed, self.program->main(), 1);
  step.id = self.next_step++;
  actors::split_batch(samples, step.id, self.options.seed, {}, step.shards);
  step.wanted.assign(self.values.fetches().size(), true);
  step.fetched.assign(self.values.fetches().size(), tensor{});
  step.failed.store(false, std::memory_order_relaxed);
  self.feed(feeds);
  self.queue->run_pass();
  if (auto failure = step.take_error())
    throw *failure;
  std::vector<actors::fetched_value> fetched;
  for (std::size_t i = 0; i < step.fetched.size(); ++i)
    fetched.push_back(
      {self.values.fetches()[i].name, 0, std::move(step.fetched[i])});
  return actors::gather({step.id, actors::samples_of(step.shards)},
                        self.options.loss, fetched, {})
    .loss;
}

} // namespace troupe::apps
