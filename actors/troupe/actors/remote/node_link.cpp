// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/remote/node_link.hpp>

#include <troupe/actors/remote/gate.hpp>
#include <troupe/actors/remote/node_actor.hpp>
#include <troupe/actors/remote/node_door.hpp>
#include <troupe/actors/remote/node_state.hpp>
#include <troupe/base/failure_codec.hpp>

#include <algorithm>
#include <chrono>
#include <utility>

namespace troupe::actors {

namespace {

using clock = std::chrono::steady_clock;

way_in way_of(const node_options& options) {
  way_in way{options.host, options.port, options.pass_folder};
  if (options.network) {
    way.credentials = std::make_shared<const comm::job_credentials>(
      comm::read_credentials(options.network->credentials, options.process));
    way.interface = options.network->interface;
  }
  return way;
}

} // namespace

node_link::node_link(caf::actor_system& system, const node_options& options,
                     std::string description, listener listens)
  : state_(std::make_shared<node_state>(system)), port_(options.port) {
  const auto deadline =
    clock::now() + std::chrono::milliseconds(options.timeout_ms);
  auto& s = *state_;
  s.process = options.process;
  s.processes = options.processes();
  s.description = std::move(description);
  s.listens = std::move(listens);
  auto self = make<node_actor>(system, state_);
  s.self = caf::actor_cast<caf::actor>(self);
  s.members = std::make_shared<run_members>(std::move(self));
  try {
    const auto way = way_of(options);
    if (s.processes == 1)
      s.now = node_state::stage::running;
    else if (s.is_first())
      let_others_in(options, way, deadline);
    else
      join(options, way, deadline);
  } catch (...) {
    s.close();
    throw;
  }
}

void node_link::let_others_in(const node_options& options, way_in way,
                              clock::time_point deadline) {
  auto& s = *state_;
  node_door door{s.system, s};
  {
    const gate in{
      way,
      {[&](passage come, std::uint64_t process, std::uint16_t port) {
         door.admit(std::move(come), process, port);
       },
       [&](const std::string& why) {
         std::lock_guard guard{s.mutex};
         // Certificates say more than that a stranger came.
         if (s.refusal.find("certificate") == s.refusal.npos)
           s.refusal = why;
       }}};
    port_ = in.port();
    own_address_ = in.address();
    if (options.listening)
      options.listening(port_);
    door.wait(options, deadline);
  }
  door.close(port_);
}

void node_link::join(const node_options& options, way_in way,
                     clock::time_point deadline) {
  if (way.port == 0)
    way.port = find_run(way.host, way.folder, deadline, options.check);
  port_ = way.port;
  node_door door{state_->system, *state_};
  own_address_ = door.join(state_, way, options, deadline);
  door.wait(options, deadline);
}

node_link::~node_link() {
  state_->close();
}

const std::shared_ptr<run_members>& node_link::members() const noexcept {
  return state_->members;
}

void node_link::require_all() const {
  std::lock_guard guard{state_->mutex};
  if (!state_->failure.empty())
    throw error{state_->failure_code, state_->failure};
}

bool node_link::is_lost(std::size_t process, const std::string& why) {
  {
    std::lock_guard guard{state_->mutex};
    if (state_->gone.contains(process))
      return false;
    state_->is_gone(process); // its end of the connection is not waited for
  }
  state_->lose(0, why);
  return true;
}

void node_link::ended(step_id step) {
  state_->own_step_ended(step);
}

void node_link::tell_failed(step_id step, const error& reason) {
  const auto bytes = encode_failure(reason);
  for (std::uint64_t p = 0; p < state_->processes; ++p)
    if (p != state_->process)
      state_->tell_process(p, failed_atom_v, std::uint64_t{step}, bytes);
}

void node_link::leave(step_id first_without) noexcept {
  auto& s = *state_;
  std::unique_lock guard{s.mutex};
  s.tell_leave(first_without);
  s.changed.wait_for(guard, node_state::longest_leave,
                     [&s] { return s.are_all_gone(); });
}

void node_link::publish(const std::string& key, const std::string& value) {
  for (std::uint64_t p = 0; p < state_->processes; ++p)
    if (p != state_->process)
      state_->tell_process(p, publish_atom_v, key, value);
}

std::optional<std::string>
node_link::find_published(const std::string& key) const {
  std::lock_guard guard{state_->mutex};
  const auto found = state_->published.find(key);
  return found == state_->published.end() ? std::nullopt
                                          : std::optional{found->second};
}

void node_link::send_note(std::size_t process, const std::string& text) {
  state_->tell_process(process, note_atom_v, text);
}

std::vector<process_note> node_link::take_notes() {
  std::lock_guard guard{state_->mutex};
  return std::exchange(state_->notes, {});
}

// -- options ------------------------------------------------------------------

namespace {

void check_network(const node_options& options) {
  const auto refuse = [](const char* why) {
    throw error(errc::invalid_argument, why);
  };
  if (!options.network) {
    parse_loopback(options.host, options.port);
    return;
  }
  if (options.port == 0)
    refuse("a run on several hosts needs the port of process 0");
  if (options.engine == group_engine::shared_memory)
    refuse("processes on several hosts have no memory in common: their engine "
           "is gloo or mpi");
  if (!options.network->is_trusted)
    refuse("values go over the network without encryption or password: a run "
           "on several hosts needs a network that no stranger can reach "
           "(--data-network trusted)");
}

} // namespace

void check_nodes(const node_options& options, std::size_t devices) {
  if (options.port == 0 && options.process != 0 && options.pass_folder.empty()
      && !options.network)
    throw error(errc::invalid_argument,
                "process " + std::to_string(options.process)
                  + " needs the port of process 0, or a pass folder that only "
                    "this run uses");
  if (options.process_of_device.size() != devices)
    throw error(errc::invalid_argument,
                "a process must be given for each of the "
                  + std::to_string(devices) + " devices");
  // Limits process numbers, so that no memory is allocated for a million
  // processes of two devices.
  if (options.process >= devices
      || std::ranges::any_of(options.process_of_device,
                             [&](auto p) { return p >= devices; }))
    throw error(errc::invalid_argument,
                "processes are numbered from 0, and there are no more than "
                  + std::to_string(devices) + " for as many devices");
  check_network(options);
}

} // namespace troupe::actors
