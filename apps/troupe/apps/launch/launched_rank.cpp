// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/launch/launched_rank.hpp>

#include <troupe/apps/launch/hosts/remote_shell.hpp>
#include <troupe/apps/launch/rank_specification.hpp>
#include <troupe/apps/launch/rank_variables.hpp>
#include <troupe/apps/launch/signal_pipe.hpp>
#include <troupe/base/cores.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/files/descriptor.hpp>
#include <troupe/base/fingerprint.hpp>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace troupe::apps {

/// What a rank is started with.
struct rank_plan {
  std::size_t rank = 0, places = 1;
  std::string log;
  rank_log::start log_from = rank_log::start::empty;
  process_start start{}; ///< without the streams
  descriptor input{};
  rank_pipe out{}, err{};
  // Of a rank of another host:
  std::string host{};
  descriptor tell{}; ///< writes to `input`
  std::string specification{};
};

namespace {

/// With which ssh ends if there is no connection, or none any more.
constexpr int exit_code_of_ssh = 255;

// -- this host ----------------------------------------------------------------

/// Rank 0 reads this process's input, unless that is a terminal: to read from
/// it would stop a process that is not in the terminal's foreground group.
descriptor input_of(std::size_t rank) {
  const bool is_own = rank == 0 && ::isatty(STDIN_FILENO) == 0;
  return descriptor{is_own ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                           : ::open("/dev/null", O_RDONLY | O_CLOEXEC)};
}

std::optional<cpu_set_t> cores_of(std::size_t rank,
                                  const job_options& options) {
  if (!options.binds)
    return std::nullopt;
  return part_of_cores(rank, options.places());
}

// -- another host -------------------------------------------------------------

std::string own_folder_path() {
  std::error_code failure;
  const auto path = std::filesystem::current_path(failure);
  if (failure)
    throw error(errc::io_failure,
                "no folder in which ranks could work: " + failure.message());
  return path;
}

rank_specification specification_of(std::size_t rank,
                                    const job_options& options,
                                    const job_folders& folders,
                                    const std::string& credentials,
                                    std::optional<std::uint64_t> member,
                                    const std::string& meeting) {
  const auto& remote = *options.remote;
  const auto place = place_of(rank, remote.hosts);
  const auto local_ranks = remote.hosts[place.host].ranks;
  rank_specification all{
    .command = options.command,
    .variables = variables_of({.launcher = {},
                               .rank = rank,
                               .size = std::max(options.ranks, rank + 1),
                               .local_rank = place.local_rank,
                               .local_size = local_ranks,
                               .job = folders.job(),
                               .rendezvous = {},
                               .member = member}),
    .folder = own_folder_path(),
    .meeting = meeting,
    .credentials = credentials,
    .grace = options.grace,
    .part = place.local_rank,
    .parts = options.binds ? local_ranks : 0};
  if (!remote.interface.empty())
    all.variables.push_back("TROUPE_INTERFACE=" + remote.interface);
  if (remote.hosts.size() > 1 && !member) // else epochs say it
    all.variables.push_back(
      "TROUPE_ADDRESS="
      + address_of(remote.hosts[0], port_of_run(remote, folders.job())));
  return all;
}

// -- output -------------------------------------------------------------------

/// How the standard output of a rank is passed on. That of rank 0 can be read
/// by a program.
passing passing_of_output(const rank_plan& plan) {
  if (plan.places == 1)
    return passing::at_once;
  return plan.rank == 0 ? passing::lines : passing::prefixed_lines;
}

passing passing_of_errors(const rank_plan& plan) {
  return plan.places == 1 ? passing::at_once : passing::prefixed_lines;
}

std::string prefix_of(const rank_plan& plan) {
  return std::to_string(plan.rank) + "| ";
}

process_start start_of(rank_plan& plan) {
  never_wait_at(plan.out.read);
  never_wait_at(plan.err.read);
  plan.start.streams = {plan.input.get(), plan.out.write.get(),
                        plan.err.write.get()};
  return std::move(plan.start);
}

} // namespace

// At its end, the plan closes the ends of the pipes that the rank uses.
launched_rank::launched_rank(rank_plan plan, own_streams& to)
  : log(std::move(plan.log), plan.log_from), process(start_of(plan)),
    out(std::move(plan.out.read), passing_of_output(plan), prefix_of(plan),
        to.out, log),
    err(std::move(plan.err.read), passing_of_errors(plan), prefix_of(plan),
        to.err, log),
    host(std::move(plan.host)) {
  if (!plan.tell)
    return;
  never_wait_at(plan.tell);
  input.emplace(std::move(plan.tell), plan.specification);
}

void launched_rank::send(int signal) {
  if (input && signal != SIGKILL)
    input->send(signal);
  else
    process.send(signal);
}

void launched_rank::kill() {
  if (!std::exchange(was_told_to_die, true) && input)
    input->send(SIGKILL);
  else
    process.send(SIGKILL);
}

bool launched_rank::was_killed() const {
  const auto& end = *process.end();
  return end.killed
         || (input && end.number > 128 && ::sigabbrev_np(end.number - 128));
}

bool launched_rank::has_lost_host() const {
  const auto& end = *process.end();
  return input && !end.killed && end.number == exit_code_of_ssh;
}

bool launched_rank::is_on_its_way() {
  if (!input || is_logged_in || process.end())
    return false;
  is_logged_in = input->was_read();
  return !is_logged_in;
}

const std::optional<process_end>& launched_rank::look() {
  if (process.end() || !process.look() || !input)
    return process.end();
  is_logged_in = is_logged_in || input->was_read();
  input->close();
  return process.end();
}

// A rank whose host was not reached was not started.
int launched_rank::exit_code() const {
  return has_lost_host() && !is_logged_in ? 1 : process.end()->code();
}

std::string launched_rank::end_text(std::size_t rank) const {
  const auto& end = *process.end();
  const auto text = "rank " + std::to_string(rank);
  if (host.empty())
    return text + " " + end.text();
  const bool can_be_ssh = has_lost_host();
  if (can_be_ssh && !is_logged_in)
    return text + ": ssh could not reach host " + host + " (exit code 255)";
  const auto how = text + " on host " + host + " " + end.text();
  if (can_be_ssh)
    return how + ", or ssh has lost the host";
  if (!end.killed && end.number > 128 && ::sigabbrev_np(end.number - 128))
    return how + " (" + signal_name(end.number - 128) + ")";
  return how;
}

/// Ports that no client is given by the system (ip_local_port_range), and that
/// few servers use.
std::uint16_t port_of_run(const remote_start& remote, const std::string& run) {
  constexpr std::uint64_t first = 20000, last = 32767;
  if (remote.port)
    return *remote.port;
  fingerprint hash;
  hash.add(run);
  return static_cast<std::uint16_t>(first + hash.value() % (last - first + 1));
}

std::string launched_rank::last_words() const {
  return err.last_line().empty() ? "" : ": " + err.last_line();
}

void launched_rank::clear_away() {
  process.send(SIGKILL);
  err.finish();
  out.finish();
}

std::unique_ptr<launched_rank>
start_here(std::size_t rank, const job_options& options,
           const job_folders& folders, own_streams& to,
           std::optional<std::uint64_t> member, rank_log::start log_from) {
  rank_plan plan{rank, options.places(), folders.log_of(rank), log_from};
  const auto size = std::max(options.ranks, rank + 1); // it may be added
  plan.start = {options.command,
                variables_with(variables_of({.launcher = {},
                                             .rank = rank,
                                             .size = size,
                                             .local_rank = rank,
                                             .local_size = size,
                                             .job = folders.job(),
                                             .rendezvous = folders.rendezvous(),
                                             .member = member})),
                {},
                cores_of(rank, options)};
  plan.input = input_of(rank);
  return std::make_unique<launched_rank>(std::move(plan), to);
}

std::unique_ptr<launched_rank>
start_on_host(std::size_t rank, const job_options& options,
              const job_folders& folders, own_streams& to,
              const std::string& credentials,
              std::optional<std::uint64_t> member, const std::string& meeting,
              rank_log::start log_from) {
  const auto& remote = *options.remote;
  const auto& host = remote.hosts[place_of(rank, remote.hosts).host];
  rank_plan plan{rank, options.places(), folders.log_of(rank), log_from};
  plan.start = {remote_words(remote, host, {"launch-rank"}), variables_with()};
  rank_pipe input;
  plan.input = std::move(input.read);
  plan.tell = std::move(input.write);
  plan.host = host.name;
  plan.specification = to_bytes(
    specification_of(rank, options, folders, credentials, member, meeting));
  return std::make_unique<launched_rank>(std::move(plan), to);
}

} // namespace troupe::apps
