// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/elastic/rank_rendezvous.hpp>

#include <troupe/actors/remote/run_pass.hpp>
#include <troupe/apps/quiet_thread.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/quoted_name.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace troupe::apps {

namespace {

using namespace std::chrono_literals;

constexpr auto between_looks_at_job = 20ms;
// Time in which this process may have been stopped does not count.
constexpr auto longest_gap_that_counts = 100ms;
// The one that keeps the rendezvous gives others 3 s to end.
constexpr auto patience_with_keeper = 6s;

std::string keeper_file(const std::string& folder) {
  return folder + "/keeper";
}

std::string make_job_folder(const comm::rank_environment& found) {
  const auto in = actors::run_folder("");
  remove_ownerless(in);
  return in + "/" + found.job + ".elastic";
}

bool contains(const std::vector<std::uint64_t>& numbers, std::uint64_t one) {
  return std::ranges::find(numbers, one) != numbers.end();
}

} // namespace

// -- the rendezvous -----------------------------------------------------------

kept_rendezvous::kept_rendezvous(const std::string& folder,
                                 const job_processes& processes,
                                 std::size_t size, std::size_t most)
  : folder_(folder), processes_(processes), size_(size), most_(most) {}

void kept_rendezvous::look(clock::time_point now) {
  if (!is_kept_here() && is_kept_elsewhere())
    return kill_keeper_that_hangs(now);
  if (!is_kept_here() && !(is_first_heir() && take_lock()))
    return;
  try {
    if (!members_)
      begin();
    if (members_)
      keep(now);
  } catch (...) {
    members_.reset();
    lock_ = descriptor{};
    throw;
  }
}

/// Those that live, in the order in which they are to keep it: by rank, then
/// those that are not in the epoch.
std::vector<std::uint64_t> kept_rendezvous::heirs() const {
  auto living = processes_.living();
  const auto last = comm::read_epoch(folder_);
  std::ranges::stable_sort(living, {}, [&](std::uint64_t number) {
    const auto rank = last ? last->rank_of(number) : std::nullopt;
    return rank.value_or(last ? last->members.size() : 0);
  });
  return living;
}

bool kept_rendezvous::is_first_heir() const {
  const auto living = heirs();
  return !living.empty() && living.front() == processes_.own();
}

/// If it looks while another takes the lock, that one tries it again.
bool kept_rendezvous::is_kept_elsewhere() const {
  const descriptor file{
    ::open(keeper_file(folder_).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)};
  return file && ::flock(file.get(), LOCK_SH | LOCK_NB) != 0;
}

/// The epoch has ended for this process, and the one that keeps the rendezvous
/// begins no other: it is stopped. Its lock ends with it.
void kept_rendezvous::kill_keeper_that_hangs(clock::time_point now) {
  const auto since = std::min<clock::duration>(
    now - std::exchange(last_look_, now), longest_gap_that_counts);
  const auto last = comm::read_epoch(folder_);
  const bool waits =
    last && comm::has_epoch_ended(folder_, last->number, processes_.own());
  waited_ = waits ? waited_ + since : clock::duration{};
  if (waited_ < patience_with_keeper)
    return;
  waited_ = {};
  std::uint64_t keeper = 0;
  if (std::ifstream in{keeper_file(folder_)}; !(in >> keeper))
    return;
  auto others = heirs();
  std::erase(others, keeper);
  if (!others.empty() && others.front() == processes_.own()) {
    std::fprintf(stderr, "the rank that keeps the rendezvous hangs: it is "
                         "killed\n");
    processes_.kill(keeper);
  }
}

bool kept_rendezvous::take_lock() {
  descriptor file{::open(keeper_file(folder_).c_str(),
                         O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)};
  if (!file || ::flock(file.get(), LOCK_EX | LOCK_NB) != 0)
    return false;
  const auto text = std::to_string(processes_.own()) + "\n";
  if (::ftruncate(file.get(), 0) != 0
      || ::write(file.get(), text.data(), text.size())
           != static_cast<ssize_t>(text.size()))
    throw error(errc::io_failure, "cannot write " + keeper_file(folder_) + ": "
                                    + std::system_category().message(errno));
  lock_ = std::move(file);
  return true;
}

void kept_rendezvous::begin() {
  if (const auto last = comm::read_epoch(folder_))
    members_.emplace(folder_, *last);
  else if (auto living = processes_.living(); living.size() >= size_) {
    living.resize(std::min(living.size(), most_));
    members_.emplace(folder_, living);
  }
}

void kept_rendezvous::keep(clock::time_point now) {
  if (members_->makes_no_progress())
    return; // the ranks give up
  const auto living = processes_.living();
  bool is_due = false;
  for (std::size_t place = 0; place < members_->places(); ++place)
    if (members_->lives(place) && !contains(living, members_->number_in(place)))
      is_due = members_->remove(place) || is_due;
  if (!comm::is_all_done(folder_)) {
    for (const auto number : living)
      if (!members_->place_of(number) && members_->started() < most_)
        members_->add_number(number, now);
    is_due = members_->let_in() || is_due;
  }
  if (is_due && members_->living() > 0)
    return members_->begin_epoch();
  for (const auto place : members_->look_for_silent(now))
    processes_.kill(members_->number_in(place));
}

// -- the thread ---------------------------------------------------------------

rank_rendezvous::rank_rendezvous(const comm::rank_environment& found)
  : folder_(make_job_folder(found)),
    processes_(folder_.path(), found.rank, found.size),
    kept_(folder_.path(), processes_, found.size, found.most),
    thread_(quiet_thread("troupe-epochs", [this] { serve(); })) {}

rank_rendezvous::~rank_rendezvous() {
  {
    const std::lock_guard guard{mutex_};
    ends_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void rank_rendezvous::serve() {
  std::unique_lock guard{mutex_};
  for (bool has_warned = false; !ends_;) {
    try {
      kept_.look(kept_rendezvous::clock::now());
    } catch (const error& why) {
      if (!std::exchange(has_warned, true))
        std::fprintf(stderr,
                     "warning: the ranks of the job cannot change: %s\n",
                     one_line(why.message()).c_str());
    }
    changed_.wait_for(guard, between_looks_at_job);
  }
}

} // namespace troupe::apps
