// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/remote/run_pass.hpp>
#include <troupe/apps/launch/guardian.hpp>
#include <troupe/apps/launch/hosts/host_message.hpp>
#include <troupe/apps/launch/job_folders.hpp>
#include <troupe/apps/owned_folder.hpp>
#include <troupe/apps/subcommands.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/quoted_name.hpp>
#include <troupe/comm/tls/job_credentials.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <set>
#include <string>

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe::apps {

namespace {

using namespace std::chrono_literals;
using host_clock = std::chrono::steady_clock;

constexpr auto between_readings = 50ms;
constexpr auto between_beats = 1s;

std::string make_meeting_folder(const std::string& path) {
  remove_ownerless(actors::run_folder(""));
  if (::mkdir(path.c_str(), 0700) != 0)
    throw error(errc::io_failure, "cannot make the folder " + one_line(path)
                                    + ": " + std::strerror(errno));
  return path;
}

void print(const std::string& line) {
  if (std::printf("%s\n", line.c_str()) < 0 || std::fflush(stdout) != 0)
    throw error(errc::io_failure, "nobody reads what the ranks tell");
}

/// The folder in which the ranks of a host meet, kept like that of the launcher
/// on another host: that one's epochs come through the standard input, what the
/// ranks tell goes to the standard output.
///
/// When the input ends, the launcher is gone or needs the folder no more. The
/// guardian removes it if this process is killed.
class host_meeting {
public:
  explicit host_meeting(const std::string& name)
    : folder_(make_meeting_folder(meeting_path(name))), owner_(folder_.path),
      guardian_({}, folder_.path) {}

  void run() {
    print(host_is_ready);
    while (waits_for_input() ? take_epoch() : true) {
      pass_on();
      if (host_clock::now() - last_beat_ < between_beats)
        continue;
      print(host_lives);
      last_beat_ = host_clock::now();
    }
  }

private:
  static bool waits_for_input() {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    return ::poll(&input, 1, static_cast<int>(between_readings.count())) > 0;
  }

  /// False at the end of the input.
  bool take_epoch() {
    int waiting = 0;
    if (::ioctl(STDIN_FILENO, FIONREAD, &waiting) != 0 || waiting == 0)
      return false;
    const auto told = read_host_epoch(STDIN_FILENO);
    for (auto& [member, text] : told.credentials)
      comm::write_credentials(
        comm::credentials_path(folder_.path, told.epoch.number, member),
        comm::parse_credentials(text));
    comm::write_epoch(folder_.path, told.epoch); // last
    return true;
  }

  void pass_on() {
    for (auto& word : comm::all_told(folder_.path))
      if (passed_on_.insert(word).second)
        print(word);
  }

  own_folder folder_;
  owned_folder owner_; // of that folder
  guardian guardian_;
  std::set<std::string> passed_on_;
  host_clock::time_point last_beat_{};
};

int run_launch_host() {
  host_meeting(read_meeting(STDIN_FILENO)).run();
  return 0;
}

} // namespace

void add_launch_host(CLI::App& app, action& chosen) {
  auto& command = *app.add_subcommand(
    "launch-host", "what troupe launch --hosts --elastic starts on each host");
  command.group(""); // the help does not list it
  command.callback([&chosen] { chosen = run_launch_host; });
}

} // namespace troupe::apps
