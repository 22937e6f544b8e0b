// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/node_link.hpp>

#include <troupe/actors/remote/gate.hpp>
#include <troupe/actors/remote/joint_steps.hpp>
#include <troupe/actors/remote/run_description.hpp>

#include <caf/actor_registry.hpp>
#include <caf/atom.hpp>
#include <caf/io/basp_broker.hpp>
#include <caf/io/middleman.hpp>
#include <caf/io/network/multiplexer.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <utility>

namespace troupe::actors {

namespace {

using clock = std::chrono::steady_clock;
using actor_list = std::vector<caf::actor>;

// To process 0:
/// process (uint64), port of its end of the connection (uint16), description of
/// the run (string), packed handle ids (string), their addresses
/// (vector<actor>)
using join_atom = caf::atom_constant<caf::atom("join")>;
/// knows the others
using here_atom = caf::atom_constant<caf::atom("here")>;
/// step (uint64), failure (string)
using part_ended_atom = caf::atom_constant<caf::atom("partended")>;
// From process 0:
/// packed handle ids (string), addresses, node actors (vector<actor> each)
using welcome_atom = caf::atom_constant<caf::atom("welcome")>;
using begin_atom = caf::atom_constant<caf::atom("begin")>;
/// step (uint64), failure (string)
using step_ended_atom = caf::atom_constant<caf::atom("stepended")>;
/// why there is no run, or none any more (string)
using lost_atom = caf::atom_constant<caf::atom("lost")>;
// Both ways:
/// goes away, and waits for the answer: all that it sent before has come then
using leave_atom = caf::atom_constant<caf::atom("leave")>;
using left_atom = caf::atom_constant<caf::atom("left")>;

/// How long one that leaves waits for the others to have heard all.
constexpr auto longest_leave = std::chrono::milliseconds{1500};

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

void check_options(const node_options& options, std::size_t devices) {
  if (options.process_of_device.size() != devices)
    throw error(errc::invalid_argument,
                "a process must be given for each of the "
                  + std::to_string(devices) + " devices");
  // Numbers are counted: no memory for a million processes of two devices.
  if (options.process >= devices
      || std::ranges::any_of(options.process_of_device,
                             [&](auto p) { return p >= devices; }))
    throw error(errc::invalid_argument,
                "processes are numbered from 0, and there are no more than "
                  + std::to_string(devices) + " for as many devices");
  parse_loopback(options.host, options.port);
}

bool is_same(const caf::actor& a, const caf::strong_actor_ptr& b) {
  return a && b && a.id() == b->id() && a.node() == b->node();
}

std::string process_text(std::uint64_t process) {
  return "process " + std::to_string(process);
}

/// What others are told of a failed part; empty if it has not.
std::string failure_text(std::uint64_t process, const std::string& failure) {
  return failure.empty() ? failure
                         : "in " + process_text(process) + ": " + failure;
}

} // namespace

/// What the link is, kept alive by the node actor. `calling` is held while the
/// listener is called, and taken before `mutex` where both are. Messages are
/// sent under `mutex`, so that all see their order; nothing is called there
/// that may come back.
struct node_link::state {
  caf::actor_system& system;
  std::uint64_t process = 0;
  std::uint64_t processes = 1;
  std::string description;
  actor_graph* actors = nullptr;
  std::set<handle_id> receivers; // elsewhere, of this process's messages
  std::size_t handles = 0;
  listener listens;
  std::shared_ptr<run_members> members;

  std::mutex calling;
  bool closed = false; // guarded by `calling`: the executor may be gone

  explicit state(caf::actor_system& in) : system(in) {}

  enum class stage { joining, knowing, running };

  std::mutex mutex; // guards what follows
  std::condition_variable changed;
  stage now = stage::joining;
  caf::actor self;
  // Whom this one talks to: process 0 to all, others to process 0.
  std::map<std::uint64_t, caf::actor> nodes;
  std::vector<handle_id> ids; // of all addresses
  actor_list addresses;
  std::set<std::uint64_t> here; // know the others
  std::set<std::uint64_t> gone; // have left, are lost, or have let this one go
  std::string failure;          // why there is no run (any more)
  std::optional<joint_steps> steps;
  // Copies of CAF's sockets, with which a connection is cut if the other end
  // answers no more; CAF would wait for it. By port of the other end until it
  // has joined, then by process until that is gone: a copy keeps the connection
  // open.
  std::map<std::uint16_t, descriptor> entered;
  std::map<std::uint64_t, descriptor> sockets;
  bool has_told_leave = false;
  bool closing = false;

  bool is_first() const { return process == 0; }

  template <class... Ts>
  void tell(const caf::actor& to, Ts&&... content) {
    post_from(caf::actor_cast<caf::strong_actor_ptr>(self),
              caf::actor_cast<caf::strong_actor_ptr>(to),
              std::forward<Ts>(content)...);
  }
  template <class... Ts>
  void tell_all(const Ts&... content) {
    for (auto& [number, node] : nodes)
      if (!gone.contains(number))
        tell(node, content...);
  }

  /// The process whose node actor `who` is; none: nobody that this one talks
  /// to.
  std::optional<std::uint64_t> process_of(const caf::strong_actor_ptr& who) {
    for (auto& [number, node] : nodes)
      if (is_same(node, who))
        return number;
    return {};
  }

  void add_own_addresses() {
    for (handle_id id = 0; id < handles; ++id)
      if (auto a = actors->address(id)) {
        ids.push_back(id);
        addresses.push_back(caf::actor_cast<caf::actor>(a));
      }
  }

  void watch(const std::shared_ptr<state>& me, std::uint64_t number,
             const caf::actor& node);

  // The messages; `from` is the sender's process.
  void on_join(const std::shared_ptr<state>& me, std::uint64_t number,
               std::uint16_t port, const std::string& theirs,
               const std::string& their_ids, const actor_list& their_addresses,
               const caf::strong_actor_ptr& node);
  void on_welcome(const std::vector<handle_id>& all_ids, const actor_list& all,
                  const actor_list& all_nodes);
  void on_here(std::uint64_t from);
  void on_begin();
  void on_part_ended(std::uint64_t from, step_id step,
                     const std::string& failure);
  void on_step_ended(step_id step, const std::string& failure);
  void on_leave(std::uint64_t from);
  void on_left(std::uint64_t from);

  void know(const std::vector<handle_id>& all_ids, const actor_list& all,
            const actor_list& all_nodes);
  std::string missing();
  void lose(const std::string& why);
  void own_part_ended(step_id step, const std::string& failure);
  void settle();
  void is_gone(std::uint64_t number);
  void tell_leave();
  bool are_all_gone() const;
  void close() noexcept;
};

/// The address of a process for the others. No exit message ends it: the link
/// does.
class node_link::node_actor final : public actor_base {
public:
  node_actor(caf::actor_config& cfg, std::shared_ptr<state> link)
    : actor_base(cfg), link_(std::move(link)) {}

  const char* name() const override { return "troupe.node"; }
  /// Lets the link go. Retired.
  void forget() { link_.reset(); }

protected:
  bool obeys(const caf::exit_msg&) const override { return false; }
  bool on_message(caf::mailbox_element& element, context ctx) override;

private:
  bool on_first(caf::type_erased_tuple& m, std::uint64_t from);
  bool on_other(caf::type_erased_tuple& m);

  std::shared_ptr<state> link_;
};

bool node_link::node_actor::on_message(caf::mailbox_element& element, context) {
  auto& m = element.content();
  auto& link = *link_;
  if (m.match_elements<join_atom, std::uint64_t, std::uint16_t, std::string,
                       std::string, actor_list>()) {
    link.on_join(link_, m.get_as<std::uint64_t>(1), m.get_as<std::uint16_t>(2),
                 m.get_as<std::string>(3), m.get_as<std::string>(4),
                 m.get_as<actor_list>(5), element.sender);
    return true;
  }
  std::optional<std::uint64_t> from;
  {
    std::lock_guard guard{link.mutex};
    from = link.process_of(element.sender);
  }
  if (!from)
    return false;
  if (m.match_elements<leave_atom>())
    link.on_leave(*from);
  else if (m.match_elements<left_atom>())
    link.on_left(*from);
  else
    return link.is_first() ? on_first(m, *from) : on_other(m);
  return true;
}

bool node_link::node_actor::on_first(caf::type_erased_tuple& m,
                                     std::uint64_t from) {
  if (m.match_elements<part_ended_atom, std::uint64_t, std::string>())
    link_->on_part_ended(from, m.get_as<std::uint64_t>(1),
                         m.get_as<std::string>(2));
  else if (m.match_elements<here_atom>())
    link_->on_here(from);
  else
    return false;
  return true;
}

bool node_link::node_actor::on_other(caf::type_erased_tuple& m) {
  if (m.match_elements<step_ended_atom, std::uint64_t, std::string>())
    link_->on_step_ended(m.get_as<std::uint64_t>(1), m.get_as<std::string>(2));
  else if (m.match_elements<lost_atom, std::string>())
    link_->lose(m.get_as<std::string>(1));
  else if (m.match_elements<welcome_atom, std::string, actor_list,
                            actor_list>())
    link_->on_welcome(unpack(m.get_as<std::string>(1)), m.get_as<actor_list>(2),
                      m.get_as<actor_list>(3));
  else if (m.match_elements<begin_atom>())
    link_->on_begin();
  else
    return false;
  return true;
}

// -- joining ------------------------------------------------------------------

void node_link::state::watch(const std::shared_ptr<state>& me,
                             std::uint64_t number, const caf::actor& node) {
  node->attach_functor(
    [link = std::weak_ptr<state>(me), number](const caf::error&) {
      auto there = link.lock();
      if (!there)
        return;
      {
        std::lock_guard guard{there->mutex};
        there->is_gone(number);
      }
      there->lose(process_text(number) + " is lost: its connection has ended");
    });
}

void node_link::state::on_join(const std::shared_ptr<state>& me,
                               std::uint64_t number, std::uint16_t port,
                               const std::string& theirs,
                               const std::string& their_ids,
                               const actor_list& their_addresses,
                               const caf::strong_actor_ptr& from) {
  const auto node = caf::actor_cast<caf::actor>(from);
  const auto unpacked = unpack(their_ids);
  std::string difference;
  {
    std::lock_guard guard{mutex};
    if (!is_first() || !node || closing
        || unpacked.size() != their_addresses.size())
      return;
    if (now != stage::joining || number == 0 || number >= processes
        || nodes.contains(number)) {
      tell(node, lost_atom::value,
           process_text(number) + " has joined already or is not expected");
      return;
    }
    nodes[number] = node;
    if (auto socket = entered.extract(port))
      sockets.emplace(number, std::move(socket.mapped()));
    difference = first_difference(description, theirs, number);
  }
  watch(me, number, node);
  if (!difference.empty()) {
    lose("the processes differ in " + difference);
    return;
  }
  actor_list everybody;
  {
    std::lock_guard guard{mutex};
    ids.insert(ids.end(), unpacked.begin(), unpacked.end());
    addresses.insert(addresses.end(), their_addresses.begin(),
                     their_addresses.end());
    if (nodes.size() + 1 < processes || !failure.empty())
      return;
    now = stage::knowing;
    everybody.push_back(self);
    for (auto& [p, n] : nodes)
      everybody.push_back(n);
    know(ids, addresses, everybody);
    tell_all(welcome_atom::value, pack(ids), addresses, everybody);
  }
}

void node_link::state::know(const std::vector<handle_id>& all_ids,
                            const actor_list& all,
                            const actor_list& all_nodes) {
  for (std::size_t i = 0; i < all_ids.size() && i < all.size(); ++i)
    if (receivers.contains(all_ids[i]))
      actors->connect(all_ids[i],
                      caf::actor_cast<caf::strong_actor_ptr>(all[i]));
  std::vector<caf::strong_actor_ptr> others;
  for (std::uint64_t p = 0; p < all_nodes.size(); ++p)
    if (p != process && all_nodes[p])
      others.push_back(caf::actor_cast<caf::strong_actor_ptr>(all_nodes[p]));
  members->know(others);
}

void node_link::state::on_welcome(const std::vector<handle_id>& all_ids,
                                  const actor_list& all,
                                  const actor_list& all_nodes) {
  std::lock_guard guard{mutex};
  if (now != stage::joining || closing || all_nodes.size() != processes)
    return;
  know(all_ids, all, all_nodes);
  now = stage::knowing;
  tell_all(here_atom::value);
}

void node_link::state::on_here(std::uint64_t from) {
  std::lock_guard guard{mutex};
  if (now != stage::knowing)
    return;
  here.insert(from);
  if (here.size() + 1 < processes)
    return;
  now = stage::running;
  tell_all(begin_atom::value);
  changed.notify_all();
}

void node_link::state::on_begin() {
  std::lock_guard guard{mutex};
  if (now != stage::knowing)
    return;
  now = stage::running;
  changed.notify_all();
}

/// For whom this process waits that wants to begin, as a part of a sentence.
std::string node_link::state::missing() {
  if (!is_first())
    return "process 0 has not begun: not all processes have joined";
  std::lock_guard guard{mutex};
  std::string text;
  for (std::uint64_t p = 1; p < processes; ++p)
    if (!nodes.contains(p) || (now == stage::knowing && !here.contains(p)))
      text += (text.empty() ? "" : ", ") + process_text(p);
  return "these have not joined: " + text;
}

// -- running ------------------------------------------------------------------

void node_link::state::on_part_ended(std::uint64_t from, step_id step,
                                     const std::string& failure_there) {
  {
    std::lock_guard guard{mutex};
    if (now != stage::running || steps->lost()
        || !steps->part_ended(from, step, failure_text(from, failure_there)))
      return;
  }
  std::lock_guard guard{calling};
  settle();
}

void node_link::state::on_step_ended(step_id step,
                                     const std::string& failure_there) {
  {
    std::lock_guard guard{mutex};
    if (now != stage::running || steps->lost()
        || !steps->part_ended(0, step, failure_there))
      return;
  }
  std::lock_guard guard{calling};
  settle();
}

void node_link::state::own_part_ended(step_id step,
                                      const std::string& failure_here) {
  {
    std::lock_guard guard{mutex};
    steps->part_ended(is_first() ? 0 : 1, step,
                      failure_text(process, failure_here));
    if (!is_first() && !steps->lost())
      tell_all(part_ended_atom::value, step, failure_here);
  }
  std::lock_guard guard{calling};
  settle();
}

/// Reports steps that have ended. Under `calling`: in order.
void node_link::state::settle() {
  for (;;) {
    std::optional<joint_steps::ended_step> ended;
    {
      std::lock_guard guard{mutex};
      ended = steps->next();
      if (ended && is_first() && !steps->lost())
        tell_all(step_ended_atom::value, ended->step, ended->failure);
    }
    if (!ended)
      return;
    if (!closed)
      listens.ended(ended->step, ended->failure);
  }
}

/// One is lost: nothing of any other process is waited for any more.
void node_link::state::lose(const std::string& why) {
  std::lock_guard calls{calling};
  bool runs = false;
  {
    std::lock_guard guard{mutex};
    if (!failure.empty())
      return;
    const auto before = steps->first_failure(); // why it has left, perhaps
    failure = before.empty() ? why : why + " after a step failed " + before;
    steps->lose(failure);
    runs = now == stage::running;
    if (is_first())
      tell_all(lost_atom::value, failure);
    changed.notify_all();
  }
  if (!runs)
    return; // whoever waits for the others to join hears of it
  if (!closed)
    listens.lost(failure); // does not change any more
  settle();
}

// -- leaving ------------------------------------------------------------------

void node_link::state::on_leave(std::uint64_t from) {
  {
    std::lock_guard guard{mutex};
    tell(nodes[from], left_atom::value);
    is_gone(from);
  }
  lose(process_text(from) + " has left the run");
}

void node_link::state::on_left(std::uint64_t from) {
  std::lock_guard guard{mutex};
  is_gone(from);
}

void node_link::state::is_gone(std::uint64_t number) {
  gone.insert(number);
  sockets.erase(number);
  changed.notify_all();
}

void node_link::state::tell_leave() {
  if (!std::exchange(has_told_leave, true))
    tell_all(leave_atom::value);
}

bool node_link::state::are_all_gone() const {
  return std::ranges::all_of(
    nodes, [this](auto& node) { return gone.contains(node.first); });
}

void node_link::state::close() noexcept {
  {
    std::lock_guard guard{calling};
    closed = true;
  }
  {
    std::unique_lock guard{mutex};
    closing = true;
    tell_leave();
    // Whoever was let in hears all that it was told.
    if (is_first() || now == stage::running)
      changed.wait_for(guard, longest_leave, [this] { return are_all_gone(); });
    for (auto& [number, socket] : sockets)
      ::shutdown(socket.get(), SHUT_RDWR);
    for (auto& [port, socket] : entered)
      ::shutdown(socket.get(), SHUT_RDWR);
    sockets.clear();
    entered.clear();
  }
  // Addresses that went to other processes stand in the registry since, which
  // would keep the actors alive.
  for (handle_id id = 0; id < handles; ++id)
    if (auto a = actors->address(id))
      system.registry().erase(a->id());
  system.registry().erase(members->self()->id());
  auto& address = object_of<node_actor>(members->self());
  address.retire();
  address.forget(); // they hold each other
  std::lock_guard guard{mutex};
  nodes.clear();
  addresses.clear();
  self = nullptr;
}

// -- the link -----------------------------------------------------------------

/// The way of CAF's connections: a socket comes to CAF when it has shown the
/// pass of the run.
struct node_link::door {
  caf::actor_system& system;
  state& link;

  caf::actor broker() {
    return system.middleman().named_broker<caf::io::basp_broker>(
      caf::atom("BASP"));
  }

  /// Takes a copy of the socket, and gives it to CAF.
  caf::io::scribe_ptr scribe_of(descriptor socket) {
    return system.middleman().backend().new_scribe(socket.release());
  }

  static descriptor copy_of(const descriptor& socket) {
    return descriptor{::fcntl(socket.get(), F_DUPFD_CLOEXEC, 0)};
  }

  void admit(descriptor socket, std::uint16_t gate_port) {
    caf::strong_actor_ptr self;
    {
      std::lock_guard guard{link.mutex};
      self = caf::actor_cast<caf::strong_actor_ptr>(link.self);
      link.entered.insert_or_assign(port_of_peer(socket.get()),
                                    copy_of(socket));
    }
    caf::anon_send(broker(), caf::publish_atom_v, scribe_of(std::move(socket)),
                   gate_port, std::move(self), std::set<std::string>{});
  }

  /// CAF gives out no other addresses to newcomers any more.
  void closed(std::uint16_t gate_port) {
    caf::anon_send(broker(), caf::unpublish_atom_v,
                   caf::actor_cast<caf::actor_addr>(link.members->self()),
                   gate_port);
    std::lock_guard guard{link.mutex};
    link.entered.clear();
  }

  /// The node actor of process 0.
  caf::actor connect(descriptor socket, const node_options& options,
                     clock::time_point deadline);
  void join(const std::shared_ptr<state>& me, const node_options& options,
            clock::time_point deadline);
  void wait(const node_options& options, clock::time_point deadline);
};

caf::actor node_link::door::connect(descriptor socket,
                                    const node_options& options,
                                    clock::time_point deadline) {
  {
    std::lock_guard guard{link.mutex};
    link.sockets.emplace(0, copy_of(socket));
  }
  const auto left =
    std::chrono::ceil<std::chrono::milliseconds>(deadline - clock::now());
  caf::scoped_actor asking{system};
  caf::strong_actor_ptr first;
  asking
    ->request(broker(), std::max(left, std::chrono::milliseconds{1}),
              caf::connect_atom_v, scribe_of(std::move(socket)), options.port)
    .receive([&](const caf::node_id&, caf::strong_actor_ptr& found,
                 const std::set<std::string>&) { first = std::move(found); },
             [](const caf::error&) {});
  if (!first)
    throw error(errc::peer_failure, "process 0 at " + options.host + ":"
                                      + std::to_string(options.port)
                                      + " does not answer");
  return caf::actor_cast<caf::actor>(first);
}

void node_link::door::join(const std::shared_ptr<state>& me,
                           const node_options& options,
                           clock::time_point deadline) {
  auto socket =
    knock(options.host, options.port, options.pass_folder, deadline);
  const auto port = port_of(socket.get());
  const auto first = connect(std::move(socket), options, deadline);
  {
    std::lock_guard guard{link.mutex};
    link.nodes[0] = first;
  }
  link.watch(me, 0, first);
  std::lock_guard guard{link.mutex};
  link.tell(first, join_atom::value, link.process, port, link.description,
            pack(link.ids), link.addresses);
}

void node_link::door::wait(const node_options& options,
                           clock::time_point deadline) {
  {
    std::unique_lock guard{link.mutex};
    link.changed.wait_until(guard, deadline, [this] {
      return link.now == state::stage::running || !link.failure.empty();
    });
    if (link.failure.empty() && link.now == state::stage::running)
      return;
  }
  // Or it has another reason meanwhile; the first one stays.
  link.lose("after " + std::to_string(options.timeout_ms) + " ms "
            + link.missing());
  std::lock_guard guard{link.mutex};
  throw error(errc::peer_failure, link.failure);
}

node_link::node_link(caf::actor_system& system, const node_options& options,
                     std::string description, const graph::ssa_graph& graph,
                     actor_graph& actors, listener listens)
  : state_(std::make_shared<state>(system)) {
  check_options(options, graph.devices.size());
  const auto deadline =
    clock::now() + std::chrono::milliseconds(options.timeout_ms);
  auto& s = *state_;
  s.process = options.process;
  s.processes = options.processes();
  s.description = std::move(description);
  s.actors = &actors;
  s.handles = graph.size();
  s.listens = std::move(listens);
  const auto receivers = actors.remote_receivers();
  s.receivers = {receivers.begin(), receivers.end()};
  s.steps.emplace(s.is_first() ? s.processes : 2, s.is_first() ? 0 : 1);
  s.add_own_addresses();
  auto self = make<node_actor>(system, state_);
  s.self = caf::actor_cast<caf::actor>(self);
  s.members = std::make_shared<run_members>(std::move(self));
  actors.context().members = s.members;
  door way{system, s};
  try {
    if (s.processes == 1) {
      s.now = state::stage::running;
    } else if (s.is_first()) {
      std::uint16_t port = 0;
      {
        gate in{options.host, options.port, options.pass_folder,
                [&](descriptor socket, std::uint16_t at) {
                  way.admit(std::move(socket), at);
                }};
        port = in.port();
        if (options.listening)
          options.listening(port);
        way.wait(options, deadline);
      }
      way.closed(port);
    } else {
      way.join(state_, options, deadline);
      way.wait(options, deadline);
    }
  } catch (...) {
    s.close();
    throw;
  }
}

node_link::~node_link() {
  state_->close();
}

// The state is held until the end: the step that this ends may be the last.
void node_link::part_ended(step_id step, const std::string& failure) {
  const auto s = state_;
  s->own_part_ended(step, failure);
}

void node_link::leave(const std::string& why) {
  const auto s = state_;
  {
    std::lock_guard guard{s->mutex};
    s->tell_leave();
  }
  s->lose(why);
}

} // namespace troupe::actors
