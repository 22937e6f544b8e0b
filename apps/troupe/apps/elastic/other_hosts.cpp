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
    std::optional<host_report> report;
    try {
      if (const auto line = wire->receive())
        report = parse_host_report(*line);
    } catch (const error&) {
      wire = strangers_.erase(wire);
      continue;
    }
    if (!report) {
      wire = wire->is_gone() ? strangers_.erase(wire) : std::next(wire);
      continue;
    }
    auto of = std::ranges::find(hosts_, report->host,
                                [](const host& h) { return h.last.host; });
    if (of == hosts_.end())
      of = hosts_.insert(hosts_.end(), host{});
    of->wire.emplace(std::move(*wire));
    wire = strangers_.erase(wire);
    of->is_lost = false;
    take(*of, std::move(*report));
    order(*of);
  }
}

void other_hosts::take(host& from, host_report report) {
  from.last_sign = now_;
  for (auto& word : report.told)
    comm::repeat_told(folder_, word);
  from.has_had.insert(report.all.begin(), report.all.end());
  if (report.epoch
      && (!last_epoch_ || last_epoch_->number < report.epoch->number))
    last_epoch_ = report.epoch;
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

const other_hosts::host& other_hosts::with(std::uint64_t number) const {
  const auto found = std::ranges::find_if(
    hosts_, [&](const host& one) { return one.last.has(number); });
  if (found == hosts_.end())
    throw error(errc::peer_failure, "no host has this process of the job");
  return *found;
}

std::size_t other_hosts::host_of(std::uint64_t number) const {
  std::size_t host = 1;
  for (auto one = hosts_.begin(); &*one != &with(number); ++one)
    ++host;
  return host;
}

const std::string& other_hosts::address_of(std::uint64_t number) const {
  return with(number).last.address;
}

void other_hosts::tell(const comm::job_epoch& epoch,
                       std::map<std::uint64_t, std::string> credentials) {
  told_ = epoch;
  last_epoch_ = epoch;
  credentials_ = std::move(credentials);
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
  host_order given{{}, {}, words_, std::move(ends)};
  if (told_ && (!to.last.epoch || to.last.epoch->number < told_->number)) {
    given.epoch = told_;
    for (auto& [member, text] : credentials_)
      if (to.last.has(member))
        given.credentials.emplace(member, text);
  }
  to.wire->send(to_line(given));
}

} // namespace troupe::apps
