// SPDX-License-Identifier: Apache-2.0
//
// How the ranks of an elastic job change while it runs.
#include <troupe/apps/launch/running_job.hpp>
#include <troupe/apps/usage_error.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/quoted_name.hpp>

#include <csignal>
#include <utility>

namespace troupe::apps {

/// Guests have no state. The job is done without them.
void running_job::send_guests_away() {
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
    if (members_->is_guest(rank))
      ranks_[rank]->process.send(SIGKILL);
}

/// True if ranks may still be started. Once a rank has done all steps, another
/// one cannot get its state any more.
bool running_job::goes_on() const {
  return members_ && passed_on_ == 0 && !first_failed_ && !has_success_
         && ending_.at == job_ending::stage::none;
}

/// A rank that ends by itself with an error would do so again.
bool running_job::goes_on_without(const launched_rank& ended) const {
  return goes_on() && ended.was_killed();
}

/// Not done while streams are polled, because it adds some.
void running_job::take_joins() {
  if (!members_)
    return;
  while (const auto request = take_join_request(folders_.rendezvous()))
    answer_join_request(folders_.rendezvous(), *request, let_join(*request));
  if (goes_on() && members_->let_in())
    epoch_is_due_ = true;
}

join_answer running_job::let_join(const join_request& request) {
  if (const auto why = why_not_to_join(request); !why.empty())
    return {false, why};
  try {
    if (options_.remote)
      add_hosts(request.hosts);
    for (std::size_t i = 0; !options_.remote && i < request.ranks; ++i)
      add_rank();
  } catch (const error& failure) {
    note(failure.message());
    return {false, one_line(failure.message())};
  } catch (const usage_error& failure) { // a wrong list of hosts
    return {false, one_line(failure.what())};
  }
  return {true, std::to_string(request.ranks)
                  + (request.ranks == 1 ? " rank is" : " ranks are")
                  + " started"};
}

/// Empty if ranks can join.
std::string running_job::why_not_to_join(const join_request& request) const {
  if (!goes_on())
    return "the job is about to end";
  if (!options_.remote && !request.hosts.empty())
    return "the ranks of the job are on the host of its launch: --hosts cannot "
           "add others";
  if (options_.remote && options_.remote->hosts.size() == 1)
    return "the job is on one other host, whose ranks meet in its memory";
  if (options_.remote && request.hosts.empty())
    return "the job runs on other hosts: --hosts must name those that join";
  if (options_.remote && !options_.remote->interface.empty())
    return "the job uses --interface, which was asked for at its start";
  if (is_starting())
    return "the job is still starting its own ranks";
  const auto there = members_->started(), most = options_.places();
  if (request.ranks > most - there)
    return "the job has " + std::to_string(there) + " ranks and may have "
           + std::to_string(most) + " (--elastic): "
           + std::to_string(request.ranks) + " more cannot join";
  return {};
}

/// Places are numbered host by host, so hosts are only appended.
void running_job::add_hosts(const std::string& list) {
  options_.remote->hosts = with_hosts(options_.remote->hosts, list);
  for (auto rank = ranks_.size(); rank < ranks_of(options_.remote->hosts);
       ++rank) {
    if (place_of(rank, options_.remote->hosts).local_rank == 0)
      hosts_->add();
    members_->add_in(rank, job_members::clock::now());
    place_rank(rank);
    note("rank " + std::to_string(rank) + " is started on host "
         + options_.remote->hosts[host_of(rank)].name + " to join the others");
  }
}

void running_job::add_rank() {
  const auto place = members_->add(job_members::clock::now());
  try {
    place_rank(place);
  } catch (const error&) {
    if (place >= ranks_.size() || ranks_[place]->process.end())
      members_->remove(place); // else only the guardian could not be started
    throw;
  }
  note("rank " + std::to_string(place) + " is started to join the others");
}

/// Starts a rank in a new place, or in that of one that has ended.
void running_job::place_rank(std::size_t place) {
  const bool is_new = place == ranks_.size();
  const auto log_from =
    is_new ? rank_log::start::empty : rank_log::start::after_the_old;
  if (!is_new)
    ranks_[place]->clear_away();
  auto made =
    options_.remote
      ? start_at_host(place, log_from)
      : start_here(place, options_, folders_, streams_,
                   members_ ? std::optional{members_->number_in(place)}
                            : std::nullopt,
                   log_from);
  if (is_new)
    ranks_.emplace_back();
  ranks_[place] = std::move(made);
  guard();
}

/// Not done while streams are polled, because it closes some.
void running_job::look_at_hosts() {
  for (auto& [host, why] : std::exchange(hosts_to_lose_, {}))
    hosts_->lose(host, why);
  hosts_->look(goes_on());
  for (auto& lost : hosts_->take_lost())
    go_on_without_host(lost);
  for (const auto host : hosts_->take_back())
    if (goes_on())
      fill_host(host);
  if (hosts_->take_started())
    guard();
}

/// The connections to its ranks are closed, too: a rank that still lives there
/// ends then.
void running_job::go_on_without_host(const job_hosts::loss& lost) {
  const auto& name = options_.remote->hosts[lost.host].name;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
    if (host_of(rank) == lost.host) {
      ranks_[rank]->process.send(SIGKILL);
      epoch_is_due_ = members_->remove(rank) || epoch_is_due_;
    }
  const auto text = "host " + name + " is lost (" + lost.why + ")";
  if (!goes_on())
    return;
  if (members_->living() >= options_.elastic->least)
    return note(text + ", the others go on");
  failed_hosts_ = text + ", and too few ranks are left: "
                  + std::to_string(members_->living());
  begin_end(options_.grace);
}

/// The host is there again: its ranks join the others.
void running_job::fill_host(std::size_t host) {
  note("host " + options_.remote->hosts[host].name + " is there again");
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
    if (host_of(rank) == host) {
      members_->add_in(rank, job_members::clock::now());
      place_rank(rank);
    }
}

/// Not done while streams are polled, because it replaces them. What has
/// happened in the same pass can have ended the job meanwhile.
void running_job::replace_ended() {
  const auto ended = std::exchange(to_replace_, {});
  for (const auto rank : ended)
    epoch_is_due_ = members_->remove(rank) || epoch_is_due_;
  const bool has_state = members_ && members_->living() > 0;
  for (const auto rank : ended)
    if (has_state && goes_on_without(*ranks_[rank]))
      replace(rank);
    else
      fail(rank);
  if (!std::exchange(epoch_is_due_, false) || first_failed_
      || members_->living() == 0)
    return;
  if (!ended.empty() && members_->makes_no_progress())
    fail(ended.front());
  else
    members_->begin_epoch();
}

void running_job::replace(std::size_t rank) {
  const auto how = ranks_[rank]->end_text(rank);
  const auto now = job_members::clock::now();
  if (members_->may_start_again(rank, now))
    try {
      members_->replace(rank, now);
      place_rank(rank);
      note(how + " and is started again");
      return;
    } catch (const error& failure) {
      note(failure.message());
      if (!ranks_[rank]->process.end())
        return; // it runs, only the guardian could not be started
    }
  members_->remove(rank);
  if (members_->living() >= options_.elastic->least) {
    note(how + ", the others go on");
    return;
  }
  fail(rank);
}

void running_job::kill_silent() {
  if (!members_ || ending_.at != job_ending::stage::none || first_failed_)
    return;
  if (members_->has_ended())
    members_->begin_epoch();
  for (const auto rank : members_->look_for_silent(job_members::clock::now())) {
    if (has_success_)
      continue; // it has done all steps, too, and may be saving
    note("rank " + std::to_string(rank) + " hangs: it is killed");
    ranks_[rank]->kill();
  }
  // Ranks that can make no run together try it again and again.
  if (!has_success_ && members_->makes_no_progress())
    fail(0);
}

} // namespace troupe::apps
