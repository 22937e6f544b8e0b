// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/elastic/epoch_consensus.hpp>

#include <algorithm>
#include <set>
#include <utility>

namespace troupe::apps {

namespace {

std::uint64_t number_after(const std::optional<comm::job_epoch>& last) {
  return last ? last->number + 1 : 1;
}

/// The folders with members of an epoch.
std::set<std::string> voters_of(const comm::job_epoch& epoch) {
  std::set<std::string> folders;
  for (std::size_t rank = 0; rank < epoch.members.size(); ++rank)
    if (const auto host = epoch.host_of(rank); host < epoch.sites.size())
      folders.insert(epoch.sites[host].folder);
  return folders;
}

/// What was accepted to follow an earlier epoch does not matter any more.
void learn(vote_memory& own, const comm::job_epoch& decided) {
  if (!are_of_one_job(own.decided, decided)
      || decided.number < number_after(own.decided))
    return;
  own.decided = decided;
  if (own.accepted
      && (own.accepted->epoch.number <= decided.number
          || !are_of_one_job(own.accepted->epoch, decided)))
    own.accepted.reset();
}

} // namespace

bool are_of_one_job(const std::optional<comm::job_epoch>& one,
                    const std::optional<comm::job_epoch>& other) {
  return !one || !other || one->origin == other->origin;
}

void answer(vote_memory& own, const vote_request& asked) {
  if (!are_of_one_job(own.decided, asked.decided))
    return;
  if (asked.decided)
    learn(own, *asked.decided);
  if (asked.by < own.promised)
    return;
  own.promised = asked.by;
  if (asked.proposed && asked.proposed->number == number_after(own.decided)
      && are_of_one_job(own.decided, asked.proposed))
    own.accepted = {asked.by, *asked.proposed};
}

epoch_candidate::epoch_candidate(vote_memory& own) : own_(own) {
  stand();
}

/// What it has accepted with an earlier ballot, it proposes again (`complete`).
void epoch_candidate::stand() {
  auto highest = own_.promised.round;
  for (auto& one : answers_)
    highest = std::max(highest, one.promised.round);
  own_.promised = {highest + 1, own_.folder};
}

void epoch_candidate::take(std::vector<vote_memory> answers) {
  answers_ = std::move(answers);
  std::erase_if(answers_, [this](const vote_memory& one) {
    return !are_of_one_job(own_.decided, one.decided);
  });
  for (auto& one : answers_)
    if (one.decided && (own_.decided || can_go_on(*one.decided)))
      learn(own_, *one.decided);
  // A host that has promised more to another one is here now.
  if (std::ranges::any_of(answers_, [this](const vote_memory& one) {
        return one.promised > own_.promised;
      }))
    stand();
  complete();
  decide();
}

vote_request epoch_candidate::request() const {
  vote_request asked{own_.promised, {}, {}};
  if (has_votes())
    asked.decided = own_.decided;
  if (own_.accepted && own_.accepted->by == own_.promised)
    asked.proposed = own_.accepted->epoch;
  return asked;
}

/// @param voted whether a host has
template <class Voted>
bool epoch_candidate::are_enough(const std::optional<comm::job_epoch>& last,
                                 const comm::job_epoch& next,
                                 Voted voted) const {
  const auto voters = voters_of(last ? *last : next);
  std::set<std::string> votes;
  const auto count = [&](const vote_memory& one) {
    if (voted(one) && voters.contains(one.folder))
      votes.insert(one.folder);
  };
  count(own_);
  for (auto& one : answers_)
    count(one);
  if (!last)
    return !voters.empty() && votes == voters;
  return 2 * votes.size() > voters.size()
         || (2 * votes.size() == voters.size() && !last->sites.empty()
             && votes.contains(last->sites.front().folder));
}

/// True if enough have promised this ballot.
bool epoch_candidate::may_decide(const comm::job_epoch& next) const {
  return are_enough(own_.decided, next, [this](const vote_memory& one) {
    return one.promised == own_.promised;
  });
}

/// True if enough of those that vote on what follows are here.
bool epoch_candidate::can_go_on(const comm::job_epoch& last) const {
  return are_enough(last, {}, [](const vote_memory&) { return true; });
}

bool epoch_candidate::has_votes() const {
  return own_.decided && may_decide({});
}

bool epoch_candidate::knows_job() const {
  return own_.decided || std::ranges::any_of(answers_, [](auto& one) {
           return one.decided.has_value();
         });
}

/// Of what may have been decided to follow the last epoch.
const epoch_proposal* epoch_candidate::accepted_before() const {
  const epoch_proposal* found = nullptr;
  const auto look_at = [&](const vote_memory& one) {
    if (one.promised == own_.promised && one.accepted
        && one.accepted->epoch.number == number_after(own_.decided)
        && are_of_one_job(own_.decided, one.accepted->epoch)
        && (!found || found->by < one.accepted->by))
      found = &*one.accepted;
  };
  look_at(own_);
  for (auto& one : answers_)
    look_at(one);
  return found;
}

void epoch_candidate::complete() {
  if (const auto* before = accepted_before();
      before && before->by != own_.promised && may_decide(before->epoch))
    own_.accepted = {own_.promised, comm::job_epoch{before->epoch}};
}

bool epoch_candidate::propose(comm::job_epoch next) {
  const bool is_begun = !own_.decided && knows_job();
  if (next.number != number_after(own_.decided) || is_begun || accepted_before()
      || !may_decide(next))
    return false;
  next.origin = own_.decided
                  ? own_.decided->origin
                  : own_.folder + "-" + std::to_string(own_.promised.round);
  own_.accepted = {own_.promised, std::move(next)};
  decide();
  return true;
}

void epoch_candidate::decide() {
  if (!own_.accepted || own_.accepted->by != own_.promised
      || !are_enough(own_.decided, own_.accepted->epoch,
                     [this](const vote_memory& one) {
                       return one.accepted == own_.accepted;
                     }))
    return;
  learn(own_, comm::job_epoch{own_.accepted->epoch});
}

} // namespace troupe::apps
