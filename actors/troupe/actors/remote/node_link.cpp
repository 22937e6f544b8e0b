// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/remote/node_link.hpp>

#include <troupe/actors/host.hpp>
#include <troupe/actors/remote/failure_codec.hpp>
#include <troupe/actors/remote/gate.hpp>
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
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace troupe::actors {

namespace {

using clock = std::chrono::steady_clock;
using actor_list = std::vector<caf::actor>;

// To process 0:
/// process (uint64), port of its end of the connection (uint16), description of
/// the run (string)
using join_atom = caf::atom_constant<caf::atom("join")>;
/// knows the others
using here_atom = caf::atom_constant<caf::atom("here")>;
// From process 0:
/// node actors of all (vector<actor>)
using welcome_atom = caf::atom_constant<caf::atom("welcome")>;
using begin_atom = caf::atom_constant<caf::atom("begin")>;
/// first step that cannot run (uint64), why there is no run, or none any more
/// (string)
using lost_atom = caf::atom_constant<caf::atom("lost")>;
// To and from process 0:
/// goes away behind so many steps (uint64), and waits for the answer: all that
/// it sent before has come then
using leave_atom = caf::atom_constant<caf::atom("leave")>;
using left_atom = caf::atom_constant<caf::atom("left")>;
// Among all:
/// channel (uint32), step (uint64), value (string)
using value_atom = caf::atom_constant<caf::atom("value")>;
/// channel (uint32), step (uint64), failure (string): instead of a value
using mark_atom = caf::atom_constant<caf::atom("mark")>;
/// channel (uint32), step (uint64)
using taken_atom = caf::atom_constant<caf::atom("taken")>;
/// step (uint64), failure (string)
using failed_atom = caf::atom_constant<caf::atom("failed")>;

/// How long one that leaves waits for the others to have heard all.
constexpr auto longest_leave = std::chrono::milliseconds{1500};

bool is_same(const caf::actor& a, const caf::strong_actor_ptr& b) {
  return a && b && a.id() == b->id() && a.node() == b->node();
}

std::string process_text(std::uint64_t process) {
  return "process " + std::to_string(process);
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
  transport* ends = nullptr;
  std::vector<std::uint32_t> sender_of;   // by channel: its process
  std::vector<std::uint32_t> receiver_of; // likewise
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
  // Whom this one controls or obeys: process 0 all, others process 0.
  std::map<std::uint64_t, caf::actor> nodes;
  actor_list everybody;         // by process, once all have joined
  std::set<std::uint64_t> here; // know the others
  std::set<std::uint64_t> gone; // have left, are lost, or have let this one go
  std::string failure;          // why there is no run (any more)
  step_id first_without = 0;    // the first step that cannot run, then
  step_id ended = 0;            // steps that have ended here
  std::optional<step_id> first_leaves_at; // process 0 waits for steps before
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
  void tell_nodes(const Ts&... content) {
    for (auto& [number, node] : nodes)
      if (!gone.contains(number))
        tell(node, content...);
  }
  template <class... Ts>
  void tell_process(std::uint64_t number, Ts&&... content) {
    std::lock_guard guard{mutex};
    if (number < everybody.size() && !gone.contains(number))
      tell(everybody[number], std::forward<Ts>(content)...);
  }

  /// The process whose node actor `who` is; none: no member.
  std::optional<std::uint64_t> process_of(const caf::strong_actor_ptr& who) {
    for (auto& [number, node] : nodes)
      if (is_same(node, who))
        return number;
    for (std::uint64_t p = 0; p < everybody.size(); ++p)
      if (p != process && is_same(everybody[p], who))
        return p;
    return {};
  }

  void list_channels(const graph::ssa_graph& g);
  void watch(const std::shared_ptr<state>& me, std::uint64_t number,
             const caf::actor& node);

  // The messages; `from` is the sender's process.
  void on_join(const std::shared_ptr<state>& me, std::uint64_t number,
               std::uint16_t port, const std::string& theirs,
               const caf::strong_actor_ptr& node);
  void on_welcome(const actor_list& all_nodes);
  void on_here(std::uint64_t from);
  void on_begin();
  void on_content(std::uint64_t from, std::uint32_t channel, step_id step,
                  transfer_content content);
  void on_taken(std::uint64_t from, std::uint32_t channel, step_id step);
  void on_failed(step_id step, const std::string& failure_there);
  void on_leave(std::uint64_t from, step_id steps);
  void on_left(std::uint64_t from);

  void know(const actor_list& all_nodes);
  std::string missing();
  void lose(step_id without, const std::string& why);
  void own_step_ended(step_id step);
  void let_go_if_idle();
  void is_gone(std::uint64_t number);
  bool tell_leave(step_id without);
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
  bool on_control(caf::type_erased_tuple& m, std::uint64_t from);
  bool on_step(caf::type_erased_tuple& m, std::uint64_t from);

  std::shared_ptr<state> link_;
};

bool node_link::node_actor::on_message(caf::mailbox_element& element, context) {
  using std::uint64_t;
  auto& m = element.content();
  auto& link = *link_;
  if (m.match_elements<join_atom, uint64_t, std::uint16_t, std::string>()) {
    link.on_join(link_, m.get_as<uint64_t>(1), m.get_as<std::uint16_t>(2),
                 m.get_as<std::string>(3), element.sender);
    return true;
  }
  std::optional<uint64_t> from;
  {
    std::lock_guard guard{link.mutex};
    from = link.process_of(element.sender);
  }
  return from && (on_step(m, *from) || on_control(m, *from));
}

bool node_link::node_actor::on_step(caf::type_erased_tuple& m,
                                    std::uint64_t from) {
  using std::uint32_t;
  using std::uint64_t;
  if (m.match_elements<value_atom, uint32_t, uint64_t, std::string>())
    link_->on_content(from, m.get_as<uint32_t>(1), m.get_as<uint64_t>(2),
                      {m.get_as<std::string>(3), {}});
  else if (m.match_elements<mark_atom, uint32_t, uint64_t, std::string>())
    link_->on_content(from, m.get_as<uint32_t>(1), m.get_as<uint64_t>(2),
                      {{}, decode_failure(m.get_as<std::string>(3))});
  else if (m.match_elements<taken_atom, uint32_t, uint64_t>())
    link_->on_taken(from, m.get_as<uint32_t>(1), m.get_as<uint64_t>(2));
  else if (m.match_elements<failed_atom, uint64_t, std::string>())
    link_->on_failed(m.get_as<uint64_t>(1), m.get_as<std::string>(2));
  else
    return false;
  return true;
}

bool node_link::node_actor::on_control(caf::type_erased_tuple& m,
                                       std::uint64_t from) {
  using std::uint64_t;
  if (!link_->is_first() && from != 0)
    return false;
  if (m.match_elements<leave_atom, uint64_t>())
    link_->on_leave(from, m.get_as<uint64_t>(1));
  else if (m.match_elements<left_atom>())
    link_->on_left(from);
  else if (link_->is_first()) {
    if (!m.match_elements<here_atom>())
      return false;
    link_->on_here(from);
  } else if (m.match_elements<lost_atom, uint64_t, std::string>())
    link_->lose(m.get_as<uint64_t>(1), m.get_as<std::string>(2));
  else if (m.match_elements<welcome_atom, actor_list>())
    link_->on_welcome(m.get_as<actor_list>(1));
  else if (m.match_elements<begin_atom>())
    link_->on_begin();
  else
    return false;
  return true;
}

// -- joining ------------------------------------------------------------------

void node_link::state::watch(const std::shared_ptr<state>& me,
                             std::uint64_t number, const caf::actor& node) {
  node->attach_functor([link = std::weak_ptr<state>(me),
                        number](const caf::error&) {
    auto there = link.lock();
    if (!there)
      return;
    {
      std::lock_guard guard{there->mutex};
      if (there->gone.contains(number))
        return; // it had left before
      there->is_gone(number);
    }
    there->lose(0, process_text(number) + " is lost: its connection has ended");
  });
}

void node_link::state::on_join(const std::shared_ptr<state>& me,
                               std::uint64_t number, std::uint16_t port,
                               const std::string& theirs,
                               const caf::strong_actor_ptr& from) {
  const auto node = caf::actor_cast<caf::actor>(from);
  std::string difference;
  {
    std::lock_guard guard{mutex};
    if (!is_first() || !node || closing)
      return;
    if (now != stage::joining || number == 0 || number >= processes
        || nodes.contains(number)) {
      tell(node, lost_atom::value, std::uint64_t{0},
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
    lose(0, "the processes differ in " + difference);
    return;
  }
  std::lock_guard guard{mutex};
  if (now != stage::joining || nodes.size() + 1 < processes || !failure.empty())
    return;
  now = stage::knowing;
  actor_list all{self};
  for (auto& [p, n] : nodes)
    all.push_back(n);
  know(all);
  tell_nodes(welcome_atom::value, all);
}

void node_link::state::know(const actor_list& all_nodes) {
  std::vector<caf::strong_actor_ptr> others;
  for (std::uint64_t p = 0; p < all_nodes.size(); ++p)
    if (p != process && all_nodes[p])
      others.push_back(caf::actor_cast<caf::strong_actor_ptr>(all_nodes[p]));
  members->know(others);
  everybody = all_nodes;
}

void node_link::state::on_welcome(const actor_list& all_nodes) {
  std::lock_guard guard{mutex};
  if (now != stage::joining || closing || all_nodes.size() != processes)
    return;
  know(all_nodes);
  now = stage::knowing;
  tell_nodes(here_atom::value);
}

void node_link::state::on_here(std::uint64_t from) {
  std::lock_guard guard{mutex};
  if (now != stage::knowing)
    return;
  here.insert(from);
  if (here.size() + 1 < processes)
    return;
  now = stage::running;
  tell_nodes(begin_atom::value);
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

void node_link::state::list_channels(const graph::ssa_graph& g) {
  for (auto& t : g.transfers) {
    sender_of.push_back(g.place_of(g.op(t.send).device));
    receiver_of.push_back(g.place_of(g.op(t.recv).device));
  }
}

// -- running ------------------------------------------------------------------

void node_link::state::on_content(std::uint64_t from, std::uint32_t channel,
                                  step_id step, transfer_content content) {
  auto due = false;
  {
    std::lock_guard guard{calling};
    if (closed || !ends)
      return;
    due = channel < sender_of.size() && sender_of[channel] == from
          && receiver_of[channel] == process
          && ends->arrived(channel, step, std::move(content));
  }
  if (!due)
    lose(0, process_text(from) + " has sent a value that is not due");
}

void node_link::state::on_taken(std::uint64_t from, std::uint32_t channel,
                                step_id step) {
  auto due = false;
  {
    std::lock_guard guard{calling};
    if (closed || !ends)
      return;
    due = channel < sender_of.size() && sender_of[channel] == process
          && receiver_of[channel] == from && ends->taken(channel, step);
  }
  if (!due)
    lose(0, process_text(from) + " has taken a value that was not sent");
}

void node_link::state::on_failed(step_id step,
                                 const std::string& failure_there) {
  std::lock_guard guard{calling};
  if (!closed)
    listens.failed(step, decode_failure(failure_there));
}

/// One is gone: from step `without` on nothing of any other process is waited
/// for any more. The first reason stays, unless a later one takes steps away.
void node_link::state::lose(step_id without, const std::string& why) {
  std::lock_guard calls{calling};
  bool runs = false;
  {
    std::lock_guard guard{mutex};
    if (!failure.empty() && first_without <= without)
      return;
    failure = why;
    first_without = without;
    runs = now == stage::running;
    if (is_first())
      tell_nodes(lost_atom::value, std::uint64_t{without}, why);
    changed.notify_all();
  }
  if (!runs || closed)
    return; // whoever waits for the others to join hears of it
  listens.gone(without, error{errc::peer_failure, why});
  // Nobody takes anything any more: what the last steps send goes all the same.
  for (std::uint32_t c = 0; ends && c < ends->channels(); ++c)
    ends->receiver_is_gone(c);
}

void node_link::state::own_step_ended(step_id step) {
  std::lock_guard guard{mutex};
  ended = step + 1;
  let_go_if_idle();
}

// -- leaving ------------------------------------------------------------------

/// Process 0 may go when it need not pass anything on any more.
void node_link::state::let_go_if_idle() {
  if (first_leaves_at && (processes == 2 || ended >= *first_leaves_at)) {
    tell(nodes[0], left_atom::value);
    first_leaves_at.reset();
    is_gone(0);
  }
}

void node_link::state::on_leave(std::uint64_t from, step_id steps) {
  {
    std::lock_guard guard{mutex};
    if (is_first()) {
      tell(nodes[from], left_atom::value);
      is_gone(from);
    } else {
      first_leaves_at = steps;
      let_go_if_idle();
    }
  }
  lose(steps, process_text(from) + " has left the run after "
                + std::to_string(steps) + " steps");
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

/// True if it had not been told before.
bool node_link::state::tell_leave(step_id without) {
  if (std::exchange(has_told_leave, true))
    return false;
  tell_nodes(leave_atom::value, std::uint64_t{without});
  return true;
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
    // Whoever was let in hears all that it was told.
    if (tell_leave(ended) && (is_first() || now == stage::running))
      changed.wait_for(guard, longest_leave, [this] { return are_all_gone(); });
    for (auto& [number, socket] : sockets)
      ::shutdown(socket.get(), SHUT_RDWR);
    for (auto& [port, socket] : entered)
      ::shutdown(socket.get(), SHUT_RDWR);
    sockets.clear();
    entered.clear();
  }
  // An address that went to other processes stands in the registry since, which
  // would keep its actor alive.
  system.registry().erase(members->self()->id());
  auto& address = object_of<node_actor>(members->self());
  address.retire();
  address.forget(); // they hold each other
  std::lock_guard guard{mutex};
  nodes.clear();
  everybody.clear();
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
  link.tell(first, join_atom::value, link.process, port, link.description);
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
  link.lose(0, "after " + std::to_string(options.timeout_ms) + " ms "
                 + link.missing());
  std::lock_guard guard{link.mutex};
  throw error(errc::peer_failure, link.failure);
}

node_link::node_link(caf::actor_system& system, const node_options& options,
                     std::string description, const graph::ssa_graph& graph,
                     transport* ends, listener listens)
  : state_(std::make_shared<state>(system)) {
  const auto deadline =
    clock::now() + std::chrono::milliseconds(options.timeout_ms);
  auto& s = *state_;
  s.process = options.process;
  s.processes = options.processes();
  s.description = std::move(description);
  s.ends = ends;
  s.list_channels(graph);
  s.listens = std::move(listens);
  auto self = make<node_actor>(system, state_);
  s.self = caf::actor_cast<caf::actor>(self);
  s.members = std::make_shared<run_members>(std::move(self));
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

const std::shared_ptr<run_members>& node_link::members() const noexcept {
  return state_->members;
}

void node_link::ended(step_id step) {
  state_->own_step_ended(step);
}

void node_link::tell_failed(step_id step, const error& reason) {
  const auto bytes = encode_failure(reason);
  for (std::uint64_t p = 0; p < state_->processes; ++p)
    if (p != state_->process)
      state_->tell_process(p, failed_atom::value, std::uint64_t{step}, bytes);
}

void node_link::leave(step_id first_without) noexcept {
  auto& s = *state_;
  std::unique_lock guard{s.mutex};
  s.tell_leave(first_without);
  s.changed.wait_for(guard, longest_leave, [&s] { return s.are_all_gone(); });
}

void node_link::send(std::uint32_t channel, step_id step,
                     transfer_content content) {
  const auto to = state_->receiver_of[channel];
  if (content.failure)
    state_->tell_process(to, mark_atom::value, channel, std::uint64_t{step},
                         encode_failure(*content.failure));
  else
    state_->tell_process(to, value_atom::value, channel, std::uint64_t{step},
                         std::move(content.value));
}

void node_link::tell_taken(std::uint32_t channel, step_id step) {
  state_->tell_process(state_->sender_of[channel], taken_atom::value, channel,
                       std::uint64_t{step});
}

// -- options ------------------------------------------------------------------

void check_nodes(const node_options& options, std::size_t devices) {
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

} // namespace troupe::actors
