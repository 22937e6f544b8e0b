// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/remote/peer_watch.hpp>

#include <troupe/base/threads.hpp>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace troupe::actors {

namespace {

std::string seconds(std::chrono::steady_clock::duration time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s",
                std::chrono::duration<double>(time).count());
  return text;
}

/// Between two looks, and two signs of life: a process that is lost is noticed
/// so much later than it could be, twice.
constexpr std::chrono::milliseconds longest_interval{100};

std::string process_name(std::size_t process) {
  return "process " + std::to_string(process);
}

/// ", which does ..."; empty if nothing is known.
std::string activity(const comm::peer_state* state) {
  return state && !state->doing.empty() ? " (" + state->doing + ")" : "";
}

} // namespace

peer_watch::peer_watch(parts p)
  : parts_(std::move(p)),
    interval_(
      std::clamp(parts_.silence_limit / 10, milliseconds{1}, longest_interval)),
    last_look_(clock::now()), waits_(parts_.ends.size()),
    thread_(start_thread("troupe-peers", [this] { watch(); })) {}

peer_watch::~peer_watch() {
  {
    std::lock_guard guard{mutex_};
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void peer_watch::watch() {
  std::unique_lock guard{mutex_};
  while (!ends_) {
    guard.unlock();
    const auto now = clock::now();
    skip_own_sleep(now);
    beat(now);
    auto all_live = look_at_peers(now);
    for (std::size_t i = 0; all_live && i < parts_.ends.size(); ++i)
      all_live = look_at_call(i, now);
    guard.lock();
    if (!all_live)
      return;
    changed_.wait_for(guard, interval_, [this] { return ends_; });
  }
}

// If this thread has not run for a while, others may have been alive meanwhile.
void peer_watch::skip_own_sleep(clock::time_point now) {
  const auto slept = now - std::exchange(last_look_, now) - interval_;
  if (slept < 2 * interval_)
    return;
  for (auto& [process, beats] : beats_)
    beats.at += slept;
  for (auto& w : waits_)
    w.call.at += slept;
}

void peer_watch::beat(clock::time_point now) {
  const auto steps = parts_.steps();
  const auto takes_long = own_steps_.see(steps, now) > parts_.silence_limit / 4;
  parts_.ends.front()->beat(
    steps, takes_long || parts_.is_paused() ? parts_.doing() : std::string{});
}

/// False if one is lost.
bool peer_watch::look_at_peers(clock::time_point now) {
  peers_ = parts_.ends.front()->peers();
  for (auto& peer : peers_) {
    const auto process = parts_.process_of[peer.ranks.front()];
    const auto silent = beats_[process].see(peer.beats, now);
    if (silent <= parts_.silence_limit)
      continue;
    if (parts_.lost(process, process_name(process)
                               + " is lost: no sign of life for "
                               + seconds(silent) + activity(&peer)))
      return false;
  }
  return true;
}

/// False if the process for which a call waits is stuck.
bool peer_watch::look_at_call(std::size_t end, clock::time_point now) {
  auto& w = waits_[end];
  const auto call = parts_.ends[end]->waits_for();
  if (!call || call->missing.empty()) {
    w = {};
    return true;
  }
  if (w.call.value != call->position)
    w.is_noticed = false;
  const auto time = w.call.see(call->position, now);
  const auto process = culprit(*call);
  const auto* state = state_of(process);
  if (w.is_noticed && state && state->is_paused())
    w.call.at = now; // it may take as long as somebody likes
  else if (time > parts_.stall_limit
           && parts_.lost(process, process_name(process) + " is stuck: "
                                     + text_of(*call, process, time)))
    return false;
  if (time > parts_.silence_limit && !std::exchange(w.is_noticed, true)
      && parts_.noticed)
    parts_.noticed(process, text_of(*call, process, time));
  return true;
}

/// Of the processes that are missing, the one that has ended the fewest steps.
std::size_t peer_watch::culprit(const comm::waiting_call& call) const {
  const auto steps = [this](std::size_t rank) {
    const auto* state = state_of(parts_.process_of[rank]);
    return state ? state->steps : 0;
  };
  return parts_.process_of[*std::ranges::min_element(call.missing, {}, steps)];
}

std::string peer_watch::text_of(const comm::waiting_call& call,
                                std::size_t process,
                                clock::duration time) const {
  std::string ranks;
  for (auto r : call.missing)
    ranks += (ranks.empty() ? "" : ", ") + std::to_string(r);
  return call.text + " has waited " + seconds(time) + " for "
         + process_name(process) + activity(state_of(process))
         + "; missing ranks: " + ranks;
}

const comm::peer_state* peer_watch::state_of(std::size_t process) const {
  const auto found =
    std::ranges::find_if(peers_, [&](const comm::peer_state& p) {
      return parts_.process_of[p.ranks.front()] == process;
    });
  return found == peers_.end() ? nullptr : &*found;
}

} // namespace troupe::actors
