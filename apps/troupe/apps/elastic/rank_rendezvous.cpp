// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/elastic/rank_rendezvous.hpp>

#include <troupe/actors/remote/gate.hpp>
#include <troupe/actors/remote/run_pass.hpp>
#include <troupe/apps/elastic/epoch_follower.hpp>
#include <troupe/apps/elastic/epoch_keeper.hpp>
#include <troupe/apps/elastic/other_hosts.hpp>
#include <troupe/apps/quiet_thread.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/fingerprint.hpp>
#include <troupe/base/net/socket_address.hpp>
#include <troupe/base/quoted_name.hpp>
#include <troupe/comm/host_identity.hpp>
#include <troupe/comm/job_epoch.hpp>
#include <troupe/comm/tls/tls_identity.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <set>
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

/// The credentials of rank 0 are those of who keeps the rendezvous.
actors::way_in way_to_rendezvous(const comm::rank_environment& found,
                                 std::size_t rank) {
  actors::way_in way;
  way.host = found.address;
  way.port = found.port;
  way.interface = found.interface;
  way.credentials = std::make_shared<comm::job_credentials>(
    comm::read_credentials(found.credentials, rank));
  return way;
}

/// True if this host has one of the addresses.
bool is_this_host(const comm::rank_environment& found) {
  auto addresses = find_host(found.address, 0);
  if (!found.interface.empty())
    return !common_of(addresses, addresses_of_interface(found.interface, 0))
              .empty();
  return std::ranges::any_of(addresses, [](const auto& at) {
    const descriptor socket{
      ::socket(at.get()->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    return socket && ::bind(socket.get(), at.get(), at.size) == 0;
  });
}

void tell_once(std::set<std::string>& told, const std::string& what) {
  constexpr std::size_t most = 8; // different ones
  if (told.size() < most && told.insert(what).second)
    std::fprintf(stderr, "warning: %s\n", one_line(what).c_str());
}

/// Keeps the rendezvous and lets the other hosts in.
class network_keeper final : public rendezvous_duty {
public:
  network_keeper(const comm::rank_environment& found, const std::string& folder,
                 const job_processes& processes)
    : others_(folder), keeper_(folder, processes,
                               {found.size, found.most, found.address,
                                static_cast<std::uint16_t>(found.port + 1)},
                               &others_),
      gate_(way_to_rendezvous(found, 0),
            {.admit = [this](actors::passage come, std::uint64_t,
                             std::uint16_t) { others_.admit(std::move(come)); },
             .refused =
               [this](const std::string& why) { tell_once(refused_, why); }}) {}

  void keep(clock::time_point now) override { keeper_.keep(now); }
  bool is_missed() const override { return keeper_.is_missed(); }

private:
  other_hosts others_;
  epoch_keeper keeper_;
  std::set<std::string> refused_; // of the gate's thread
  actors::gate gate_;             // uses the members above
};

/// What the process does that has the lock of its host.
std::unique_ptr<rendezvous_duty> make_duty(const comm::rank_environment& found,
                                           const std::string& folder,
                                           const job_processes& processes,
                                           const std::atomic<bool>& ends) {
  if (!is_on_several_hosts(found))
    return std::make_unique<epoch_keeper>(
      folder, processes, epoch_keeper::job{found.size, found.most});
  if (is_this_host(found))
    return std::make_unique<network_keeper>(found, folder, processes);
  return std::make_unique<epoch_follower>(
    folder, processes, name_of_this_host(),
    [found, way = way_to_rendezvous(found, found.rank), &ends] {
      constexpr auto longest_try = 2s;
      return actors::knock(
        way, found.rank, std::chrono::steady_clock::now() + longest_try, [&] {
          if (ends)
            throw error(errc::peer_failure, "this process ends");
        });
    },
    [rank = found.rank](const std::string& why) {
      std::fprintf(stderr,
                   "warning: rank %zu cannot reach the host of the "
                   "rendezvous: %s\n",
                   rank, one_line(why).c_str());
    });
}

/// Throws if what ranks on several hosts need cannot be used.
void check_meeting(const comm::rank_environment& found) {
  if (!is_on_several_hosts(found))
    return;
  (void)is_this_host(found);
  std::error_code ignored;
  if (std::filesystem::is_regular_file(found.credentials, ignored))
    throw error(errc::invalid_argument,
                "TROUPE_CREDENTIALS is " + quoted_name(found.credentials)
                  + ": an elastic job needs the folder that troupe credentials "
                    "makes, because any rank of the first host can take over "
                    "from rank 0");
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
