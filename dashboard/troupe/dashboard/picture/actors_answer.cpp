// SPDX-License-Identifier: Apache-2.0
// The actors of a run: those of the graph, and those of the application.
#include <troupe/dashboard/picture/answers.hpp>

#include <troupe/base/clock.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace troupe::dashboard {

using nlohmann::json;

namespace {

/// Of the application. The rest is counted.
constexpr std::size_t most_actors_told = 500;

/// What the ops of a stream do: those that are ready are its queue.
struct stream_queue {
  std::size_t ready = 0, running = 0;
};

/// By device and stream.
using stream_queues =
  std::map<std::pair<std::uint32_t, std::string>, stream_queue>;

stream_queues queues_of(const live_picture& picture) {
  stream_queues found;
  const auto& handles = picture.graph().handles;
  for (handle_id id = 0; id < handles.size(); ++id) {
    const auto state = picture.states()[id];
    if (!handles[id].is_op || !picture.has(id))
      continue;
    auto& q = found[{handles[id].device, handles[id].stream}];
    q.ready += state == handle_state::is_ready;
    q.running += state == handle_state::runs;
  }
  return found;
}

json streams_answer(const live_picture& picture, const stream_queues& queues) {
  auto all = json::array();
  for (const auto& [place, q] : queues)
    all.push_back({{"device", picture.graph().devices[place.first]},
                   {"stream", place.second},
                   {"ready", q.ready},
                   {"running", q.running}});
  return all;
}

/// What is to be shown of an actor of the application.
class shown_actor {
public:
  shown_actor(const live_picture& picture, const board_state& state,
              actor_number which)
    : picture_(picture), which_(which), actor_(picture.actors()[which]),
      does_(picture.activity().of(which)),
      has_ended_(has_ended(actor_, state)) {}

  bool has_failed() const { return has_ended_ && actor_.has_failed; }
  /// Those that have failed come first, then those that live.
  int order() const { return has_failed() ? 0 : has_ended_ ? 2 : 1; }
  std::string failure() const {
    return trace::full_name(actor_) + ": " + actor_.reason;
  }

  json answer() const {
    const auto& types = picture_.message_types();
    const auto type = does_.last_type.value_or(0);
    return {
      {"actor", which_},
      {"name", actor_.name},
      {"id", actor_.id},
      {"node", actor_.node},
      {"state", state()},
      {"mailbox", mailbox()},
      {"longest_mailbox", does_.most_waiting},
      {"received", does_.received},
      {"handled", does_.handled},
      {"skipped", does_.skipped},
      {"busy_ms", static_cast<double>(does_.busy_ns) / ns_per_ms},
      {"message", does_.last_type && type < types.size() ? types[type] : ""},
      {"reason", has_ended_ ? actor_.reason : ""}};
  }

private:
  const char* state() const {
    if (has_ended_)
      return actor_.has_failed ? "failed" : "ended";
    if (!actor_.is_recorded)
      return "sender";
    return does_.handles_since ? "running" : "waiting";
  }
  json mailbox() const {
    if (has_ended_)
      return 0;
    return does_.waiting ? json(*does_.waiting) : json(nullptr);
  }

  const live_picture& picture_;
  actor_number which_;
  const recorded_actor& actor_;
  trace::actor_activity does_;
  bool has_ended_;
};

std::vector<shown_actor> actors_to_show(const live_picture& picture,
                                        const board_state& state) {
  std::vector<shown_actor> all;
  for (actor_number i = 0; i < picture.actors().size(); ++i)
    all.emplace_back(picture, state, i);
  return all;
}

json application_answer(const std::vector<shown_actor>& actors) {
  std::vector<const shown_actor*> all;
  for (const auto& a : actors)
    all.push_back(&a);
  std::ranges::stable_sort(all, {}, [](const auto* a) { return a->order(); });
  all.resize(std::min(all.size(), most_actors_told));
  auto told = json::array();
  for (const auto* a : all)
    told.push_back(a->answer());
  return told;
}

} // namespace

bool has_ended(const recorded_actor& actor, const board_state& state) {
  return actor.end_ns
         && (state.state == run_state::ended || state.state == run_state::failed
             || *actor.end_ns <= static_cast<std::int64_t>(state.now_ns));
}

json actors_answer(const live_picture& picture,
                   const std::vector<trace::run_info>& ranks,
                   const board_state& state) {
  const auto& handles = picture.graph().handles;
  std::size_t ops = 0, variables = 0;
  for (handle_id id = 0; id < handles.size(); ++id)
    if (picture.has(id))
      ++(handles[id].is_op ? ops : variables);
  const auto streams = queues_of(picture);
  auto errors = json::array();
  if (!state.failure.empty())
    errors.push_back(state.failure);
  const auto own = actors_to_show(picture, state);
  for (const auto& a : own)
    if (a.has_failed() && errors.size() < most_actors_told)
      errors.push_back(a.failure());
  auto nodes = json::array();
  const auto processes = ranks.empty() ? 0 : ranks.front().processes;
  for (std::size_t rank = 0; rank < processes; ++rank) {
    const auto found =
      std::ranges::find(ranks, rank, &trace::run_info::process);
    const auto is_here = found != ranks.end();
    nodes.push_back({{"rank", rank},
                     {"host", is_here ? found->host : ""},
                     {"state", is_here ? "here" : "elsewhere"}});
  }
  return {{"actors", ops + variables + streams.size()},
          {"op_actors", ops},
          {"variable_actors", variables},
          {"stream_actors", streams.size()},
          {"application_actors", own.size()},
          {"messages_per_step", picture.messages_per_step()},
          {"messages", messages_of_steps(picture)},
          {"steps", picture.steps_ended()},
          {"application", application_answer(own)},
          {"streams", streams_answer(picture, streams)},
          {"errors", std::move(errors)},
          {"nodes", std::move(nodes)}};
}

} // namespace troupe::dashboard
