// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/wiring/wiring_plan.hpp>

#include <troupe/base/assert.hpp>
#include <troupe/base/quoted_name.hpp>
#include <troupe/graph/ssa/implied_edges.hpp>
#include <troupe/graph/ssa/storage_accesses.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <numeric>
#include <ranges>
#include <tuple>
#include <utility>

namespace troupe::graph {

namespace {

bool has_collective_on(const ssa_graph& g, std::size_t device) {
  return std::ranges::any_of(g.ops, [&](const op_handle& o) {
    return o.stream == stream_kind::collective && o.device == device;
  });
}

/// An op that uses a temporary of the step `distance` steps before its own.
struct user {
  handle_id op;
  std::uint32_t distance;
};

/// Lists the readers of the last version, or its writer if nothing reads it.
/// Edges order the users of earlier versions before them.
void list_last_users(const storage_accesses& s, std::vector<user>& users) {
  users.clear();
  for (auto v = s.versions.rbegin(); v != s.versions.rend(); ++v) {
    for (auto reader : v->readers)
      users.push_back({reader, 0});
    for (auto& reader : v->delayed_readers)
      users.push_back({reader.op, reader.distance});
    if (users.empty() && v->writer != no_handle)
      users.push_back({v->writer, 0});
    if (!users.empty())
      return;
  }
}

/// A collective with a handle per device.
bool is_rank(const ssa_graph& g, const op_handle& o) {
  return g.rank_collectives && o.collective_index >= 0;
}

/// Its results are its outputs only. Counts of samples and losses go to the
/// step's state, where ops find them without an edge for each value.
bool merges_values(const op_handle& o) {
  return o.kind == op_kind::all_reduce || o.kind == op_kind::reduce
         || o.kind == op_kind::broadcast;
}

/// Transfers, and ranks of collectives.
bool waits_for_others(const ssa_graph& g, const op_handle& o) {
  return o.kind == op_kind::send || o.kind == op_kind::recv || is_rank(g, o);
}

/// How many collectives use each storage; empty if there are no ranks.
std::vector<std::uint32_t> collectives_using(const ssa_graph& g) {
  std::vector<std::uint32_t> users;
  if (!g.rank_collectives)
    return users;
  users.resize(g.num_storages);
  std::vector<std::uint32_t> own;
  for (auto& o : g.ops) {
    if (!is_rank(g, o))
      continue;
    own.clear();
    for (auto* variables : {&o.inputs, &o.outputs})
      for (auto id : *variables)
        own.push_back(g.var(id).storage);
    std::ranges::sort(own);
    const auto repeated = std::ranges::unique(own);
    own.erase(repeated.begin(), repeated.end());
    for (auto storage : own)
      ++users[storage];
  }
  return users;
}

} // namespace

std::vector<planned_stream>
plan_streams(const ssa_graph& g, std::size_t workers,
             const std::vector<bool>& device_is_here) {
  using enum stream_kind;
  std::vector<std::uint32_t> here;
  for (std::uint32_t d = 0; d < g.devices.size(); ++d)
    if (device_is_here.empty() || device_is_here[d])
      here.push_back(d);
  const auto wide = !here.empty() && workers / here.size() > 1;
  const auto width = wide ? static_cast<int>(workers) : 1;
  std::vector<planned_stream> streams;
  for (auto d : here) {
    streams.push_back({d, compute, width});
    streams.push_back({d, fetch});
  }
  for (auto d : here)
    if (has_collective_on(g, d))
      streams.push_back({d, collective});
  for (auto d : here)
    if (std::ranges::any_of(g.ops, [d](const op_handle& o) {
          return o.device == d && o.stream == gradient;
        }))
      streams.push_back({d, gradient});
  return streams;
}

void set_ticket_groups(std::span<planned_stream> planned,
                       std::span<const stream* const> streams) {
  for (std::size_t i = 0; i < planned.size(); ++i) {
    if (streams[i]->completes_at_launch())
      continue;
    std::size_t group = 0;
    while (group < i
           && (planned[group].is_host()
               || !streams[i]->can_wait_for(*streams[group])))
      ++group;
    planned[i].ticket_group =
      group == i ? static_cast<std::int32_t>(i) : planned[group].ticket_group;
  }
}

wiring_plan::wiring_plan(const ssa_graph& g, wiring_options options)
  : graph_(g), options_(std::move(options)) {
  find_local_part();
  const reachability reach{local()};
  list_edges(reach);
  put_urgent_first(reach);
  place_handles();
  add_starts();
  find_releases(reach);
  choose_times();
  find_ends();
  messages_ = static_cast<std::size_t>(std::ranges::count_if(
    edges_, [this](const wired_edge& e) { return e.sent == 1; }));
  local_.reset();
}

bool wiring_plan::is_here(handle_id id) const {
  if (options_.device_is_here.empty())
    return true;
  return options_.device_is_here[graph_.is_op(id) ? graph_.op(id).device
                                                  : graph_.var(id).device];
}

// -- edges --------------------------------------------------------------------

// Edges other than transfers stay within one place and therefore within one
// process.
void wiring_plan::find_local_part() {
  const auto is_elsewhere = [this](const edge& e) {
    return e.kind == edge_kind::transfer || !is_here(e.from);
  };
  if (std::ranges::none_of(graph_.edges, is_elsewhere))
    return;
  local_ = graph_;
  std::erase_if(local_->edges, is_elsewhere);
  for (auto& e : local_->edges)
    TROUPE_ASSERT(is_here(e.to));
}

void wiring_plan::list_edges(const reachability& reach) {
  const auto& all = local().edges;
  const auto implied = find_implied_edges(local(), reach);
  const auto users = collectives_using(graph_);
  edges_.reserve(all.size() + graph_.ops.size());
  for (std::size_t i = 0; i < all.size(); ++i)
    if (auto& e = all[i]; e.distance == 0 || options_.steps_overlap)
      edges_.push_back(
        {e.from, e.to, e.distance, !implied.edges[i], 0, is_turn(e, users)});
  if (options_.steps_overlap)
    add_own_edges(implied.own);
  last_version_.assign(graph_.vars.size(), no_handle);
  for (auto& e : graph_.edges)
    if (!graph_.is_op(e.from) && !graph_.is_op(e.to))
      last_version_[e.to - graph_.ops.size()] = e.from;
}

/// True if the edge only keeps the order of two collectives of a rank, and no
/// other collective uses the values of the first one. Calls of a rank become
/// complete in order (communicator), so a chain of such edges to any other op
/// still implies that all collectives in it are complete.
bool wiring_plan::is_turn(const edge& e,
                          const std::vector<std::uint32_t>& users) const {
  if (users.empty() || e.kind != edge_kind::order || !graph_.is_op(e.from)
      || !graph_.is_op(e.to) || e.from == e.to)
    return false;
  const auto& first = graph_.op(e.from);
  if (!merges_values(first) || !is_rank(graph_, first)
      || !is_rank(graph_, graph_.op(e.to)))
    return false;
  const auto is_alone = [&](handle_id id) {
    return users[graph_.var(id).storage] == 1;
  };
  return std::ranges::all_of(first.inputs, is_alone)
         && std::ranges::all_of(first.outputs, is_alone);
}

void wiring_plan::put_urgent_first(const reachability& reach) {
  // By handle: the first collective that waits for it in its step, and the
  // length of the shortest chain to it.
  struct urgency {
    std::int32_t collective = std::numeric_limits<std::int32_t>::max();
    std::uint32_t edges = 0;
    auto operator<=>(const urgency&) const = default;
  };
  std::vector<urgency> of(graph_.size());
  bool has_collectives = false;
  for (auto id : reach.order() | std::views::reverse) {
    if (graph_.is_op(id) && graph_.op(id).collective_index >= 0) {
      of[id] = {graph_.op(id).collective_index, 0};
      has_collectives = true;
      continue;
    }
    for (auto& to : reach.edges()[id])
      if (to.distance == 0)
        of[id] = std::min(of[id], {of[to.to].collective, of[to.to].edges + 1});
  }
  if (has_collectives)
    std::ranges::stable_sort(edges_, {}, [&](const wired_edge& e) {
      return std::pair{e.from, of[e.to]};
    });
}

void wiring_plan::add_own_edges(const std::vector<bool>& implied) {
  const auto others = static_cast<std::ptrdiff_t>(edges_.size());
  for (auto& o : graph_.ops)
    if (is_here(o.id))
      edges_.push_back({o.id, o.id, 1, !implied[o.id], 0, 0});
  std::ranges::inplace_merge(edges_, edges_.begin() + others, {},
                             &wired_edge::from);
}

wiring_plan::teller wiring_plan::teller_of(handle_id id) const {
  if (graph_.is_op(id))
    return {id, 0};
  const auto& v = graph_.var(id);
  if (v.generator != no_handle)
    return {v.generator, 0};
  const auto last = last_version_[id - graph_.ops.size()];
  if (last == no_handle || !options_.steps_overlap)
    return {};
  return {graph_.var(last).generator, 1};
}

void wiring_plan::place_handles() {
  const auto number_of = [this](std::uint32_t device, stream_kind kind) {
    const auto found =
      std::ranges::find_if(options_.streams, [&](const planned_stream& s) {
        return s.device == device && s.kind == kind;
      });
    TROUPE_ASSERT(found != options_.streams.end());
    return static_cast<std::uint32_t>(found - options_.streams.begin());
  };
  // By device; looked up once, because most ops and variables need it.
  std::vector<std::uint32_t> compute(graph_.devices.size());
  for (auto& s : options_.streams)
    if (s.kind == stream_kind::compute)
      compute[s.device] = number_of(s.device, s.kind);
  stream_of_.resize(graph_.size());
  end_of_.resize(graph_.ops.size());
  for (auto& o : graph_.ops) {
    if (!is_here(o.id))
      continue;
    stream_of_[o.id] = o.stream == stream_kind::compute
                         ? compute[o.device]
                         : number_of(o.device, o.stream);
    const auto later = waits_for_others(graph_, o)
                       || (options_.ends_later && options_.ends_later(o));
    end_of_[o.id] = later ? op_end::later
                    : options_.streams[stream_of_[o.id]].is_host()
                      ? op_end::at_return
                      : op_end::by_ticket;
  }
  for (auto& v : graph_.vars) {
    if (!is_here(v.id))
      continue;
    const auto by = teller_of(v.id).op;
    stream_of_[v.id] = by == no_handle ? compute[v.device] : stream_of_[by];
  }
}

// If all messages of an op come from earlier steps or from variables that the
// previous step notifies, the op could run before its step has begun. It
// therefore needs a start.
void wiring_plan::add_starts() {
  std::vector<bool> told(graph_.size()); // gets a message
  // gets a message from a handle of its step that itself waits for the start
  std::vector<bool> begun(graph_.size());
  const auto tells_early = [this](handle_id id) {
    return !graph_.is_op(id) && teller_of(id).distance > 0;
  };
  for (auto& e : edges_)
    if (e.sent) {
      told[e.to] = true;
      if (e.distance == 0 && !tells_early(e.from))
        begun[e.to] = true;
    }
  for (handle_id id = 0; id < graph_.size(); ++id)
    if (is_here(id) && (graph_.is_op(id) ? !begun[id] : !told[id]))
      edges_.push_back({no_handle, id, 0, 1, 0, 0});
  first_edge_.assign(graph_.size() + 2, 0);
  for (auto& e : edges_)
    ++first_edge_[(e.from == no_handle ? graph_.size() : e.from) + 1];
  for (std::size_t i = 1; i < first_edge_.size(); ++i)
    first_edge_[i] += first_edge_[i - 1];
}

std::span<const wired_edge> wiring_plan::told_by(handle_id from) const {
  const auto i = from == no_handle ? graph_.size() : std::size_t{from};
  return std::span{edges_}.subspan(first_edge_[i],
                                   first_edge_[i + 1] - first_edge_[i]);
}

// -- order --------------------------------------------------------------------

namespace {

/// Simulates one step: counts messages as the engine does.
class rehearsal {
public:
  explicit rehearsal(const wiring_plan& plan, const ssa_graph& g)
    : plan_(plan), graph_(g), missing_(g.size()),
      ready_(plan.streams().size()) {
    for (auto& e : plan.edges())
      if (e.sent && e.distance == 0)
        ++missing_[e.to];
  }

  std::vector<handle_id> run() {
    // Variables that only the previous step notifies wait for nothing here.
    for (auto& v : graph_.vars)
      if (plan_.is_here(v.id) && missing_[v.id] == 0)
        tell_all(v.id);
    tell_all(no_handle);
    for (auto& ops : ready_)
      std::ranges::reverse(ops);
    for (auto before = order_.size() + 1; before != order_.size();) {
      before = order_.size();
      for (std::size_t s = 0; s < ready_.size(); ++s)
        drain(s);
    }
    return std::move(order_);
  }

private:
  void drain(std::size_t stream) {
    auto& ready = ready_[stream];
    while (!ready.empty()) {
      const auto op = ready.back();
      ready.pop_back();
      const auto others = static_cast<std::ptrdiff_t>(ready.size());
      order_.push_back(op);
      tell_all(op);
      std::reverse(ready.begin() + others, ready.end());
    }
  }

  void tell_all(handle_id from) {
    for (auto& e : plan_.told_by(from))
      if (e.sent && e.distance == 0 && --missing_[e.to] == 0)
        open(e.to);
  }

  void open(handle_id id) {
    if (graph_.is_op(id))
      ready_[plan_.stream_of(id)].push_back(id);
    else
      tell_all(id);
  }

  const wiring_plan& plan_;
  const ssa_graph& graph_;
  std::vector<std::uint32_t> missing_;        // by handle
  std::vector<std::vector<handle_id>> ready_; // by stream; the last runs next
  std::vector<handle_id> order_;
};

} // namespace

std::vector<handle_id> wiring_plan::expected_order() const {
  return rehearsal{*this, graph_}.run();
}

// -- launching is not finishing -----------------------------------------------

bool wiring_plan::must_complete(handle_id maker, handle_id reader) const {
  const auto& from = options_.streams[stream_of_[maker]];
  const auto& to = options_.streams[stream_of_[reader]];
  if (stream_of_[maker] == stream_of_[reader])
    return !from.is_serial();
  return from.ticket_group != to.ticket_group;
}

void wiring_plan::choose_times() {
  for (auto& e : edges_) {
    if (e.from == no_handle)
      continue;
    const auto maker = teller_of(e.from).op;
    if (maker == no_handle)
      continue;
    if (end_of_[maker] == op_end::later)
      e.at_completion = graph_.is_op(e.from) && !e.is_turn;
    else if (end_of_[maker] == op_end::by_ticket)
      e.at_completion = graph_.is_op(e.to) && must_complete(maker, e.to);
  }
}

void wiring_plan::find_ends() {
  ends_step_.assign(graph_.size(), false);
  for (handle_id id = 0; id < graph_.size(); ++id)
    if (is_here(id))
      ends_step_[id] =
        std::ranges::none_of(told_by(id), [this](const wired_edge& e) {
          return e.sent && e.distance == 0;
        });
  // A variable without readers is notified when its value has been computed.
  for (auto& e : edges_)
    if (e.from != no_handle && graph_.is_op(e.from) && !graph_.is_op(e.to)
        && ends_step_[e.to] && end_of_[e.from] == op_end::by_ticket)
      e.at_completion = 1;
  // Messages that an op sends on completion must precede the step's end.
  for (auto& e : edges_)
    if (e.sent && e.at_completion && !ends_step_[e.to])
      ends_step_[teller_of(e.from).op] = true;
  std::vector<std::uint32_t> users(graph_.num_storages);
  for (auto& r : releases_)
    ++users[r.storage];
  // Users count down on completion if there are several, or if the value is of
  // an earlier step. A completion must not come after the step's end.
  for (auto& r : releases_)
    if ((users[r.storage] > 1 || r.distance > 0)
        && end_of_[r.op] == op_end::by_ticket)
      ends_step_[r.op] = true;
}

// -- memory -------------------------------------------------------------------

void wiring_plan::find_releases(const reachability& reach) {
  // Queries ask whether one user precedes another. They compare each user with
  // the next one in the list and with the last one. The list is sorted by step,
  // then in program order.
  std::vector<order_query> queries;
  std::vector<std::size_t> asked_for; // position in `all`
  std::vector<planned_release> all;
  std::vector<user> users;
  std::uint32_t number = 0;
  for (auto& s : access_list{graph_}) {
    const auto storage = number++;
    if (s.persistable)
      continue;
    list_last_users(s, users);
    const auto latest = [](const user& a, const user& b) {
      return std::tuple{a.distance, a.op} < std::tuple{b.distance, b.op};
    };
    std::ranges::sort(users, latest);
    for (std::size_t i = 0; i < users.size(); ++i) {
      if (!is_here(users[i].op))
        continue;
      for (auto later : {i + 1, users.size() - 1})
        if (later > i && later < users.size()) {
          queries.push_back({users[i].op, users[later].op,
                             users[later].distance - users[i].distance});
          asked_for.push_back(all.size());
        }
      all.push_back({users[i].op, storage, users[i].distance});
    }
  }
  std::vector<bool> ordered(queries.size(), true);
  for (auto i : reach.find_unordered(queries))
    ordered[i] = false;
  std::vector<bool> followed(all.size());
  for (std::size_t i = 0; i < queries.size(); ++i)
    if (ordered[i])
      followed[asked_for[i]] = true;
  std::vector<planned_release> last;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (!followed[i])
      last.push_back(all[i]);
  sort_releases(last);
}

// By op; those of one op keep their order, which is that of storages.
void wiring_plan::sort_releases(std::span<const planned_release> all) {
  first_release_.assign(graph_.ops.size() + 1, 0);
  for (auto& r : all)
    ++first_release_[r.op + 1];
  std::partial_sum(first_release_.begin(), first_release_.end(),
                   first_release_.begin());
  releases_.resize(all.size());
  auto next = first_release_;
  for (auto& r : all)
    releases_[next[r.op]++] = r;
}

std::span<const planned_release> wiring_plan::releases_of(handle_id op) const {
  return std::span{releases_}.subspan(
    first_release_[op], first_release_[op + 1] - first_release_[op]);
}

// -- for people ---------------------------------------------------------------

std::string stream_name(const planned_stream& s, const ssa_graph& g) {
  return std::string{to_string(s.kind)} + "@" + to_string(g.devices[s.device]);
}

std::string to_text(const wiring_plan& plan, const ssa_graph& g) {
  const auto name = [&g](handle_id id) { return one_line(handle_name(g, id)); };
  std::vector<std::string> waits(g.size());
  for (auto& e : plan.edges()) {
    if (!plan.is_here(e.to))
      continue;
    auto from = e.from == no_handle ? "start" : name(e.from);
    if (e.distance > 0)
      from += " -" + std::to_string(e.distance);
    waits[e.to] +=
      (waits[e.to].empty() ? "" : ", ") + (e.sent ? from : "(" + from + ")");
  }
  std::string text;
  for (handle_id id = 0; id < g.size(); ++id)
    if (plan.is_here(id))
      text += name(id) + ": " + waits[id]
              + (plan.ends_step(id) ? "; ends the step\n" : "\n");
  return text + std::to_string(plan.messages_per_step())
         + " messages per step\n";
}

std::string to_json(const wiring_plan& plan, const ssa_graph& g) {
  using nlohmann::ordered_json;
  std::vector<ordered_json> in(g.size(), ordered_json::array());
  for (auto& e : plan.edges()) {
    const auto starts = e.from == no_handle;
    const auto null = ordered_json{};
    in[e.to].push_back(
      {{"from", starts ? null : ordered_json(e.from)},
       {"distance", std::uint32_t{e.distance}},
       {"stream", starts ? null
                         : ordered_json(stream_name(
                           plan.streams()[plan.stream_of(e.from)], g))},
       {"sent", e.sent == 1}});
  }
  std::vector<handle_id> last_version(g.num_storages, no_handle);
  for (auto& v : g.vars)
    if (auto& last = last_version[v.storage];
        last == no_handle || g.var(last).version < v.version)
      last = v.id;
  std::vector<ordered_json> releases(g.size(), ordered_json::array());
  for (auto& r : plan.releases())
    releases[r.op].push_back(last_version[r.storage]);
  auto handles = ordered_json::array();
  for (handle_id id = 0; id < g.size(); ++id)
    if (plan.is_here(id))
      handles.push_back({{"id", id},
                         {"in", std::move(in[id])},
                         {"releases", std::move(releases[id])},
                         {"ends_step", plan.ends_step(id)}});
  return ordered_json{{"handles", std::move(handles)},
                      {"messages", plan.messages_per_step()}}
    .dump();
}

} // namespace troupe::graph
