// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/remote/node_state.hpp>

#include <troupe/actors/remote/node_actor.hpp>
#include <troupe/actors/remote/run_description.hpp>
#include <troupe/base/failure_codec.hpp>

#include <sys/socket.h>

#include <algorithm>
#include <utility>

namespace troupe::actors {

namespace {

bool is_same(const caf::actor& a, const caf::strong_actor_ptr& b) {
  return a && b && a.id() == b->id() && a.node() == b->node();
}

std::string process_text(std::uint64_t process) {
  return "process " + std::to_string(process);
}

} // namespace

std::optional<std::uint64_t>
node_state::process_of(const caf::strong_actor_ptr& who) {
  for (auto& [number, node] : nodes)
    if (is_same(node, who))
      return number;
  for (std::uint64_t p = 0; p < everybody.size(); ++p)
    if (p != process && is_same(everybody[p], who))
      return p;
  return {};
}

// -- joining ------------------------------------------------------------------

void node_state::watch(const std::shared_ptr<node_state>& me,
                       std::uint64_t number, const caf::actor& node) {
  node->attach_functor([link = std::weak_ptr<node_state>(me),
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

/// Empty if the process is expected.
std::string node_state::why_not_to_join(std::uint64_t number) const {
  if (now != stage::joining)
    return "the run has begun without another " + process_text(number);
  if (number >= processes)
    return process_text(number) + " has come, but process 0 expects "
           + std::to_string(processes) + " processes";
  if (number == 0 || nodes.contains(number))
    return process_text(number) + " is there already: two have this number";
  return {};
}

void node_state::on_join(const std::shared_ptr<node_state>& me,
                         std::uint64_t number, const std::string& theirs,
                         const caf::strong_actor_ptr& from) {
  const auto node = caf::actor_cast<caf::actor>(from);
  std::string failure_of_all;
  {
    std::lock_guard guard{mutex};
    if (!is_first() || !node || closing)
      return;
    refusal = why_not_to_join(number);
    if (!refusal.empty())
      tell(node, lost_atom_v, std::uint64_t{0}, refusal);
    if (now != stage::joining || number == 0 || nodes.contains(number))
      return;             // the others can still come
    nodes[number] = node; // also of one too many: it must hear why
    if (auto socket = entered.extract(number))
      sockets.emplace(number, std::move(socket.mapped()));
    if (number >= processes)
      failure_of_all = refusal; // it has the pass: their numbers differ
    else if (const auto text = first_difference(description, theirs, number);
             !text.empty()) {
      failure_of_all = "the processes differ in " + text;
      // It hears first that this is its own mistake.
      tell(node, differs_atom_v, failure_of_all);
    }
  }
  watch(me, number, node);
  if (!failure_of_all.empty()) {
    lose(0, failure_of_all);
    return;
  }
  std::lock_guard guard{mutex};
  if (now != stage::joining || nodes.size() + 1 != processes
      || nodes.rbegin()->first >= processes || !failure.empty())
    return;
  now = stage::knowing;
  actor_list all{self};
  for (auto& [p, n] : nodes)
    all.push_back(n);
  know(all);
  tell_nodes(welcome_atom_v, all);
}

void node_state::know(const actor_list& all_nodes) {
  std::vector<caf::strong_actor_ptr> others;
  for (std::uint64_t p = 0; p < all_nodes.size(); ++p)
    if (p != process && all_nodes[p])
      others.push_back(caf::actor_cast<caf::strong_actor_ptr>(all_nodes[p]));
  members->know(others);
  everybody = all_nodes;
}

void node_state::on_welcome(const actor_list& all_nodes) {
  std::lock_guard guard{mutex};
  if (now != stage::joining || closing || all_nodes.size() != processes)
    return;
  know(all_nodes);
  now = stage::knowing;
  tell_nodes(here_atom_v);
}

void node_state::on_here(std::uint64_t from) {
  std::lock_guard guard{mutex};
  if (now != stage::knowing)
    return;
  here.insert(from);
  if (here.size() + 1 < processes)
    return;
  now = stage::running;
  tell_nodes(begin_atom_v);
  changed.notify_all();
}

void node_state::on_begin() {
  std::lock_guard guard{mutex};
  if (now != stage::knowing)
    return;
  now = stage::running;
  changed.notify_all();
}

/// The processes that this process waits for at start-up, as part of an error
/// message.
std::string node_state::missing() {
  if (!is_first())
    return "process 0 has not begun: not all processes have joined";
  std::lock_guard guard{mutex};
  std::string text;
  for (std::uint64_t p = 1; p < processes; ++p)
    if (!nodes.contains(p) || (now == stage::knowing && !here.contains(p)))
      text += (text.empty() ? "" : ", ") + process_text(p);
  return "these have not joined: " + text
         + (refusal.empty() ? "" : "; " + refusal);
}

// -- running ------------------------------------------------------------------

void node_state::on_failed(step_id step, const std::string& failure_there) {
  std::lock_guard guard{calling};
  if (!closed)
    listens.failed(step, decode_failure(failure_there));
}

/// Only few and short texts are due.
void node_state::on_published(std::uint64_t from, const std::string& key,
                              const std::string& value) {
  constexpr std::size_t longest_key = 256, longest_value = 64 << 10,
                        most_keys = 1024;
  {
    std::lock_guard guard{mutex};
    if (key.size() <= longest_key && value.size() <= longest_value
        && published.size() < most_keys && published.emplace(key, value).second)
      return;
  }
  lose(0, process_text(from) + " has published a text that is not due");
}

/// Notes that nobody takes are dropped: they are not worth the memory.
void node_state::on_note(std::uint64_t from, const std::string& text) {
  constexpr std::size_t longest = 256 << 10, most = 256;
  std::lock_guard guard{mutex};
  if (text.size() <= longest && notes.size() < most)
    notes.push_back({from, text});
}

/// Called when a process is gone. From step `without` on, nothing from other
/// processes is awaited any more. The first reason is kept, unless a later one
/// has a smaller `without`.
void node_state::lose(step_id without, const std::string& why, errc code) {
  std::lock_guard calls{calling};
  bool runs = false;
  {
    std::lock_guard guard{mutex};
    if (!failure.empty() && first_without <= without)
      return;
    failure = why;
    failure_code = code;
    first_without = without;
    runs = now == stage::running;
    if (is_first())
      tell_nodes(lost_atom_v, std::uint64_t{without}, why);
    changed.notify_all();
  }
  if (!runs || closed)
    return; // a thread that waits for the others to join has been notified
  listens.gone(without, error{code, why});
}

void node_state::own_step_ended(step_id step) {
  std::lock_guard guard{mutex};
  ended = step + 1;
  let_go_if_idle();
}

// -- leaving ------------------------------------------------------------------

/// Releases process 0 if it wants to leave and has nothing left to relay for
/// this process.
void node_state::let_go_if_idle() {
  if (first_leaves_at && (processes == 2 || ended >= *first_leaves_at)) {
    tell(nodes[0], left_atom_v);
    has_released_first = true;
    first_leaves_at.reset();
    is_gone(0);
  }
}

void node_state::on_leave(std::uint64_t from, step_id steps) {
  {
    std::lock_guard guard{mutex};
    if (is_first()) {
      tell(nodes[from], left_atom_v);
      is_gone(from);
    } else {
      first_leaves_at = steps;
      let_go_if_idle();
    }
  }
  lose(steps, process_text(from) + " has left the run after "
                + std::to_string(steps) + " steps");
}

void node_state::on_left(std::uint64_t from) {
  std::lock_guard guard{mutex};
  is_gone(from);
}

void node_state::is_gone(std::uint64_t number) {
  gone.insert(number);
  sockets.erase(number);
  changed.notify_all();
}

/// Notifies the others once. False if they have been notified before.
bool node_state::tell_leave(step_id without) {
  if (std::exchange(has_told_leave, true))
    return false;
  tell_nodes(leave_atom_v, std::uint64_t{without});
  return true;
}

bool node_state::are_all_gone() const {
  return std::ranges::all_of(
    nodes, [this](auto& node) { return gone.contains(node.first); });
}

/// CAF writes to a tunnel some time after a message was sent to it. What
/// releases process 0 must arrive before the connection ends, or process 0
/// takes this process for lost: so process 0 ends it.
void node_state::end_tunnels() noexcept {
  constexpr std::chrono::milliseconds longest{1000};
  std::vector<std::unique_ptr<comm::tls_tunnel>> all; // destroyed unlocked
  bool waits = false;
  {
    std::lock_guard guard{mutex};
    all.swap(tunnels);
    waits = has_released_first;
  }
  for (auto& tunnel : all)
    if (waits)
      tunnel->wait_for_end(longest);
}

void node_state::close() noexcept {
  {
    std::lock_guard guard{calling};
    closed = true;
  }
  {
    std::unique_lock guard{mutex};
    closing = true;
    // A process that has joined must receive all messages sent to it.
    if (tell_leave(ended) && (is_first() || now == stage::running))
      changed.wait_for(guard, longest_leave, [this] { return are_all_gone(); });
    for (auto& [number, socket] : sockets)
      ::shutdown(socket.get(), SHUT_RDWR);
    for (auto& [number, socket] : entered)
      ::shutdown(socket.get(), SHUT_RDWR);
    sockets.clear();
    entered.clear();
  }
  // CAF put the address into the registry when it was sent to other processes.
  // The registry would keep the actor alive.
  system.registry().erase(members->self()->id());
  auto& address = object_of<node_actor>(members->self());
  address.retire();
  address.forget(); // breaks a reference cycle
  end_tunnels();
  std::lock_guard guard{mutex};
  nodes.clear();
  everybody.clear();
  self = nullptr;
}

} // namespace troupe::actors
