// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/elastic/epoch_keeper.hpp>

#include <troupe/apps/elastic/other_hosts.hpp>
#include <troupe/base/error.hpp>
#include <troupe/comm/rank_environment.hpp>
#include <troupe/comm/tls/job_credentials.hpp>

#include <algorithm>
#include <cstdio>
#include <utility>

#include <sys/random.h>

namespace troupe::apps {

namespace {

using namespace std::chrono_literals;

// In which other hosts connect to who has taken the rendezvous over.
constexpr auto patience_with_hosts = 5s;
// Of a number, below those of the rank.
constexpr int random_bits = 32;
// In epochs. Other hosts have numbers from 1 on.
constexpr std::size_t own_host = 0;

bool contains(const std::vector<std::uint64_t>& numbers, std::uint64_t one) {
  return std::ranges::find(numbers, one) != numbers.end();
}

} // namespace

epoch_keeper::epoch_keeper(const std::string& folder,
                           const job_processes& processes, job of,
                           other_hosts* others)
  : folder_(folder), processes_(processes), job_(std::move(of)),
    others_(others) {}

void epoch_keeper::keep(clock::time_point now) {
  if (others_)
    others_->look(now);
  begin(now);
  if (!members_ || members_->makes_no_progress())
    return; // the ranks give up
  const auto all = living();
  remove_ended(all, now);
  for (const auto number : all)
    if (gone_.contains(number))
      kill(number); // it would go on with values of its own
  if (!comm::is_all_done(folder_))
    add_new(all, now);
  if (!knows_all_hosts())
    return;
  if (is_due_ && members_->living() > 0)
    members_->begin_epoch();
  else
    for (const auto place : members_->look_for_silent(now))
      kill(members_->number_in(place));
  is_due_ = false;
  tell_epoch();
}

std::vector<std::uint64_t> epoch_keeper::living() const {
  auto all = processes_.living();
  if (others_) {
    const auto more = others_->living();
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

/// Goes on after the last epoch of whoever kept the rendezvous before. Other
/// hosts may know a later one than this host, if all of its processes had
/// ended.
void epoch_keeper::begin(clock::time_point now) {
  auto last = comm::read_epoch(folder_);
  if (others_ && others_->last_epoch()
      && (!last || last->number < others_->last_epoch()->number)) {
    last = others_->last_epoch();
    for (std::size_t rank = 0; rank < last->members.size(); ++rank)
      if (last->host_of(rank) == own_host)
        had_.insert(last->members[rank]);
    comm::write_epoch(folder_, *last);
    members_.reset();
  }
  if (members_)
    return;
  const auto completion = [this](comm::job_epoch& epoch, auto&) {
    complete(epoch);
  };
  if (last) {
    members_.emplace(folder_, *last, completion);
    taken_over_ = now;
    is_due_ = others_ != nullptr; // not all hosts may know the last one
  } else if (const auto first = first_members(living()); !first.empty()) {
    members_.emplace(folder_, first, completion);
    tell_epoch();
  }
}

/// By the ranks as which they were started. Empty if one is missing.
std::vector<std::uint64_t>
epoch_keeper::first_members(std::vector<std::uint64_t> living) const {
  if (others_) {
    std::set<std::uint64_t> ranks;
    for (const auto number : living)
      ranks.insert(number >> random_bits);
    if (ranks.size() < job_.size)
      return {};
    std::ranges::sort(living);
  } else if (living.size() < job_.size) {
    return {};
  }
  living.resize(std::min(living.size(), job_.most));
  return living;
}

bool epoch_keeper::is_of_this_host(std::uint64_t number) const {
  return !others_ || processes_.knows(number) || had_.contains(number);
}

/// Who has taken over waits for the other hosts.
bool epoch_keeper::may_live(std::uint64_t number,
                            const std::vector<std::uint64_t>& living,
                            clock::time_point now) const {
  return contains(living, number)
         || (!is_of_this_host(number) && !others_->knows(number)
             && now - taken_over_ < patience_with_hosts);
}

/// An epoch says on which host each member is.
bool epoch_keeper::knows_all_hosts() const {
  for (std::size_t place = 0; place < members_->places(); ++place)
    if (const auto number = members_->number_in(place);
        members_->lives(place) && !is_of_this_host(number)
        && !others_->knows(number))
      return false;
  return true;
}

void epoch_keeper::remove_ended(const std::vector<std::uint64_t>& living,
                                clock::time_point now) {
  for (std::size_t place = 0; place < members_->places(); ++place) {
    const auto number = members_->number_in(place);
    if (!members_->lives(place) || may_live(number, living, now))
      continue;
    is_due_ = members_->remove(place) || is_due_;
    gone_.insert(number);
  }
}

void epoch_keeper::add_new(const std::vector<std::uint64_t>& living,
                           clock::time_point now) {
  for (const auto number : living)
    if (!gone_.contains(number) && !members_->place_of(number)
        && members_->started() < job_.most)
      members_->add_number(number, now);
  is_due_ = members_->let_in() || is_due_;
}

/// Says where the members are and, if they are on several hosts, makes the
/// credentials of all. The authority that signs these is forgotten.
void epoch_keeper::complete(comm::job_epoch& epoch) {
  credentials_.clear();
  if (!others_)
    return;
  for (const auto number : epoch.members)
    epoch.hosts.push_back(is_of_this_host(number) ? own_host
                                                  : others_->host_of(number));
  if (!epoch.is_on_several_hosts())
    return;
  const auto first = epoch.members.front();
  epoch.address =
    is_of_this_host(first) ? job_.address : others_->address_of(first);
  epoch.port = static_cast<std::uint16_t>(
    job_.port + epoch.number % comm::ports_of_epochs);
  const auto all = comm::make_job_credentials(epoch.members.size());
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const auto member = epoch.members[rank];
    if (!is_of_this_host(member)) {
      credentials_[member] = comm::to_text(all[rank]);
      continue;
    }
    const auto path = comm::credentials_path(folder_, epoch.number, member);
    std::remove(path.c_str()); // of one that ended while it wrote
    comm::write_credentials(path, all[rank]);
  }
}

void epoch_keeper::tell_epoch() {
  if (!others_ || members_->epoch().number == last_told_)
    return;
  last_told_ = members_->epoch().number;
  others_->tell(members_->epoch(), std::move(credentials_));
}

void epoch_keeper::kill(std::uint64_t number) const {
  if (is_of_this_host(number))
    processes_.kill(number);
  else
    others_->kill(number);
}

/// Other hosts learn from this one that nobody has to wait for the next epoch.
bool epoch_keeper::is_missed() const {
  return others_ && comm::is_all_done(folder_) && !others_->living().empty();
}

std::uint64_t draw_number(std::size_t rank) {
  std::uint32_t random = 0;
  if (::getrandom(&random, sizeof random, 0) != sizeof random)
    throw error(errc::io_failure, "no random numbers");
  return std::uint64_t{rank} << random_bits | random;
}

} // namespace troupe::apps
