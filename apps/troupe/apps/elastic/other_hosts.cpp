// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/elastic/other_hosts.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

namespace troupe::apps {

namespace {

using namespace std::chrono_literals;

// Another process of the host takes over there meanwhile.
constexpr auto longest_absence = 2s;
// Between two looks, unless this process itself was stopped.
constexpr auto longest_gap = 1s;

} // namespace

void other_hosts::admit(actors::passage come) {
  const std::lock_guard guard{mutex_};
  admitted_.emplace_back(std::move(come));
}

void other_hosts::look(clock::time_point now) {
  if (now - std::exchange(now_, now) > longest_gap)
    for (auto& one : hosts_)
      one.last_sign = now;
  {
    const std::lock_guard guard{mutex_};
    strangers_.splice(strangers_.end(), admitted_);
  }
  take_strangers();
  for (auto& one : hosts_)
    look_at(one, now);
  auto words = comm::all_told(folder_);
  std::ranges::sort(words);
  const bool is_due =
    words != words_ || now - last_beat_ >= host_wire::between_signs;
  words_ = std::move(words);
  if (!is_due)
    return;
  last_beat_ = now;
  for (auto& one : hosts_)
    order(one);
}

/// Those that have said from which host they are.
void other_hosts::take_strangers() {
  for (auto wire = strangers_.begin(); wire != strangers_.end();) {
    bool is_done = true;
    try {
      if (const auto line = wire->receive())
        is_done = receive(*wire, parse_host_report(*line));
      else
        is_done = wire->is_gone();
    } catch (const error&) {
      // whoever it is learns that from the end of the connection
    }
    wire = is_done ? strangers_.erase(wire) : std::next(wire);
  }
}

/// The first that a connection has told. False if the other side is to end it.
bool other_hosts::receive(host_wire& from, host_report report) {
  if (report.keeps) {
    kept_elsewhere_ = report.address;
    return true;
  }
  if (!elsewhere_.empty()) {
    host_order way;
    way.elsewhere = elsewhere_;
    from.send(to_line(way));
    return false;
  }
  check_job(report);
  auto of = std::ranges::find(hosts_, report.host,
                              [](const host& h) { return h.last.host; });
  if (of == hosts_.end())
    of = hosts_.insert(hosts_.end(), host{});
  of->wire.emplace(std::move(from));
  of->is_lost = false;
  take(*of, std::move(report));
  order(*of);
  return true;
}

void other_hosts::check_job(const host_report& report) const {
  if (!are_of_one_job(asked_.decided, report.votes.decided))
    throw error(errc::peer_failure, "another job has this name");
}

void other_hosts::take(host& from, host_report report) {
  check_job(report);
  from.last_sign = now_;
  from.has_had.insert(report.all.begin(), report.all.end());
  for (auto& word : report.told)
    comm::repeat_told(folder_, word);
  from.last = std::move(report);
}

void other_hosts::look_at(host& one, clock::time_point now) {
  try {
    while (one.wire) {
      const auto line = one.wire->receive();
      if (!line)
        break;
      take(one, parse_host_report(*line));
    }
    if (one.wire && one.wire->is_gone()) {
      one.wire.reset();
      one.last_sign = now;
    }
  } catch (const error&) {
    one.wire.reset();
    one.last_sign = now;
  }
  if (one.wire)
    one.wire->flush();
  const auto longest = one.wire ? clock::duration{host_wire::longest_silence}
                                : clock::duration{longest_absence};
  if (now - one.last_sign <= longest)
    return;
  one.is_lost = true;
  one.wire.reset();
}

std::vector<std::uint64_t> other_hosts::living() const {
  std::vector<std::uint64_t> all;
  for (auto& one : hosts_)
    if (!one.is_lost)
      all.insert(all.end(), one.last.living.begin(), one.last.living.end());
  return all;
}

bool other_hosts::knows(std::uint64_t number) const {
  return std::ranges::any_of(
    hosts_, [&](const host& one) { return one.has_had.contains(number); });
}

std::vector<vote_memory> other_hosts::answers() const {
  std::vector<vote_memory> all;
  for (auto& one : hosts_)
    if (!one.is_lost)
      all.push_back(one.last.votes);
  return all;
}

const host_report& other_hosts::host_of(std::uint64_t number) const {
  const auto found = std::ranges::find_if(
    hosts_, [&](const host& one) { return one.last.has(number); });
  if (found == hosts_.end())
    throw error(errc::peer_failure, "no host has this process of the job");
  return found->last;
}

void other_hosts::ask(vote_request asked,
                      const std::map<std::uint64_t, std::string>& credentials) {
  if (asked == asked_)
    return;
  if (asked.decided != asked_.decided)
    credentials_ = credentials;
  asked_ = std::move(asked);
  for (auto& one : hosts_)
    order(one);
}

void other_hosts::kill(std::uint64_t number) {
  for (auto& one : hosts_)
    if (one.last.has(number))
      order(one, {number});
}

/// A host that knows the epoch is not told of it again.
void other_hosts::order(host& to, std::vector<std::uint64_t> ends) {
  if (!to.wire)
    return;
  host_order given{asked_, {}, words_, std::move(ends)};
  if (to.last.votes.decided == asked_.decided)
    given.votes.decided.reset();
  else
    for (auto& [member, text] : credentials_)
      if (to.last.has(member))
        given.credentials.emplace(member, text);
  to.wire->send(to_line(given));
}

} // namespace troupe::apps
