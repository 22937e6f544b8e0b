// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/elastic/epoch_keeper.hpp>

#include <troupe/apps/elastic/host_folder.hpp>
#include <troupe/apps/elastic/other_hosts.hpp>
#include <troupe/base/error.hpp>
#include <troupe/comm/rank_environment.hpp>
#include <troupe/comm/tls/job_credentials.hpp>

#include <algorithm>
#include <utility>

#include <sys/random.h>

namespace troupe::apps {

namespace {

using namespace std::chrono_literals;

// In which other hosts connect to who has taken the rendezvous over.
constexpr auto patience_with_hosts = 5s;
// Of a number, below those of the rank.
constexpr int random_bits = 32;
// The number of who keeps the rendezvous, in epochs.
constexpr std::size_t keeper = 0;

bool contains(const std::vector<std::uint64_t>& numbers, std::uint64_t one) {
  return std::ranges::find(numbers, one) != numbers.end();
}

} // namespace

epoch_keeper::epoch_keeper(const std::string& folder,
                           const job_processes& processes, job of,
                           std::optional<network> among)
  : folder_(folder), processes_(processes), job_(std::move(of)), among_(among) {
  if (among_)
    candidate_.emplace(among_->votes);
}

void epoch_keeper::keep(clock::time_point now) {
  if (among_) {
    settle(now); // who comes must be asked
    among_->others.look(now);
    candidate_->take(among_->others.answers());
    settle(now);
  }
  if (!members_)
    begin_job(now);
  if (members_ && !members_->makes_no_progress() && has_votes())
    look_after_members(now); // else the ranks give up, or wait
}

void epoch_keeper::look_after_members(clock::time_point now) {
  const auto all = living();
  remove_ended(all, now);
  for (const auto number : all)
    if (gone_.contains(number) && !members_->epoch().rank_of(number))
      kill(number); // it would go on with values of its own
  if (!comm::is_all_done(folder_))
    add_new(all, now);
  if (!knows_all_hosts())
    return;
  is_due_ = is_due_ || members_->has_ended();
  if (is_due_ && members_->living() > 0) {
    is_due_ = !begin_next(now);
    return;
  }
  is_due_ = false;
  for (const auto place : members_->look_for_silent(now))
    kill(members_->number_in(place));
}

std::vector<std::uint64_t> epoch_keeper::living() const {
  auto all = processes_.living();
  if (among_) {
    const auto more = among_->others.living();
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

/// On one host: goes on after the last epoch of whoever kept the rendezvous
/// before, or begins the job.
void epoch_keeper::begin_job(clock::time_point now) {
  if (!among_)
    if (const auto last = comm::read_epoch(folder_)) {
      members_.emplace(folder_, *last);
      return;
    }
  const auto first = first_members(living());
  if (first.empty())
    return;
  if (among_)
    propose({1, first}, now);
  else
    members_.emplace(folder_, first);
}

/// By the ranks as which they were started. Empty if one is missing.
std::vector<std::uint64_t>
epoch_keeper::first_members(std::vector<std::uint64_t> living) const {
  if (among_) {
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
  return !among_ || processes_.knows(number) || had_.contains(number);
}

/// Who has taken over waits for the other hosts, except for the one that did
/// not answer.
bool epoch_keeper::may_live(std::uint64_t number,
                            const std::vector<std::uint64_t>& living,
                            clock::time_point now) const {
  return contains(living, number)
         || (!is_of_this_host(number) && !among_->others.knows(number)
             && !of_lost_keeper_.contains(number)
             && now - taken_over_ < patience_with_hosts);
}

/// An epoch says on which host each member is.
bool epoch_keeper::knows_all_hosts() const {
  for (std::size_t place = 0; place < members_->places(); ++place)
    if (const auto number = members_->number_in(place);
        members_->lives(place) && !is_of_this_host(number)
        && !among_->others.knows(number))
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

/// False if that must wait.
bool epoch_keeper::begin_next(clock::time_point now) {
  if (among_)
    return propose(members_->next_epoch(), now);
  members_->begin_epoch();
  return true;
}

void epoch_keeper::kill(std::uint64_t number) const {
  if (is_of_this_host(number))
    processes_.kill(number);
  else
    among_->others.kill(number);
}

/// Other hosts learn from this one that nobody has to wait for the next epoch.
bool epoch_keeper::is_missed() const {
  return among_ && comm::is_all_done(folder_)
         && !among_->others.living().empty();
}

// -- several hosts ------------------------------------------------------------

bool epoch_keeper::has_votes() const {
  return !among_ || candidate_->has_votes();
}

bool epoch_keeper::lacks_votes() const {
  return among_ && candidate_->knows_job() && !candidate_->has_votes();
}

bool epoch_keeper::propose(comm::job_epoch next, clock::time_point now) {
  name_hosts(next);
  if (!candidate_->propose(next))
    return false;
  auto& votes = among_->votes;
  proposed_ = votes.accepted ? std::optional{votes.accepted->epoch}
                             : votes.decided; // by this host alone
  settle(now);
  return true;
}

/// Does what follows from votes: begins an epoch that is decided, and asks for
/// more. A promise is kept before others learn of it.
void epoch_keeper::settle(clock::time_point now) {
  auto& votes = among_->votes;
  if (votes.decided != begun_)
    begin_decided(now);
  if (votes != kept_) {
    write_votes(folder_, votes);
    kept_ = votes;
  }
  among_->others.ask(candidate_->request(), credentials_);
}

void epoch_keeper::begin_decided(clock::time_point now) {
  const auto& epoch = *among_->votes.decided;
  const bool is_own = epoch == proposed_;
  const bool is_first = !begun_ && is_own;
  note_hosts(epoch);
  make_credentials(epoch);
  std::map<std::uint64_t, std::string> own;
  for (auto& [member, text] : credentials_)
    if (is_of_this_host(member))
      own.emplace(member, text);
  begin_here(folder_, processes_, epoch, own);
  begun_ = epoch;
  if (is_own && members_) {
    members_->note_begin(epoch);
    return;
  }
  members_.emplace(folder_, epoch);
  taken_over_ = now;
  is_due_ = !is_first; // not all hosts may know it
}

void epoch_keeper::note_hosts(const comm::job_epoch& epoch) {
  of_lost_keeper_.clear();
  for (std::size_t rank = 0; rank < epoch.members.size(); ++rank) {
    const auto host = epoch.host_of(rank);
    if (host < epoch.sites.size() && epoch.sites[host].host == job_.host)
      had_.insert(epoch.members[rank]);
    else if (host == keeper)
      of_lost_keeper_.insert(epoch.members[rank]);
  }
}

/// Says which hosts the members are on.
void epoch_keeper::name_hosts(comm::job_epoch& epoch) const {
  epoch.sites.push_back({job_.host, among_->votes.folder, job_.address});
  for (const auto number : epoch.members) {
    if (is_of_this_host(number)) {
      epoch.hosts.push_back(keeper);
      continue;
    }
    auto& host = among_->others.host_of(number);
    const comm::job_epoch::site site{host.host, host.votes.folder,
                                     host.address};
    const auto found = std::ranges::find(epoch.sites, site);
    epoch.hosts.push_back(
      static_cast<std::size_t>(found - epoch.sites.begin()));
    if (found == epoch.sites.end())
      epoch.sites.push_back(site);
  }
  if (!epoch.is_on_several_hosts()) {
    if (epoch.host_of(0) == keeper)
      epoch.hosts.clear(); // as if it was read
    return;
  }
  epoch.address = epoch.sites[epoch.host_of(0)].address;
  epoch.port = static_cast<std::uint16_t>(
    job_.port + epoch.number % comm::ports_of_epochs);
}

/// The authority that signs them is forgotten.
void epoch_keeper::make_credentials(const comm::job_epoch& epoch) {
  credentials_.clear();
  if (!epoch.is_on_several_hosts())
    return;
  const auto all = comm::make_job_credentials(epoch.members.size());
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    credentials_[epoch.members[rank]] = comm::to_text(all[rank]);
}

std::uint64_t draw_number(std::size_t rank) {
  std::uint32_t random = 0;
  if (::getrandom(&random, sizeof random, 0) != sizeof random)
    throw error(errc::io_failure, "no random numbers");
  return std::uint64_t{rank} << random_bits | random;
}

} // namespace troupe::apps
