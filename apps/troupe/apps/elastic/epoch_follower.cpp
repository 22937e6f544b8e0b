// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/elastic/epoch_follower.hpp>

#include <troupe/apps/elastic/host_folder.hpp>
#include <troupe/base/error.hpp>

#include <algorithm>
#include <utility>

namespace troupe::apps {

namespace {

using namespace std::chrono_literals;

constexpr auto between_tries = 100ms;
constexpr auto patience_without_word = 5s;

} // namespace

epoch_follower::epoch_follower(const std::string& folder,
                               const job_processes& processes,
                               vote_memory& votes, std::string host,
                               connection connect, warning warn)
  : folder_(folder), processes_(processes), votes_(votes),
    connect_(std::move(connect)), warn_(std::move(warn)) {
  last_.host = std::move(host);
}

epoch_follower::~epoch_follower() {
  if (!wire_)
    return;
  std::erase(last_.living, processes_.own());
  wire_->send(to_line(last_));
}

void epoch_follower::keep(clock::time_point now) {
  if (!has_connection(now))
    return;
  while (const auto line = wire_->receive()) {
    const auto order = parse_host_order(*line);
    if (!order.elsewhere.empty()) {
      elsewhere_ = order.elsewhere;
      return wire_.reset();
    }
    if (!are_of_one_job(votes_.decided, order.votes.decided)) {
      wire_.reset();
      return note_absence("it keeps another job of this name", now);
    }
    last_sign_ = now;
    absent_since_.reset();
    has_warned_ = false;
    has_heard_ = true;
    obey(order);
  }
  report(now);
}

bool epoch_follower::has_connection(clock::time_point now) {
  if (wire_ && !wire_->is_gone()
      && now - last_sign_ <= host_wire::longest_silence)
    return true;
  if (wire_)
    note_absence("who lets this host in tells nothing", now);
  wire_.reset();
  if (now < next_try_)
    return false;
  next_try_ = now + between_tries;
  try {
    auto come = connect_(std::exchange(elsewhere_, {}));
    last_.address = come.own_address;
    wire_.emplace(std::move(come.through));
  } catch (const error& why) {
    if (why.code() != errc::peer_failure)
      throw;
    note_absence(why.message(), now);
    return false;
  }
  last_sign_ = now;
  last_report_ = {};
  has_heard_ = false;
  return true;
}

void epoch_follower::note_absence(const std::string& why,
                                  clock::time_point now) {
  if (!absent_since_)
    absent_since_ = now;
  if (now - *absent_since_ >= patience_without_word
      && !std::exchange(has_warned_, true))
    warn_("cannot reach the host of the rendezvous: " + why);
}

/// The epoch comes last: who sees it needs the rest. What it has promised is
/// kept before it is reported.
void epoch_follower::obey(const host_order& order) {
  for (auto& word : order.told)
    comm::repeat_told(folder_, word);
  const auto before = votes_;
  answer(votes_, order.votes);
  if (votes_.decided != before.decided)
    begin_here(folder_, processes_, *votes_.decided, order.credentials);
  if (votes_ != before)
    write_votes(folder_, votes_);
  for (const auto number : order.ends)
    processes_.kill(number);
}

void epoch_follower::report(clock::time_point now) {
  host_report is{last_.host,       last_.address,
                 votes_,           processes_.living(),
                 processes_.all(), comm::all_told(folder_)};
  std::ranges::sort(is.told);
  if (is == last_ && now - last_report_ < host_wire::between_signs)
    return wire_->flush();
  last_ = std::move(is);
  last_report_ = now;
  wire_->send(to_line(last_));
}

} // namespace troupe::apps
