// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/rank_part.hpp>

#include <troupe/actors/configure.hpp>
#include <troupe/actors/remote/run_pass.hpp>
#include <troupe/apps/elastic/rank_rendezvous.hpp>
#include <troupe/apps/owned_folder.hpp>
#include <troupe/apps/progress.hpp>
#include <troupe/apps/training/placing.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/quoted_name.hpp>
#include <troupe/comm/engine/join.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <system_error>
#include <thread>
#include <utility>

namespace troupe::apps {

namespace {

// Ranks can start at different times, and rank 0 may read more than others.
constexpr int join_timeout_ms = 120'000;
// Between two epochs of an elastic job.
constexpr std::chrono::seconds longest_gap{120};
// After which a line says what the process waits for.
constexpr std::chrono::seconds patience{5};

/// Makes the folder unless it exists.
bool make_own_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0)
    return true;
  if (errno != EEXIST)
    throw error(errc::io_failure, "cannot make " + path
                                    + ", where the ranks of the job meet: "
                                    + std::system_category().message(errno));
  return false;
}

/// "mpirun started 2 of 4 ranks on this host".
std::string text_of_hosts(const comm::rank_environment& found) {
  return found.launcher + " started " + std::to_string(found.local_size)
         + " of " + std::to_string(found.size) + " ranks on this host";
}

/// MPI, if its own launcher has started the ranks, can use the cluster's
/// network. Other launchers set some of its variables, too.
group_engine engine_between_hosts(group_engine wanted,
                                  const comm::rank_environment& found) {
  if (wanted != group_engine::automatic)
    return wanted;
  const auto is_of_mpi =
    found.launcher == "mpirun" || found.launcher == "mpiexec";
  return is_of_mpi && comm::mpi_support().is_usable ? group_engine::mpi
                                                    : group_engine::gloo;
}

std::int64_t to_signed(std::size_t n) {
  return static_cast<std::int64_t>(n);
}

} // namespace

rank_part::rank_part() : rank_part(comm::find_rank()) {}

rank_part::rank_part(std::optional<comm::rank_environment> found)
  : found_(std::move(found)) {
  if (found_ && found_->most > 0) {
    rendezvous_ = std::make_unique<rank_rendezvous>(*found_);
    found_->rendezvous = rendezvous_->folder();
    found_->member = rendezvous_->member();
  } else if (is_elastic()) {
    holds_folder_ = hold_folder(found_->rendezvous);
  }
  if (is_elastic()) {
    enter_epoch(0, {});
    first_epoch_ = epoch_;
  }
}

rank_part::~rank_part() {
  if (made_folder_)
    ::rmdir(folder_.c_str()); // fails while another rank has a file there
}

std::string rank_part::job() const {
  if (!found_)
    return "";
  // Hydra's name of the job differs from host to host. All ranks know where
  // rank 0 is, and no other job can be there.
  if (found_->launcher == "mpiexec" && is_on_several_hosts())
    return "mpiexec at " + found_->address + ":" + std::to_string(found_->port);
  return found_->job;
}

void rank_part::require_epoch() const {
  if (!is_elastic())
    return;
  const auto now = comm::read_epoch(found_->rendezvous);
  // The others cannot do a step without rank 0, or meet: it lets them in.
  if (!now || now->number != epoch_
      || (!is_first()
          && comm::has_epoch_ended(found_->rendezvous, epoch_,
                                   now->members.front())))
    throw error(errc::peer_failure, "a rank of the job has ended or begun");
}

void rank_part::tell_step_done() {
  if (is_first() && !std::exchange(has_told_step_, true))
    comm::tell_step_done(found_->rendezvous, epoch_);
}

void rank_part::tell_all_done() {
  if (is_elastic())
    comm::tell_all_done(found_->rendezvous);
}

void rank_part::enter_next_epoch(const std::function<bool()>& stops) {
  comm::tell_epoch_ended(found_->rendezvous, epoch_, *found_->member);
  enter_epoch(epoch_, stops);
}

void rank_part::enter_epoch(std::uint64_t after,
                            const std::function<bool()>& stops) {
  const auto begin = std::chrono::steady_clock::now();
  bool has_told_user = !rendezvous_; // the launcher knows what it waits for
  for (bool has_told = after > 0;;) {
    const auto now = comm::read_epoch(found_->rendezvous);
    const auto rank =
      now && now->number > after ? now->rank_of(*found_->member) : std::nullopt;
    const bool has_too_few = rank && now->members.size() < found_->least;
    if (rank && !has_too_few)
      return take_place(*now, *rank);
    if (after == 0 && comm::is_all_done(found_->rendezvous))
      throw error(errc::peer_failure,
                  "the job has done all its steps: no rank can join it");
    // A rank that joins a running job is let in once it says that it is there.
    if (now && !std::exchange(has_told, true))
      comm::tell_epoch_ended(found_->rendezvous, 0, *found_->member);
    if (stops && stops())
      throw error(errc::cancelled, "stopped while waiting for other ranks");
    const auto waited = std::chrono::steady_clock::now() - begin;
    if (waited > patience && !std::exchange(has_told_user, true))
      progress{}.note(text_of_gap(has_too_few));
    if (waited > longest_gap)
      throw error(errc::peer_failure, text_without_epoch(has_too_few));
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
  }
}

/// What the process waits for if there is no epoch to take part in.
std::string rank_part::text_of_gap(bool has_too_few) const {
  return std::string{"waits for "}
         + (has_too_few || epoch_ > 0 ? "more ranks of the job"
                                      : "the other ranks of the job, or for a "
                                        "place among them")
         + limits();
}

/// Why there is no epoch to take part in.
std::string rank_part::text_without_epoch(bool has_too_few) const {
  if (!rendezvous_)
    return "the launcher of the job names no ranks to go on with";
  return (has_too_few || epoch_ > 0 ? "too few ranks of the job are left"
                                    : "the job takes no further rank, or not "
                                      "all of its ranks have been started")
         + limits();
}

/// Of ranks that keep the rendezvous themselves.
std::string rank_part::limits() const {
  return " (TROUPE_ELASTIC is " + std::to_string(found_->least) + ":"
         + std::to_string(found_->most) + ")";
}

void rank_part::take_place(const comm::job_epoch& epoch, std::size_t rank) {
  epoch_ = epoch.number;
  found_->rank = rank;
  found_->size = epoch.members.size();
  found_->local_rank = found_->local_size = 0;
  for (std::size_t r = 0; r < found_->size; ++r)
    if (epoch.host_of(r) == epoch.host_of(rank)) {
      ++found_->local_size;
      found_->local_rank += r < rank;
    }
  found_->address = epoch.address;
  found_->port = epoch.port;
  found_->credentials =
    comm::credentials_path(found_->rendezvous, epoch_, *found_->member);
  are_all_new_ = epoch.has_only_newcomers;
  has_told_step_ = false;
  folder_.clear();
}

int rank_part::default_threads() const {
  if (!has_others() && !is_elastic())
    return 0;
  const auto allowed = worker_count(0);
  const auto cores =
    static_cast<std::size_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  const auto is_divided = allowed * found_->local_size <= cores;
  return static_cast<int>(
    is_divided ? allowed
               : std::max<std::size_t>(1, allowed / found_->local_size));
}

void rank_part::use_interface(const std::string& name) {
  if (found_ && !name.empty())
    found_->interface = name;
}

const std::string& rank_part::meeting_folder() {
  if (!folder_.empty())
    return folder_;
  folder_ = found_->rendezvous;
  if (is_elastic()) {
    folder_ += "/epoch-" + std::to_string(epoch_);
    make_own_folder(folder_); // the launcher removes it
  } else if (folder_.empty()) {
    folder_ = actors::run_folder("") + "/" + found_->job;
    made_folder_ = make_own_folder(folder_) || is_first();
  }
  return folder_;
}

/// All ranks are on this host: they find each other in a folder.
void rank_part::meet_on_host(node_options& nodes) {
  nodes.pass_folder = meeting_folder();
}

const comm::rank_environment& rank_part::meeting_on_network() const {
  for (const auto& [name, value] :
       {std::pair{"TROUPE_ADDRESS (HOST:PORT of rank 0)", found_->address},
        std::pair{"TROUPE_CREDENTIALS (see troupe credentials --help)",
                  found_->credentials}})
    if (value.empty())
      throw error(errc::invalid_argument, text_of_hosts(*found_)
                                            + ": a run on several hosts needs "
                                            + name + ", which is not set");
  return *found_;
}

void rank_part::meet_over_network(node_options& nodes,
                                  const rank_options& given) const {
  meeting_on_network();
  nodes.host = found_->address;
  nodes.port = found_->port;
  nodes.engine = engine_between_hosts(nodes.engine, *found_);
  nodes.network = host_network{found_->credentials, !given.data_network.empty(),
                               found_->interface};
}

void rank_part::spread(executor_options& options, const rank_options& given) {
  if (!has_others())
    return;
  auto& nodes = options.nodes.emplace();
  nodes.process = rank();
  nodes.engine = parse_group_engine(given.engine);
  if (is_on_several_hosts())
    meet_over_network(nodes, given);
  else
    meet_on_host(nodes);
  nodes.timeout_ms = join_timeout_ms;
  nodes.noticed = [own_rank = rank()](std::size_t of, const std::string& what) {
    const std::size_t reporter = of == 0 ? 1 : 0; // one line is enough
    if (own_rank == reporter)
      std::fprintf(stderr, "%s\n", one_line(what).c_str());
  };
  options.hooks.device_instances.clear();
  nodes.process_of_device = spread_devices(options, size());
}

std::string rank_part::text_of_waiting() const {
  auto text = "rank " + std::to_string(rank()) + " waits for the other ranks";
  if (is_on_several_hosts())
    text += "; rank 0 is to be at " + found_->address + ", port "
            + std::to_string(found_->port);
  return text;
}

batch_share rank_part::share_of(std::size_t own_devices) const {
  return {to_signed(rank() * own_devices), to_signed(own_devices),
          to_signed(size() * own_devices)};
}

} // namespace troupe::apps
