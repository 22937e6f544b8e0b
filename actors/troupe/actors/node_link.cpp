// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/node_link.hpp>

#include <caf/actor_registry.hpp>
#include <caf/atom.hpp>
#include <caf/io/middleman.hpp>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>

namespace troupe::actors {

namespace {

/// process (uint64), digest (uint64), packed handle ids (string), addresses
/// (vector<actor>), the sender's node actor (actor)
using join_atom = caf::atom_constant<caf::atom("join")>;
/// packed handle ids (string), addresses, node actors (vector<actor> each)
using welcome_atom = caf::atom_constant<caf::atom("welcome")>;
/// why not (string)
using refuse_atom = caf::atom_constant<caf::atom("refuse")>;
/// process (uint64), step (uint64), failure (string)
using ended_atom = caf::atom_constant<caf::atom("partended")>;

/// Ids as bytes: a type that every CAF system knows without announcement.
std::string pack(const std::vector<handle_id>& ids) {
  return {reinterpret_cast<const char*>(ids.data()),
          ids.size() * sizeof(handle_id)};
}

std::vector<handle_id> unpack(const std::string& bytes) {
  std::vector<handle_id> ids(bytes.size() / sizeof(handle_id));
  std::memcpy(ids.data(), bytes.data(), ids.size() * sizeof(handle_id));
  return ids;
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.rfind("127.", 0) == 0;
}

void check_options(const node_options& options, std::size_t devices) {
  if (options.process_of_device.size() != devices)
    throw error(errc::invalid_argument,
                "a process must be given for each of the "
                  + std::to_string(devices) + " devices");
  if (options.process >= options.processes())
    throw error(errc::invalid_argument,
                "process " + std::to_string(options.process) + " of "
                  + std::to_string(options.processes()));
  if (!is_loopback(options.host))
    throw error(errc::invalid_argument,
                "nodes talk over loopback only, not over " + options.host);
}

} // namespace

struct node_link::state {
  std::uint64_t process = 0;
  std::uint64_t processes = 1;
  std::uint64_t graph_digest = 0;
  actor_graph* actors = nullptr;
  std::size_t handles = 0;
  listener listens;
  caf::actor self;

  // Held while the listener is called, and when it is taken away: the executor
  // behind it may then go. Taken before `mutex` where both are.
  std::mutex calling;
  bool closed = false; // guarded by `calling`

  std::mutex mutex; // guards what follows
  std::condition_variable changed;
  std::map<std::uint64_t, caf::actor> nodes; // joined, by process
  std::vector<handle_id> ids;                // of all addresses
  std::vector<caf::actor> addresses;
  std::map<std::uint64_t, caf::actor> others; // set by welcome
  bool welcomed = false;
  std::string refused;

  void add_own_addresses() {
    for (handle_id id = 0; id < handles; ++id)
      if (auto a = actors->address(id)) {
        ids.push_back(id);
        addresses.push_back(caf::actor_cast<caf::actor>(a));
      }
  }

  void lose(std::size_t other, const std::string& why) {
    std::lock_guard guard{calling};
    if (!closed)
      listens.lost(other, why);
  }

  void part_ended(std::size_t other, step_id step, const std::string& failure) {
    std::lock_guard guard{calling};
    if (!closed)
      listens.part_ended(other, step, failure);
  }

  void on_join(std::uint64_t from, std::uint64_t digest,
               const std::vector<handle_id>& their_ids,
               const std::vector<caf::actor>& theirs, const caf::actor& node);
  void on_welcome(const std::vector<handle_id>& all_ids,
                  const std::vector<caf::actor>& all,
                  const std::vector<caf::actor>& all_nodes);
  void on_refusal(const std::string& why) {
    std::lock_guard guard{mutex};
    refused = why;
    changed.notify_all();
  }
};

/// The address of a process for the others.
class node_link::node_actor final : public actor_base {
public:
  node_actor(caf::actor_config& cfg, std::shared_ptr<state> link)
    : actor_base(cfg), link_(std::move(link)) {}

  const char* name() const override { return "troupe.node"; }

protected:
  bool on_message(caf::mailbox_element& element, context) override {
    auto& m = element.content();
    using actors_t = std::vector<caf::actor>;
    if (m.match_elements<ended_atom, std::uint64_t, std::uint64_t,
                         std::string>())
      link_->part_ended(m.get_as<std::uint64_t>(1), m.get_as<std::uint64_t>(2),
                        m.get_as<std::string>(3));
    else if (m.match_elements<join_atom, std::uint64_t, std::uint64_t,
                              std::string, actors_t, caf::actor>())
      link_->on_join(m.get_as<std::uint64_t>(1), m.get_as<std::uint64_t>(2),
                     unpack(m.get_as<std::string>(3)), m.get_as<actors_t>(4),
                     m.get_as<caf::actor>(5));
    else if (m.match_elements<welcome_atom, std::string, actors_t, actors_t>())
      link_->on_welcome(unpack(m.get_as<std::string>(1)), m.get_as<actors_t>(2),
                        m.get_as<actors_t>(3));
    else if (m.match_elements<refuse_atom, std::string>())
      link_->on_refusal(m.get_as<std::string>(1));
    else
      return false;
    return true;
  }

private:
  std::shared_ptr<state> link_;
};

namespace {

template <class... Ts>
void tell(const caf::actor& to, Ts&&... content) {
  post(caf::actor_cast<caf::strong_actor_ptr>(to),
       std::forward<Ts>(content)...);
}

} // namespace

void node_link::state::on_join(std::uint64_t from, std::uint64_t digest,
                               const std::vector<handle_id>& their_ids,
                               const std::vector<caf::actor>& theirs,
                               const caf::actor& node) {
  std::vector<caf::actor> everybody;
  {
    std::lock_guard guard{mutex};
    if (digest != graph_digest || from == 0 || from >= processes
        || nodes.count(from) > 0 || their_ids.size() != theirs.size()) {
      tell(node, refuse_atom::value,
           std::string{digest != graph_digest
                         ? "the processes run different graphs"
                         : "process " + std::to_string(from)
                             + " has joined already or is not expected"});
      return;
    }
    nodes[from] = node;
    ids.insert(ids.end(), their_ids.begin(), their_ids.end());
    addresses.insert(addresses.end(), theirs.begin(), theirs.end());
    if (nodes.size() < processes)
      return;
    for (auto& [number, n] : nodes)
      everybody.push_back(n);
  }
  for (std::uint64_t p = 1; p < processes; ++p)
    tell(everybody[p], welcome_atom::value, pack(ids), addresses, everybody);
  on_welcome(ids, addresses, everybody);
}

void node_link::state::on_welcome(const std::vector<handle_id>& all_ids,
                                  const std::vector<caf::actor>& all,
                                  const std::vector<caf::actor>& all_nodes) {
  for (std::size_t i = 0; i < all_ids.size() && i < all.size(); ++i)
    if (all_ids[i] < handles)
      actors->connect(all_ids[i],
                      caf::actor_cast<caf::strong_actor_ptr>(all[i]));
  std::lock_guard guard{mutex};
  for (std::uint64_t p = 0; p < all_nodes.size(); ++p)
    if (p != process)
      others[p] = all_nodes[p];
  welcomed = true;
  changed.notify_all();
}

node_link::node_link(caf::actor_system& system, const node_options& options,
                     const graph::ssa_graph& graph, actor_graph& actors,
                     listener listens)
  : state_(std::make_shared<state>()) {
  check_options(options, graph.devices.size());
  auto& s = *state_;
  s.process = options.process;
  s.processes = options.processes();
  s.graph_digest = digest(graph);
  s.actors = &actors;
  s.handles = graph.size();
  s.listens = std::move(listens);
  s.add_own_addresses();
  s.self = caf::actor_cast<caf::actor>(make<node_actor>(system, state_));
  try {
    connect(options);
  } catch (...) {
    close();
    throw;
  }
}

void node_link::connect(const node_options& options) {
  auto& s = *state_;
  if (options.process == 0)
    listen(options);
  else
    join(options);
  std::unique_lock guard{s.mutex};
  const auto come =
    s.changed.wait_for(guard, std::chrono::milliseconds(options.timeout_ms),
                       [&s] { return s.welcomed || !s.refused.empty(); });
  if (!s.refused.empty())
    throw error(errc::peer_failure, s.refused);
  if (!come)
    throw error(errc::peer_failure, "after "
                                      + std::to_string(options.timeout_ms)
                                      + " ms not all processes have joined");
  for (auto& [process, node] : s.others)
    node->attach_functor([link = std::weak_ptr<state>(state_),
                          number = process](const caf::error& reason) {
      if (auto here = link.lock())
        here->lose(number, "another process is gone: " + to_string(reason));
    });
}

node_link::~node_link() {
  close();
}

void node_link::close() noexcept {
  {
    std::lock_guard guard{state_->calling};
    state_->closed = true;
  }
  // Addresses that went to other processes stand in the registry since, which
  // would keep the handles alive.
  auto& system = state_->self.home_system();
  for (handle_id id = 0; id < state_->handles; ++id)
    if (auto a = state_->actors->address(id))
      system.registry().erase(a->id());
  object_of<node_actor>(caf::actor_cast<caf::strong_actor_ptr>(state_->self))
    .retire();
  // The node actor and the state hold each other.
  std::lock_guard guard{state_->mutex};
  state_->others.clear();
  state_->nodes.clear();
  state_->addresses.clear();
  state_->self = nullptr;
}

void node_link::listen(const node_options& options) {
  auto& s = *state_;
  s.nodes[0] = s.self;
  auto port = s.self.home_system().middleman().publish(s.self, options.port,
                                                       options.host.c_str());
  if (!port)
    throw error(errc::peer_failure, "cannot listen on " + options.host + ":"
                                      + std::to_string(options.port));
  if (options.listening)
    options.listening(*port);
}

void node_link::join(const node_options& options) {
  auto& s = *state_;
  auto first =
    s.self.home_system().middleman().remote_actor(options.host, options.port);
  if (!first)
    throw error(errc::peer_failure, "cannot reach process 0 at " + options.host
                                      + ":" + std::to_string(options.port));
  tell(*first, join_atom::value, s.process, s.graph_digest, pack(s.ids),
       s.addresses, s.self);
}

void node_link::tell_part_ended(step_id step, const std::string& failure) {
  for (auto& [process, node] : state_->others)
    tell(node, ended_atom::value, state_->process, step, failure);
}

std::uint32_t node_link::others() const noexcept {
  return static_cast<std::uint32_t>(state_->others.size());
}

std::uint64_t digest(const graph::ssa_graph& g) {
  // FNV-1a over what both sides must agree on.
  std::uint64_t hash = 0xcbf29ce484222325u;
  auto add = [&hash](std::string_view bytes) {
    for (unsigned char c : bytes)
      hash = (hash ^ c) * 0x100000001b3u;
  };
  for (handle_id id = 0; id < g.size(); ++id)
    add(graph::handle_name(g, id));
  for (auto& e : g.edges)
    add(std::to_string(e.from) + ">" + std::to_string(e.to) + "+"
        + std::to_string(e.distance) + ";");
  return hash;
}

} // namespace troupe::actors
