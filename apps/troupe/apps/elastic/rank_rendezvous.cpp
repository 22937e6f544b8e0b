// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/elastic/rank_rendezvous.hpp>

#include <troupe/actors/remote/run_pass.hpp>
#include <troupe/apps/elastic/epoch_keeper.hpp>
#include <troupe/apps/elastic/host_gates.hpp>
#include <troupe/apps/elastic/moving_rendezvous.hpp>
#include <troupe/apps/quiet_thread.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/fingerprint.hpp>
#include <troupe/base/quoted_name.hpp>
#include <troupe/comm/host_identity.hpp>
#include <troupe/comm/job_epoch.hpp>
#include <troupe/comm/tls/tls_identity.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
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

bool is_on_several_hosts(const comm::rank_environment& found) {
  return found.local_size != found.size;
}

std::string name_of_this_host() {
  fingerprint print;
  print.add(std::to_string(comm::host_identity()));
  return print.text();
}

std::string make_job_folder(const comm::rank_environment& found) {
  const auto in = actors::run_folder("");
  remove_ownerless(in);
  // Hosts can share the folder above: containers do.
  const auto of_host =
    is_on_several_hosts(found) ? "." + name_of_this_host() : "";
  return in + "/" + found.job + of_host + ".elastic";
}

} // namespace

// -- the rendezvous -----------------------------------------------------------

kept_rendezvous::kept_rendezvous(const std::string& folder,
                                 const job_processes& processes,
                                 begin_duty begin)
  : folder_(folder), processes_(processes), begin_(std::move(begin)) {}

void kept_rendezvous::look(clock::time_point now) {
  if (!is_kept_here() && is_kept_elsewhere())
    return kill_keeper_that_hangs(now);
  if (!is_kept_here() && !(is_first_heir() && take_lock()))
    return;
  try {
    ::futimens(lock_.get(), nullptr); // a sign of life
    if (!duty_)
      duty_ = begin_();
    duty_->keep(now);
  } catch (...) {
    duty_.reset();
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

/// The epoch has ended for this process, no other one begins, and who has the
/// lock gives no sign of life: it is stopped. Its lock ends with it.
void kept_rendezvous::kill_keeper_that_hangs(clock::time_point now) {
  const auto since = std::min<clock::duration>(
    now - std::exchange(last_look_, now), longest_gap_that_counts);
  std::error_code ignored;
  const auto sign =
    std::filesystem::last_write_time(keeper_file(folder_), ignored);
  silence_ = std::exchange(last_sign_, sign) == sign ? silence_ + since
                                                     : clock::duration{};
  if (silence_ < patience_with_keeper)
    return;
  const auto last = comm::read_epoch(folder_);
  if (!last || !comm::has_epoch_ended(folder_, last->number, processes_.own()))
    return;
  silence_ = {};
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

// -- several hosts ------------------------------------------------------------

namespace {

/// What a process does that has the lock of its host, among several.
class duty_among_hosts final : public rendezvous_duty {
public:
  duty_among_hosts(const comm::rank_environment& found,
                   const std::string& folder, const job_processes& processes,
                   const std::atomic<bool>& ends)
    : gates_(found, ends),
      rendezvous_(folder, processes,
                  {{found.size, found.most, name_of_this_host(), found.address,
                    static_cast<std::uint16_t>(found.port + 1)},
                   is_first_host(found)},
                  gates_, [rank = found.rank](const std::string& what) {
                    std::fprintf(stderr, "warning: rank %zu %s\n", rank,
                                 one_line(what).c_str());
                  }) {}

  void keep(clock::time_point now) override { rendezvous_.keep(now); }
  bool is_missed() const override { return rendezvous_.is_missed(); }

private:
  host_gates gates_;
  moving_rendezvous rendezvous_; // uses `gates_`
};

/// What the process does that has the lock of its host.
std::unique_ptr<rendezvous_duty> make_duty(const comm::rank_environment& found,
                                           const std::string& folder,
                                           const job_processes& processes,
                                           const std::atomic<bool>& ends) {
  if (is_on_several_hosts(found))
    return std::make_unique<duty_among_hosts>(found, folder, processes, ends);
  return std::make_unique<epoch_keeper>(
    folder, processes, epoch_keeper::job{found.size, found.most});
}

/// Throws if what ranks on several hosts need cannot be used.
void check_meeting(const comm::rank_environment& found) {
  if (!is_on_several_hosts(found))
    return;
  (void)is_first_host(found);
  std::error_code ignored;
  if (std::filesystem::is_regular_file(found.credentials, ignored))
    throw error(errc::invalid_argument,
                "TROUPE_CREDENTIALS is " + quoted_name(found.credentials)
                  + ": an elastic job needs the folder that troupe credentials "
                    "makes, because any rank can take over from rank 0");
  comm::tls_identity{comm::read_credentials(found.credentials, found.rank)};
  comm::tls_identity{comm::read_credentials(found.credentials, 0)};
}

std::uint64_t wanted_number(const comm::rank_environment& found) {
  return is_on_several_hosts(found) ? draw_number(found.rank) : found.rank;
}

} // namespace

// -- the thread ---------------------------------------------------------------

rank_rendezvous::rank_rendezvous(const comm::rank_environment& found)
  : folder_((check_meeting(found), make_job_folder(found))),
    processes_(folder_.path(), wanted_number(found), found.size),
    kept_(folder_.path(), processes_,
          [this, found] {
            return make_duty(found, folder_.path(), processes_, ends_);
          }),
    thread_(quiet_thread("troupe-epochs", [this] { serve(); })) {}

rank_rendezvous::~rank_rendezvous() {
  ends_ = true;
  thread_.join();
}

bool rank_rendezvous::is_to_stay(
  std::chrono::steady_clock::time_point end) const {
  constexpr auto longest_stay = 10s;
  return kept_.is_missed()
         && std::chrono::steady_clock::now() < end + longest_stay;
}

void rank_rendezvous::serve() {
  auto end = std::chrono::steady_clock::now();
  for (bool has_warned = false; !ends_ || is_to_stay(end);) {
    if (!ends_)
      end = std::chrono::steady_clock::now();
    try {
      kept_.look(kept_rendezvous::clock::now());
    } catch (const error& why) {
      if (!ends_ && !std::exchange(has_warned, true))
        std::fprintf(stderr,
                     "warning: the ranks of the job cannot change: %s\n",
                     one_line(why.message()).c_str());
    }
    std::this_thread::sleep_for(between_looks_at_job);
  }
}

} // namespace troupe::apps
