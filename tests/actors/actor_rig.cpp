// SPDX-License-Identifier: Apache-2.0
#include <actors/actor_rig.hpp>

#include <utility>

namespace troupe::test {

using namespace troupe::actors;

namespace {

class body_task final : public op_task {
public:
  explicit body_task(actor_rig::body run) : run_(std::move(run)) {}
  void run(step_state& step) override { run_(step); }

private:
  actor_rig::body run_;
};

} // namespace

actor_rig::actor_rig(std::uint32_t slots, std::size_t workers)
  : queue(workers), device_(make_cpu_device(0)) {
  configure(config, 1);
  system = std::make_unique<caf::actor_system>(config);
  desc_.type = "test";
  for (std::uint32_t slot = 0; slot < slots; ++slot) {
    context.steps.push_back(std::make_unique<step_state>());
    context.steps.back()->slot = slot;
  }
  context.owner = this;
  context.step_ended = [](void* owner, step_state& step) {
    auto& self = *static_cast<actor_rig*>(owner);
    std::lock_guard guard{self.mutex_};
    self.ended_.push_back(step.id);
  };
}

actor_rig::~actor_rig() {
  for (auto* s : streams_)
    s->close();
  handles_.clear();
}

template <class T>
T& actor_rig::keep(std::unique_ptr<stream> made, job_queue& jobs) {
  handles_.push_back(
    make<T>(*system, "stream", std::move(made), jobs, 0, 0, 0));
  auto& added = object_of<T>(handles_.back());
  streams_.push_back(&added);
  return added;
}

stream_actor& actor_rig::add_stream(int width, job_queue* jobs) {
  return keep<stream_actor>(device_->make_stream({"test", width}),
                            jobs ? *jobs : queue);
}

all_reduce_actor& actor_rig::add_all_reduce() {
  return keep<all_reduce_actor>(device_->make_stream({"collective", 1}), queue);
}

op_actor& actor_rig::add_op(stream_actor& on, body run, std::int32_t priority,
                            std::int32_t collective_index) {
  auto& handle = op_handles_.emplace_back();
  handle.id = static_cast<handle_id>(ops_.size());
  handle.desc = &desc_;
  handle.priority = priority;
  handle.collective_index = collective_index;
  const std::string name(1, static_cast<char>('a' + ops_.size() % 26));
  auto task = std::make_unique<body_task>(
    [this, name, run = std::move(run)](step_state& step) {
      {
        std::lock_guard guard{mutex_};
        ran_ += (ran_.empty() ? "" : " ") + name + std::to_string(step.id);
      }
      if (run)
        run(step);
    });
  handles_.push_back(
    make<op_actor>(*system, context, handle, name, std::move(task), on));
  auto& op = object_of<op_actor>(handles_.back());
  op.add_in_edge(nullptr, nullptr, 1); // from itself
  ops_.push_back(&op);
  return op;
}

void actor_rig::connect(op_actor& from, op_actor& to, std::uint32_t distance) {
  port p;
  p.in_edge = to.add_in_edge(&from.on_stream(), nullptr, distance);
  p.distance = distance;
  p.to = to.handle();
  p.receiver = &to;
  from.add_port(p);
}

void actor_rig::starts(op_actor& op) {
  starts_.emplace_back(&op, op.add_in_edge(nullptr, nullptr, 0));
}

void actor_rig::arm() {
  for (auto* op : ops_)
    op->arm();
}

void actor_rig::admit(step_id s) {
  auto& step = state(s);
  step.id = s;
  step.take_error();
  step.failed = false;
  step.remaining = static_cast<std::uint32_t>(ops_.size());
}

void actor_rig::start(step_id s) {
  for (auto& [op, in_edge] : starts_)
    op->arrive(in_edge, {state(s).slot, phase::both, false, 0});
}

void actor_rig::serve(job_queue& jobs) {
  worker here{jobs, 0, nullptr};
  while (auto* j = jobs.pop(0))
    here.run_chain(*j);
}

std::string actor_rig::ran() {
  std::lock_guard guard{mutex_};
  return std::exchange(ran_, {});
}

std::vector<step_id> actor_rig::ended() {
  std::lock_guard guard{mutex_};
  return ended_;
}

} // namespace troupe::test
