// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/elastic/moving_rendezvous.hpp>

#include <troupe/apps/elastic/host_folder.hpp>
#include <troupe/base/error.hpp>

#include <algorithm>
#include <utility>

namespace troupe::apps {

namespace {

using namespace std::chrono_literals;

// Longer than another process needs that takes over on the same host.
constexpr auto between_hosts = 3s;
// How long a host waits for votes before it looks for one that has them.
constexpr auto patience_without_votes = 6s;
constexpr auto between_invitations = 1s;

} // namespace

moving_rendezvous::office::office(const std::string& folder,
                                  const job_processes& processes,
                                  vote_memory& votes, epoch_keeper::job of,
                                  host_network& on)
  : others(folder),
    keeper(folder, processes, of, epoch_keeper::network{others, votes}),
    entrance(on.open(of.address, [this](actors::passage come) {
      others.admit(std::move(come));
    })) {}

moving_rendezvous::signpost::signpost(const std::string& folder,
                                      const std::string& own_address,
                                      host_network& on)
  : others(folder), entrance(on.open(own_address, [this](actors::passage come) {
      others.admit(std::move(come));
    })) {}

moving_rendezvous::moving_rendezvous(const std::string& folder,
                                     const job_processes& processes, job of,
                                     host_network& on,
                                     epoch_follower::warning warn)
  : folder_(folder), processes_(processes), job_(std::move(of)), on_(on),
    warn_(std::move(warn)), votes_(read_votes(folder)) {
  const auto all = sites();
  const bool has_kept = !all.empty() && all.front().host == job_.of.host;
  if (has_kept || (!votes_.decided && job_.is_first_host))
    begin_to_keep(own_address());
  else
    follow({});
}

std::vector<comm::job_epoch::site> moving_rendezvous::sites() const {
  return votes_.decided.value_or(comm::job_epoch{}).sites;
}

void moving_rendezvous::follow(std::string first_try) {
  office_.reset();
  write_votes(folder_, votes_); // before others learn the name of the folder
  lacks_votes_since_.reset();
  first_try_ = std::move(first_try);
  follower_ = std::make_unique<epoch_follower>(
    folder_, processes_, votes_, job_.of.host,
    [this](const std::string& told) { return connect(told); }, warn_);
}

void moving_rendezvous::begin_to_keep(const std::string& address) {
  signpost_.reset(); // has the port
  auto of = job_.of;
  of.address = address;
  office_ =
    std::make_unique<office>(folder_, processes_, votes_, std::move(of), on_);
  follower_.reset();
}

void moving_rendezvous::keep(clock::time_point now) {
  if (office_)
    return keep_it(now);
  follower_->keep(now);
  show_way(now);
  if (!is_turn(now))
    return;
  try {
    begin_to_keep(own_address());
  } catch (const error& why) {
    if (why.code() != errc::peer_failure)
      throw;
    warn_("cannot keep the rendezvous: " + why.message()); // another host may
    follow({});
  }
}

/// Hosts try it one after the other, so that the one before has had time to
/// find the rest.
bool moving_rendezvous::is_turn(clock::time_point now) const {
  if (comm::is_all_done(folder_) || own_address().empty())
    return false;
  std::size_t place = 0; // the one that kept it is the last to try it again
  if (const auto all = sites(); !all.empty()) {
    const auto own =
      std::ranges::find(all, job_.of.host, &comm::job_epoch::site::host);
    place = static_cast<std::size_t>(own - all.begin());
    place = place == 0 ? all.size() : place;
  }
  return follower_->absence(now)
         >= between_hosts * static_cast<int>(std::max<std::size_t>(place, 1));
}

/// Empty if no other host can know it: this one was not in the last epoch.
std::string moving_rendezvous::own_address() const {
  for (auto& site : sites())
    if (site.host == job_.of.host)
      return site.address;
  return job_.is_first_host ? job_.of.address : std::string{};
}

void moving_rendezvous::keep_it(clock::time_point now) {
  office_->keeper.keep(now);
  if (office_->keeper.has_votes()) {
    lacks_votes_since_.reset();
    has_warned_ = false;
    return invite(now);
  }
  if (auto elsewhere = office_->others.kept_elsewhere(); !elsewhere.empty())
    return follow(std::move(elsewhere));
  if (!office_->keeper.lacks_votes())
    return; // the job has not begun
  if (!lacks_votes_since_)
    lacks_votes_since_ = now;
  if (now - *lacks_votes_since_ <= patience_without_votes)
    return;
  if (!std::exchange(has_warned_, true))
    warn_("waits: too few hosts of the job can be reached to go on without "
          "the others");
  follow({});
}

/// Processes that are started anew on the first host know no other host.
void moving_rendezvous::invite(clock::time_point now) {
  if (job_.is_first_host || now - last_invitation_ < between_invitations)
    return;
  last_invitation_ = now;
  on_.tell(job_.of.address,
           {job_.of.host, own_address(), votes_, {}, {}, {}, true});
}

void moving_rendezvous::show_way(clock::time_point now) {
  if (!job_.is_first_host)
    return;
  if (!follower_->is_told())
    return signpost_.reset();
  if (!signpost_ && now - last_signpost_ >= between_invitations) {
    last_signpost_ = now;
    try {
      signpost_ = std::make_unique<signpost>(folder_, own_address(), on_);
    } catch (const error& why) {
      if (why.code() != errc::peer_failure)
        throw;
      return; // the port is in use yet
    }
  }
  if (!signpost_)
    return;
  signpost_->others.point_to(kept_at_);
  signpost_->others.look(now);
}

/// Tries one address at a time.
actors::admission moving_rendezvous::connect(const std::string& told) {
  if (!told.empty()) {
    first_try_ = told;
    next_try_ = 0;
  }
  const auto all = addresses();
  if (all.empty())
    throw error(errc::peer_failure, "no other host is known");
  const auto& address = all[next_try_ % all.size()];
  try {
    auto come = on_.connect(address);
    kept_at_ = address;
    return come;
  } catch (const error&) {
    ++next_try_;
    throw;
  }
}

/// Of the hosts that may keep the rendezvous: first the one of which that is
/// known.
std::vector<std::string> moving_rendezvous::addresses() const {
  std::vector<std::string> all;
  const auto add = [&](const std::string& one) {
    if (!one.empty() && std::ranges::find(all, one) == all.end())
      all.push_back(one);
  };
  add(first_try_);
  for (auto& site : sites())
    if (site.host != job_.of.host)
      add(site.address);
  if (!job_.is_first_host)
    add(job_.of.address);
  return all;
}

bool moving_rendezvous::is_missed() const {
  return office_ && office_->keeper.is_missed();
}

} // namespace troupe::apps
