// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/launch/guardian.hpp>
#include <troupe/apps/launch/hosts/host_message.hpp>
#include <troupe/apps/launch/job_folders.hpp>
#include <troupe/apps/launch/poll_list.hpp>
#include <troupe/apps/launch/rank_process.hpp>
#include <troupe/apps/launch/rank_specification.hpp>
#include <troupe/apps/launch/rank_variables.hpp>
#include <troupe/apps/launch/signal_pipe.hpp>
#include <troupe/apps/owned_folder.hpp>
#include <troupe/apps/subcommands.hpp>
#include <troupe/base/cores.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/files/descriptor.hpp>
#include <troupe/base/quoted_name.hpp>
#include <troupe/comm/tls/job_credentials.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace troupe::apps {

namespace {

/// A rank that a launcher on another host has started here.
///
/// Its input is the connection to that launcher: when it ends, the rank has to
/// end, too. The guardian cleans up if this process is killed.
class hosted_rank {
public:
  explicit hosted_rank(const rank_specification& given);

  /// Waits for the end of the rank. Returns what a shell would report.
  int run();

private:
  using rank_clock = std::chrono::steady_clock;

  std::string write_credentials_of(const rank_specification& given) const;
  void guard(const std::vector<pid_t>& groups);
  void wait();
  void take_input();
  void take_signals();
  void begin_end();
  int milliseconds_left() const;

  std::chrono::milliseconds grace_;
  signal_pipe signals_;
  // Its end comes last: until then this process can be killed.
  std::unique_ptr<guardian> guardian_;
  own_folder secrets_;                  ///< empty path: there are none
  std::optional<owned_folder> owner_{}; ///< of that folder
  std::unique_ptr<rank_process> process_;
  bool has_launcher_ = true;
  std::optional<rank_clock::time_point> killed_at_;
};

hosted_rank::hosted_rank(const rank_specification& given)
  : grace_(given.grace),
    secrets_(given.credentials.empty() ? "" : make_private_folder("rank")) {
  if (!given.credentials.empty())
    owner_.emplace(secrets_.path);
  guard({}); // before there are secrets
  auto own = given.variables;
  if (!given.credentials.empty())
    own.push_back("TROUPE_CREDENTIALS=" + write_credentials_of(given));
  if (!given.meeting.empty())
    own.push_back("TROUPE_RENDEZVOUS=" + meeting_path(given.meeting));
  const descriptor no_input{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
  process_ = std::make_unique<rank_process>(process_start{
    given.command,
    variables_with(own),
    {no_input.get(), STDOUT_FILENO, STDERR_FILENO},
    given.parts == 0 ? std::nullopt
                     : std::optional{part_of_cores(given.part, given.parts)}});
  guard({process_->id()});
}

std::string
hosted_rank::write_credentials_of(const rank_specification& given) const {
  const auto path = secrets_.path + "/credentials";
  comm::write_credentials(path, comm::parse_credentials(given.credentials));
  return path;
}

void hosted_rank::guard(const std::vector<pid_t>& groups) {
  // The old one guards until the new one does.
  auto next = std::make_unique<guardian>(groups, secrets_.path);
  guardian_ = std::move(next);
}

int hosted_rank::run() {
  while (!process_->look())
    wait();
  return process_->end()->code();
}

void hosted_rank::wait() {
  poll_list list;
  list.add(signals_.fd(), POLLIN, [this] { take_signals(); });
  if (has_launcher_)
    list.add(STDIN_FILENO, POLLIN, [this] { take_input(); });
  list.wait(milliseconds_left());
  if (killed_at_ && rank_clock::now() >= *killed_at_) {
    killed_at_.reset();
    process_->send(SIGKILL);
  }
}

/// Each byte is the number of a signal.
void hosted_rank::take_input() {
  std::array<unsigned char, 64> bytes;
  const auto got = ::read(STDIN_FILENO, bytes.data(), bytes.size());
  for (ssize_t i = 0; i < got; ++i)
    process_->send(bytes[static_cast<std::size_t>(i)]);
  if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN))
    begin_end();
}

void hosted_rank::begin_end() {
  has_launcher_ = false;
  process_->send(SIGTERM);
  killed_at_ = rank_clock::now() + grace_;
}

/// Somebody on this host can end the rank, too.
void hosted_rank::take_signals() {
  while (const auto signal = signals_.next())
    if (signal->number != SIGCHLD)
      process_->send(signal->number);
}

int hosted_rank::milliseconds_left() const {
  if (!killed_at_)
    return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(
    *killed_at_ - rank_clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 1 << 30));
}

void enter(const std::string& folder) {
  if (::chdir(folder.c_str()) != 0)
    throw error(errc::io_failure,
                "this host has not the folder " + one_line(folder)
                  + " in which the launch works: " + std::strerror(errno));
}

int run_launch_rank() {
  const auto given = read_specification(STDIN_FILENO);
  enter(given.folder);
  return hosted_rank(given).run();
}

} // namespace

void add_launch_rank(CLI::App& app, action& chosen) {
  auto& command = *app.add_subcommand(
    "launch-rank", "what troupe launch --hosts starts on other hosts");
  command.group(""); // the help does not list it
  command.callback([&chosen] { chosen = run_launch_rank; });
}

} // namespace troupe::apps
