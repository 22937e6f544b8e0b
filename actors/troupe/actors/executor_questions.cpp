// SPDX-License-Identifier: Apache-2.0
// What applications ask a running executor.
#include <troupe/actors/executor_state.hpp>
#include <troupe/actors/tracing/step_outcome.hpp>

#include <troupe/base/quoted_name.hpp>

namespace troupe {

/// Gives access to the executor to functions whose headers include CAF.
struct actors::executor_access {
  static actor_graph& graph_of(const executor& exe) {
    return *exe.impl_->actors;
  }
};

caf::actor handle_address(const executor& exe, handle_id id) {
  auto& graph = actors::executor_access::graph_of(exe);
  auto address =
    id < graph.context().graph->size() ? graph.address(id) : nullptr;
  if (!address)
    throw error(errc::not_found, "no actor of handle " + std::to_string(id)
                                   + " in this process");
  return caf::actor_cast<caf::actor>(std::move(address));
}

caf::actor handle_address(const executor& exe, std::string_view name) {
  const auto& g = *actors::executor_access::graph_of(exe).context().graph;
  for (handle_id id = 0; id < g.size(); ++id)
    if (graph::handle_name(g, id) == name)
      return handle_address(exe, id);
  throw error(errc::not_found,
              "the graph has no handle " + quoted_name(std::string{name}));
}

bool actors::has_failed(const executor& exe, step_id step) noexcept {
  const auto& kept = executor_access::graph_of(exe).context().state_of(step);
  return kept.id.load(std::memory_order_relaxed) == step
         && kept.failed.load(std::memory_order_relaxed);
}

void let_go(executor& exe) {
  actors::executor_access::graph_of(exe).let_go();
}

actors::wait_chain executor::why(handle_id id) const {
  if (id >= impl_->ssa.size() || !impl_->actors->messages().has(id))
    throw error(errc::not_found,
                "no handle " + std::to_string(id) + " in this process");
  return impl_->actors->waits().why(id);
}

actors::wait_chain executor::why() const {
  return impl_->actors->waits().why();
}

std::vector<actors::collective_wait> executor::collectives() const {
  return impl_->actors->waits().collectives();
}

const graph::ssa_graph& executor::graph() const {
  return impl_->actors->graph();
}

void executor::send_note(std::size_t process, const std::string& text) {
  if (impl_->others && process != impl_->options.nodes->process)
    impl_->others->link().send_note(process, text);
}

std::vector<process_note> executor::take_notes() {
  return impl_->others ? impl_->others->link().take_notes()
                       : std::vector<process_note>{};
}

recorder& executor::trace() noexcept {
  return *impl_->trace;
}

std::shared_ptr<recorder> executor::shared_trace() const {
  return impl_->traces->shared_events();
}

trace::process_trace executor::trace_head() const {
  return impl_->traces->head(graph());
}

run_pace& executor::pace() noexcept {
  return impl_->pace;
}

const run_pace& executor::pace() const noexcept {
  return impl_->pace;
}

std::optional<std::string> executor::trace_failure() const {
  return impl_->traces->failure();
}

std::filesystem::path
executor::dump_trace(const std::filesystem::path& file) const {
  return impl_->traces->dump(file, graph());
}

std::vector<trace::worker_stack> executor::busy_stacks() const {
  return impl_->traces->stacks();
}

std::filesystem::path executor::start_trace(const trace_options& wanted) {
  return impl_->traces->start(wanted, graph());
}

std::optional<std::filesystem::path> executor::stop_trace() {
  return impl_->traces->stop();
}

scope& executor::parameters() noexcept {
  return *impl_->parameters;
}

std::uint64_t executor::steps_ended() const noexcept {
  return impl_->ended.load(std::memory_order_relaxed);
}

executor_stats executor::stats() const {
  executor_stats s;
  s.op_actors = impl_->actors->op_actors();
  s.variable_actors = impl_->actors->variable_actors();
  s.stream_actors = impl_->actors->stream_actors();
  s.messages_per_step = impl_->actors->messages().messages_per_step();
  s.message_edges = impl_->actors->message_edges();
  s.pending_ops = impl_->actors->pending_ops();
  s.steps = impl_->ended.load(std::memory_order_acquire);
  s.single_worker_steps = impl_->actors->single_worker_steps();
  s.copied_feed_bytes = impl_->feeding->copied_bytes();
  s.injected_jobs = impl_->workers->queue().foreign_pushes();
  s.messages = s.messages_per_step * s.steps;
  if (const auto& captures = impl_->captures) {
    s.captured_steps = captures->launched();
    s.not_captured = captures->reason();
    s.messages +=
      captures->launched()
      + (captures->recordings() - captures->launched()) * s.messages_per_step;
  }
  if (!impl_->capture_obstacle.empty())
    s.not_captured = impl_->capture_obstacle;
  for (auto& d : impl_->devices)
    s.peak_bytes.push_back(d->memory().peak_bytes());
  return s;
}

} // namespace troupe
