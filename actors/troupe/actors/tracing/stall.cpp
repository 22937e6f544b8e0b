// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/tracing/stall.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

namespace troupe::actors {

namespace {

using duration = stall::duration;

double seconds(duration d) {
  return std::chrono::duration<double>(d).count();
}

/// "52.0 ms", "3.4 s"
std::string time_text(duration d) {
  const auto s = seconds(d);
  char text[32];
  if (s < 1e-4)
    std::snprintf(text, sizeof text, "%.1f us", s * 1e6);
  else if (s < 1)
    std::snprintf(text, sizeof text, "%.1f ms", s * 1e3);
  else
    std::snprintf(text, sizeof text, "%.1f s", s);
  return text;
}

std::string megabytes(double bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f MB", bytes / 1e6);
  return text;
}

/// "conv2d#4@cpu:1 of rank 1, step 7,"
std::string subject(const stall& seen) {
  const auto& last = seen.chain.links.back();
  return last.name + (seen.rank ? " of rank " + std::to_string(*seen.rank) : "")
         + ", step " + std::to_string(last.step) + ",";
}

std::string lost_text(const stall& seen) {
  if (seen.chain.call)
    return ranks_text(seen.chain);
  return "what " + seen.chain.missing + " sends has not arrived";
}

std::string link_text(const stall& seen) {
  const auto& call = *seen.chain.call;
  auto text = call_text(seen.chain) + " over " + call.channel;
  if (call.peer && seen.rank)
    text += ", rank "
            + std::to_string(call.is_receiving ? *call.peer : *seen.rank)
            + " -> rank "
            + std::to_string(call.is_receiving ? *seen.rank : *call.peer);
  text += ": " + megabytes(static_cast<double>(call.bytes)) + " are under way";
  if (seen.moved == 0)
    return text + ", none has moved for " + time_text(seen.since);
  const auto moved = static_cast<double>(seen.moved);
  return text + ", " + megabytes(moved) + " have moved in "
         + time_text(seen.since) + ", "
         + megabytes(moved / std::max(seconds(seen.since), 1e-9)) + "/s";
}

/// What belongs to the op beside the time that it has taken by now. The median
/// of this rank is told once, also if it is the fastest.
std::string usual_text(const stall& seen) {
  const auto& usual = seen.usual;
  std::string text;
  if (usual.median.count() > 0)
    text += "; its median is " + time_text(usual.median);
  if (usual.fastest.count() > 0 && usual.fastest_rank != seen.rank)
    text += (text.empty() ? "; the median of rank " : ", that of rank ")
            + std::to_string(usual.fastest_rank) + " is "
            + time_text(usual.fastest);
  return text;
}

std::string op_text(const stall& seen) {
  const auto& last = seen.chain.links.back();
  if (last.how_far == progress::launched)
    return subject(seen) + " was launched and is not complete for "
           + time_text(seen.since) + usual_text(seen);
  auto text = subject(seen) + " runs on worker " + std::to_string(last.worker)
              + " for " + time_text(std::max(seen.ran, seen.since));
  if (!seen.function.empty())
    text += ", in " + seen.function;
  return text + usual_text(seen);
}

std::string worker_text(const stall& seen) {
  const auto& last = seen.chain.links.back();
  auto text = "no worker has come to stream " + last.stream + " for "
              + time_text(seen.since) + ", where "
              + subject(seen).substr(0, subject(seen).size() - 1)
              + ", is ready";
  for (auto& busy : seen.chain.busy)
    text += "; worker " + std::to_string(busy.worker) + " runs " + busy.op;
  return text;
}

std::string feed_text(const stall& seen) {
  return "step " + std::to_string(*seen.awaited_step) + " waits for feed for "
         + time_text(seen.waited_for_data)
         + ": the data source has not given its batch";
}

std::string unknown_text(const stall& seen) {
  return seen.chain.links.empty() ? "no step is under way"
                                  : subject(seen) + " waits";
}

progress how_far(const stall& seen) {
  return seen.chain.links.empty() ? progress::no_step
                                  : seen.chain.links.back().how_far;
}

/// How a cause is seen, and told. The first row that is seen counts.
struct row {
  stall_cause cause;
  std::string_view name;
  bool (*is_seen)(const stall&);
  std::string (*text)(const stall&);
};

constexpr std::array<row, 7> rows{{
  {stall_cause::paused, "paused",
   [](const stall& s) { return !s.chain.paused.empty(); }, lost_text},
  {stall_cause::lost_message, "lost message",
   [](const stall& s) {
     return (s.chain.call && !s.chain.call->missing.empty())
            || !s.chain.missing.empty();
   },
   lost_text},
  {stall_cause::slow_link, "slow link",
   [](const stall& s) { return s.chain.call.has_value(); }, link_text},
  {stall_cause::slow_op, "slow op",
   [](const stall& s) {
     return how_far(s) == progress::runs || how_far(s) == progress::launched;
   },
   op_text},
  {stall_cause::stuck_worker, "stuck worker",
   [](const stall& s) { return how_far(s) == progress::is_ready; },
   worker_text},
  {stall_cause::slow_feed, "slow feed",
   [](const stall& s) {
     return s.chain.links.empty() && s.awaited_step.has_value();
   },
   feed_text},
  {stall_cause::unknown, "unknown cause", [](const stall&) { return true; },
   unknown_text},
}};

const row& row_of(const stall& seen) {
  for (auto& r : rows)
    if (r.is_seen(seen))
      return r;
  return rows.back();
}

/// Threads that are preempted are ready, and have no core. What is little
/// beside the time of the stall does not explain it. Ends with "; ".
std::string core_text(const core_times& cores, duration over) {
  constexpr std::uint64_t least_part = 4;
  const auto least = static_cast<std::uint64_t>(over.count()) / least_part;
  const auto explains = [&](std::uint64_t ns) {
    return ns > 0 && ns >= cores.ran_ns && ns >= least;
  };
  std::string text;
  if (explains(cores.waited_ns))
    text += "preempted worker: threads of this process waited "
            + time_text(duration{cores.waited_ns})
            + " for a core, all together, and ran "
            + time_text(duration{cores.ran_ns}) + "; ";
  if (explains(cores.stolen_ns))
    text += "throttled worker: other machines of the host took "
            + time_text(duration{cores.stolen_ns}) + " of the cores' time; ";
  return text;
}

std::string delay_text(const stall& seen) {
  if (seen.op_delay.count() == 0)
    return "";
  return "slow motion: each op begins " + time_text(seen.op_delay) + " later; ";
}

} // namespace

std::string_view to_string(stall_cause cause) noexcept {
  for (auto& r : rows)
    if (r.cause == cause)
      return r.name;
  return rows.back().name;
}

stall_cause cause_of(const stall& seen) {
  return row_of(seen).cause;
}

std::string text_of(const stall& seen) {
  const auto& r = row_of(seen);
  // What holds all up explains why an op or a link is slow.
  return delay_text(seen) + core_text(seen.cores, seen.cores_over)
         + std::string{r.name} + ": " + r.text(seen);
}

std::string line_of(const wait_chain& chain) {
  constexpr std::size_t at_each_end = 3;
  const auto count = chain.links.size();
  const auto is_cut = count > 2 * at_each_end + 1; // else it would say no less
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    if (is_cut && i == at_each_end) {
      i = count - at_each_end;
      text += "; … " + std::to_string(count) + " links …";
    }
    text += (text.empty() ? "" : "; ") + to_string(chain.links[i]);
  }
  if (const auto workers = workers_text(chain); !workers.empty())
    text += "; " + workers;
  return text;
}

} // namespace troupe::actors
