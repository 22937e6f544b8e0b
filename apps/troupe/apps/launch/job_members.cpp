// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/launch/job_members.hpp>

#include <troupe/comm/job_epoch.hpp>

#include <algorithm>
#include <utility>

namespace troupe::apps {

namespace {

using namespace std::chrono_literals;

// A process that ends sooner may do so again and again.
constexpr auto early = 500ms;
constexpr int most_early_ends = 20;
constexpr int most_idle_epochs = 20;
// How long a process may take longer than others to notice the end of an epoch.
constexpr auto patience = 3s;

} // namespace

job_members::job_members(std::string folder, std::size_t places)
  : folder_(std::move(folder)), places_(places) {
  for (auto& p : places_) {
    p.number = next_number_++;
    p.started = clock::now();
    order_.push_back(p.number);
  }
  begin_epoch();
}

bool job_members::may_start_again(std::size_t place, clock::time_point now) {
  auto& p = places_[place];
  p.early_ends = now - p.started < early ? p.early_ends + 1 : 0;
  return p.early_ends < most_early_ends;
}

std::uint64_t job_members::replace(std::size_t place, clock::time_point now) {
  remove(place);
  auto& p = places_[place];
  p.number = next_number_++;
  p.lives = true;
  p.started = now;
  order_.push_back(p.number);
  return p.number;
}

void job_members::remove(std::size_t place) {
  places_[place].lives = false;
  std::erase(order_, places_[place].number);
}

bool job_members::makes_no_progress() const {
  return idle_epochs_ >= most_idle_epochs;
}

void job_members::begin_epoch() {
  if (epoch_ > 0)
    idle_epochs_ = comm::has_done_step(folder_, epoch_) ? 0 : idle_epochs_ + 1;
  comm::write_epoch(folder_, {++epoch_, order_});
  told_since_.reset();
}

std::vector<std::size_t> job_members::look_for_silent(clock::time_point now) {
  std::vector<std::size_t> silent;
  std::size_t told = 0;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (!places_[i].lives)
      continue;
    if (comm::has_epoch_ended(folder_, epoch_, places_[i].number))
      ++told;
    else
      silent.push_back(i);
  }
  if (told == 0)
    return {};
  if (silent.empty()) {
    begin_epoch();
    return {};
  }
  if (!told_since_)
    told_since_ = now;
  if (now - *told_since_ < patience)
    return {};
  told_since_ = now; // they have time to end
  return silent;
}

} // namespace troupe::apps
