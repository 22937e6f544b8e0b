// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/elastic/job_members.hpp>

#include <algorithm>
#include <utility>

namespace troupe::apps {

namespace {

using namespace std::chrono_literals;

// A process that ends sooner may do so again and again.
constexpr auto early = 500ms;
constexpr int most_early_ends = 20;
// More than a single place can cause before it is given up.
constexpr int most_idle_epochs = 3 * most_early_ends;
// How long a process may take longer than others to notice the end of an epoch.
constexpr auto patience = 3s;

} // namespace

job_members::job_members(std::string folder, std::size_t places,
                         completion complete)
  : folder_(std::move(folder)), complete_(std::move(complete)),
    places_(places) {
  for (auto& p : places_) {
    start_in(p, next_number_++, clock::now());
    order_.push_back(p.number);
  }
  begin_epoch();
}

job_members::job_members(std::string folder,
                         const std::vector<std::uint64_t>& numbers)
  : folder_(std::move(folder)), places_(numbers.size()), order_(numbers) {
  for (std::size_t i = 0; i < numbers.size(); ++i)
    start_in(places_[i], numbers[i], clock::now());
  begin_epoch();
}

job_members::job_members(std::string folder, const comm::job_epoch& last)
  : folder_(std::move(folder)), epoch_(last), places_(last.members.size()),
    order_(last.members) {
  for (std::size_t i = 0; i < places_.size(); ++i) {
    auto& p = places_[i];
    start_in(p, order_[i], clock::now());
    p.is_newcomer = !comm::has_state(folder_, p.number);
    p.is_added = p.is_newcomer && epoch_.number > 1;
  }
  for (auto e = epoch_.number; e-- > 1 && !comm::has_done_step(folder_, e);)
    ++idle_epochs_;
}

void job_members::start_in(seat& p, std::uint64_t number,
                           clock::time_point now) {
  p.number = number;
  p.started = now;
  p.is_newcomer = true;
}

std::size_t job_members::started() const {
  return static_cast<std::size_t>(
    std::ranges::count(places_, true, &seat::lives));
}

bool job_members::is_guest(std::size_t place) const {
  return places_[place].is_added && places_[place].is_newcomer;
}

std::optional<std::size_t> job_members::place_of(std::uint64_t number) const {
  for (std::size_t i = 0; i < places_.size(); ++i)
    if (places_[i].lives && places_[i].number == number)
      return i;
  return std::nullopt;
}

std::size_t job_members::add(clock::time_point now) {
  return add_number(next_number_++, now);
}

std::size_t job_members::add_number(std::uint64_t number,
                                    clock::time_point now) {
  auto p = std::ranges::find(places_, false, &seat::lives);
  if (p == places_.end())
    p = places_.insert(places_.end(), seat{});
  start_new(*p, number, now);
  return static_cast<std::size_t>(p - places_.begin());
}

void job_members::add_in(std::size_t place, clock::time_point now) {
  if (place == places_.size())
    places_.emplace_back();
  start_new(places_[place], next_number_++, now);
}

/// It is a guest.
void job_members::start_new(seat& p, std::uint64_t number,
                            clock::time_point now) {
  p = {};
  start_in(p, number, now);
  p.has_come_in = false;
  p.is_added = true;
}

bool job_members::let_in() {
  bool any = false;
  for (auto& p : places_)
    if (p.lives && !p.has_come_in
        && comm::has_epoch_ended(folder_, 0, p.number)) {
      p.has_come_in = true;
      order_.push_back(p.number);
      any = true;
    }
  return any;
}

bool job_members::may_start_again(std::size_t place, clock::time_point now) {
  auto& p = places_[place];
  p.early_ends = now - p.started < early ? p.early_ends + 1 : 0;
  if (p.early_ends < most_early_ends)
    return true;
  idle_epochs_ = 0; // this place was the reason
  return false;
}

std::uint64_t job_members::replace(std::size_t place, clock::time_point now) {
  remove(place);
  auto& p = places_[place];
  p.is_added = is_guest(place);
  start_in(p, next_number_++, now);
  p.lives = true;
  if (p.has_come_in)
    order_.push_back(p.number);
  return p.number;
}

bool job_members::remove(std::size_t place) {
  note_steps();
  places_[place].lives = false;
  return std::erase(order_, places_[place].number) > 0;
}

bool job_members::makes_no_progress() const {
  return idle_epochs_ >= most_idle_epochs;
}

/// Members of an epoch in which a step was done have the state of the job.
void job_members::note_steps() {
  if (!comm::has_done_step(folder_, epoch_.number))
    return;
  for (auto& p : places_)
    if (p.is_newcomer && epoch_.rank_of(p.number)) {
      comm::note_state(folder_, p.number); // before it is in the next epoch
      p.is_newcomer = false;
    }
}

comm::job_epoch job_members::next_epoch() {
  note_steps();
  const bool has_old = std::ranges::any_of(
    places_, [](const seat& p) { return p.lives && !p.is_newcomer; });
  return {epoch_.number + 1, order_, !has_old && comm::has_done_step(folder_)};
}

void job_members::note_begin(const comm::job_epoch& next) {
  if (epoch_.number > 0)
    idle_epochs_ =
      comm::has_done_step(folder_, epoch_.number) ? 0 : idle_epochs_ + 1;
  epoch_ = next;
  told_since_.reset();
}

void job_members::begin_epoch() {
  auto next = next_epoch();
  if (complete_)
    complete_(next, places_of_members());
  comm::write_epoch(folder_, next);
  note_begin(next);
}

bool job_members::has_ended() const {
  return !order_.empty()
         && std::ranges::all_of(order_, [this](std::uint64_t number) {
              return comm::has_epoch_ended(folder_, epoch_.number, number);
            });
}

std::vector<std::size_t> job_members::places_of_members() const {
  std::vector<std::size_t> places;
  for (const auto number : order_)
    places.push_back(static_cast<std::size_t>(
      std::ranges::find(places_, number, &seat::number) - places_.begin()));
  return places;
}

std::vector<std::size_t> job_members::look_for_silent(clock::time_point now) {
  note_steps();
  std::vector<std::size_t> silent;
  std::size_t told = 0;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (!places_[i].lives || !places_[i].has_come_in)
      continue;
    if (!comm::has_epoch_ended(folder_, epoch_.number, places_[i].number))
      silent.push_back(i);
    else if (!is_guest(i))
      ++told;
  }
  if (silent.empty() || told == 0)
    return {};
  if (!told_since_)
    told_since_ = now;
  if (now - *told_since_ < patience)
    return {};
  told_since_ = now; // they have time to end
  return silent;
}

} // namespace troupe::apps
