// SPDX-License-Identifier: Apache-2.0
#include <troupe/dashboard/picture/answers.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::dashboard {

namespace {

/// A label's value: quotes, backslashes and line ends are escaped.
std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text)
    switch (c) {
    case '"': out += "\\\""; break;
    case '\\': out += "\\\\"; break;
    case '\n': out += "\\n"; break;
    default: out += c;
    }
  return out;
}

std::string text_of(double value) {
  if (std::isnan(value))
    return "NaN";
  if (std::isinf(value))
    return value > 0 ? "+Inf" : "-Inf";
  char buffer[32];
  const auto [end, ok] = std::to_chars(buffer, buffer + sizeof buffer, value);
  return {buffer, end};
}

std::string rank_label(std::size_t rank) {
  return "rank=\"" + std::to_string(rank) + "\"";
}

/// Writes metrics of one run. A value is of one rank, or of all that are shown
/// together: then it has a rank only if that is a single one.
class metric_writer {
public:
  explicit metric_writer(const std::vector<trace::run_info>& ranks)
    : run_(ranks.size() == 1 ? rank_label(ranks.front().process) : "") {}

  void begin(std::string_view name, std::string_view type,
             std::string_view help) {
    name_ = name;
    text_ += "# HELP troupe_" + name_ + " " + std::string{help} + "\n";
    text_ += "# TYPE troupe_" + name_ + " " + std::string{type} + "\n";
  }
  void value(double v, const std::string& labels = {}) { put(v, run_, labels); }
  void value_of_rank(std::size_t rank, double v, const std::string& labels) {
    put(v, rank_label(rank), labels);
  }
  void single(std::string_view name, std::string_view type,
              std::string_view help, double v) {
    begin(name, type, help);
    value(v);
  }
  std::string take() { return std::move(text_); }

private:
  void put(double v, const std::string& rank, const std::string& labels) {
    const auto all =
      rank + (rank.empty() || labels.empty() ? "" : ",") + labels;
    text_ += "troupe_" + name_ + (all.empty() ? "" : "{" + all + "}") + " "
             + text_of(v) + "\n";
  }

  std::string run_;
  std::string name_;
  std::string text_;
};

std::string label(std::string_view name, std::string_view value) {
  return std::string{name} + "=\"" + escaped(value) + "\"";
}

/// In the order of their workers; at least one.
using ranks_of_run = std::vector<trace::run_info>;

void add_training(metric_writer& out, const live_picture& picture) {
  const auto& steps = picture.steps();
  // The newest steps can be some of which not all is known yet.
  const auto newest = [&](auto has) {
    const auto found = std::find_if(steps.rbegin(), steps.rend(), has);
    return found == steps.rend() ? nullptr : &*found;
  };
  if (const auto* s = newest([](auto& r) { return r.loss.has_value(); }))
    out.single("loss", "gauge", "Loss of the newest step.", *s->loss);
  if (const auto* s =
        newest([](auto& r) { return r.samples_per_s.has_value(); }))
    out.single("samples_per_second", "gauge",
               "Samples per second over the latest ten steps.",
               *s->samples_per_s);
  if (const auto* s =
        newest([](auto& r) { return r.learning_rate.has_value(); }))
    out.single("learning_rate", "gauge", "Learning rate of the newest step.",
               *s->learning_rate);
}

/// Nothing is known before somebody has looked.
void add_devices(metric_writer& out, const live_picture& picture,
                 const ranks_of_run& ranks) {
  if (!picture.has_ops())
    return;
  const auto& devices = picture.graph().devices;
  const auto& ranks_of_devices = picture.graph().process_of_device;
  const auto rank_of = [&](std::size_t device) {
    return device < ranks_of_devices.size() ? ranks_of_devices[device]
                                            : ranks.front().process;
  };
  out.begin("memory_bytes", "gauge",
            "Bytes of temporaries and feeds on a device.");
  for (std::size_t d = 0; d < devices.size(); ++d)
    if (picture.has_device(d))
      out.value_of_rank(rank_of(d),
                        static_cast<double>(picture.memory().bytes(d)),
                        label("device", devices[d]));
  out.begin("memory_peak_bytes", "gauge",
            "The most bytes of temporaries and feeds so far.");
  for (std::size_t d = 0; d < devices.size(); ++d)
    if (picture.has_device(d))
      out.value_of_rank(rank_of(d), static_cast<double>(picture.peak_bytes(d)),
                        label("device", devices[d]));
}

void add_collectives(metric_writer& out, const live_picture& picture) {
  if (!picture.has_ops())
    return;
  double calls = 0, ns = 0;
  for (const auto& [id, call] : picture.collectives().calls()) {
    calls += static_cast<double>(call.calls);
    ns += call.total_ns;
  }
  out.single("collective_calls_total", "counter",
             "Calls of collectives, and of updates that merge gradients, that "
             "have ended, recorded while somebody looks.",
             calls);
  out.single("collective_seconds_total", "counter",
             "Time from the first arrival to the end, over all calls.",
             ns / 1e9);
}

void add_workers(metric_writer& out, const live_picture& picture,
                 const ranks_of_run& ranks) {
  if (!picture.has_ops())
    return;
  out.begin("worker_busy_seconds_total", "counter",
            "Time of a worker in ops that have ended, recorded while somebody "
            "looks.");
  // Of an op that runs, a part may be counted that the op's end takes back: a
  // counter must not fall.
  constexpr std::uint64_t none_that_runs = 0;
  auto rank = ranks.begin();
  for (std::size_t w = 0, first = 0; w < picture.workers(); ++w) {
    while (rank + 1 != ranks.end() && w >= first + rank->workers)
      first += rank++->workers;
    out.value_of_rank(
      rank->process,
      static_cast<double>(picture.slices().busy_ns(w, none_that_runs)) / 1e9,
      label("worker", std::to_string(w - first)));
  }
}

/// An application has ops of its own: types beyond the first ones count as one.
constexpr std::size_t most_op_types = 200;
constexpr std::string_view other_types = "(other)";

/// Seconds by type of op. Which types have a name depends on the graph alone:
/// a counter must not fall.
std::map<std::string, double, std::less<>>
seconds_by_type(const live_picture& picture) {
  std::map<std::string, double, std::less<>> all;
  const auto& handles = picture.graph().handles;
  for (handle_id id = 0; id < handles.size(); ++id) {
    if (!handles[id].is_op || !picture.has(id))
      continue;
    const auto& type = handles[id].type;
    const auto has_room = all.size() < most_op_types || all.contains(type);
    all[has_room ? type : std::string{other_types}] +=
      static_cast<double>(picture.slices().op_ns(id)) / 1e9;
  }
  return all;
}

void add_op_types(metric_writer& out, const live_picture& picture) {
  if (!picture.has_ops())
    return;
  out.begin("op_seconds_total", "counter",
            "Time in which ops of a type ran, up to the completion of what "
            "they launched, recorded while somebody looks.");
  for (const auto& [type, seconds] : seconds_by_type(picture))
    out.value(seconds, label("type", type));
}

/// What actors of the application do that have the same name.
struct actors_of_a_name {
  double alive = 0, failures = 0, waiting = 0, handled = 0, busy_s = 0;
};

/// Names can be made anew for each actor, and every label is a time series of
/// its own: those that come after the first ones count as one.
constexpr std::size_t most_actor_names = 100;
constexpr std::string_view other_names = "(other)";

std::map<std::string, actors_of_a_name, std::less<>>
actors_by_name(const live_picture& picture, const board_state& state) {
  std::map<std::string, actors_of_a_name, std::less<>> all;
  const auto sums_of = [&](const std::string& name) -> auto& {
    const auto found = all.find(name);
    if (found != all.end())
      return found->second;
    return all[all.size() < most_actor_names ? name : std::string{other_names}];
  };
  for (actor_number i = 0; i < picture.actors().size(); ++i) {
    const auto& actor = picture.actors()[i];
    if (!actor.is_recorded)
      continue;
    const auto does = picture.activity().of(i);
    const auto is_over = has_ended(actor, state);
    auto& sums = sums_of(actor.name);
    sums.alive += !is_over;
    sums.failures += is_over && actor.has_failed;
    sums.waiting += is_over ? 0 : static_cast<double>(does.waiting.value_or(0));
    sums.handled += static_cast<double>(does.handled);
    sums.busy_s += static_cast<double>(does.busy_ns) / 1e9;
  }
  return all;
}

struct actor_metric {
  std::string_view name, type, help;
  double actors_of_a_name::*value;
};

constexpr std::array actor_metrics{
  actor_metric{"actors", "gauge", "Actors of the application that live.",
               &actors_of_a_name::alive},
  actor_metric{"actor_failures_total", "counter",
               "Actors of the application that have ended with an error.",
               &actors_of_a_name::failures},
  actor_metric{"actor_mailbox_messages", "gauge",
               "Messages in mailboxes of the application's actors.",
               &actors_of_a_name::waiting},
  actor_metric{"actor_messages_total", "counter",
               "Messages that the application's actors have handled.",
               &actors_of_a_name::handled},
  actor_metric{"actor_busy_seconds_total", "counter",
               "Time in handlers of the application's actors.",
               &actors_of_a_name::busy_s}};

void add_actors(metric_writer& out, const live_picture& picture,
                const board_state& state) {
  const auto actors = actors_by_name(picture, state);
  if (actors.empty())
    return;
  for (const auto& metric : actor_metrics) {
    out.begin(metric.name, metric.type, metric.help);
    for (const auto& [name, sums] : actors)
      out.value(sums.*metric.value, label("name", name));
  }
}

} // namespace

std::string prometheus_text(const live_picture& picture,
                            const trace::run_info& run,
                            const board_state& state,
                            const std::vector<trace::run_info>& several) {
  const auto ranks = several.empty() ? ranks_of_run{run} : several;
  metric_writer out{ranks};
  out.begin("info", "gauge", "What runs.");
  for (const auto& rank : ranks)
    out.value_of_rank(rank.process, 1,
                      label("version", rank.version) + ","
                        + label("command", run.command) + ","
                        + label("host", rank.host) + ","
                        + label("state", to_string(state.state)));
  out.single("steps_total", "counter", "Steps that have ended.",
             static_cast<double>(picture.steps_ended()));
  out.single("step_seconds_total", "counter",
             "Time in which these steps ran; of those in flight together, what "
             "each adds.",
             picture.step_seconds());
  out.single("steps_under_way", "gauge", "Steps that have begun and not ended.",
             static_cast<double>(picture.steps_under_way()));
  add_training(out, picture);
  out.single("messages_total", "counter",
             "Readiness messages of the steps that have ended.",
             static_cast<double>(messages_of_steps(picture)));
  out.single("events_lost_total", "counter",
             "Events that were overwritten before they were read.",
             static_cast<double>(state.lost));
  out.single("warnings_total", "counter",
             "Warnings of the run: steps that do not go on, slow ranks.",
             static_cast<double>(state.warnings));
  add_devices(out, picture, ranks);
  add_op_types(out, picture);
  add_collectives(out, picture);
  add_actors(out, picture, state);
  add_workers(out, picture, ranks);
  out.single("dashboard_cpu_seconds_total", "counter",
             "Processor time that the dashboard has taken.", state.cpu_seconds);
  out.single("dashboard_watchers", "gauge", "Pages that watch.",
             static_cast<double>(state.watchers));
  return out.take();
}

} // namespace troupe::dashboard
