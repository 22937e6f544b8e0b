// SPDX-License-Identifier: Apache-2.0
#include "apps/command_runner.hpp"

#include <support/child_process.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe::test {

namespace {

void redirect(const std::string& file, int flags, int target) {
  const int descriptor = ::open(file.c_str(), flags, 0600);
  ::dup2(descriptor, target);
}

/// Resource limits of the command.
struct limits {
  rlim_t addresses = RLIM_INFINITY;
  rlim_t data = RLIM_INFINITY;
  std::optional<rlim_t> threads{};
  rlim_t cpu_seconds = RLIM_INFINITY; ///< the soft limit
};

void limit(const limits& most) {
  const rlimit addresses{most.addresses, most.addresses};
  ::setrlimit(RLIMIT_AS, &addresses);
  const rlimit data{most.data, most.data};
  ::setrlimit(RLIMIT_DATA, &data);
  const rlimit seconds{most.cpu_seconds, RLIM_INFINITY};
  ::setrlimit(RLIMIT_CPU, &seconds);
  if (most.threads)
    allow_threads(*most.threads);
}

/// Runs the command in a folder that has a link to `data`.
pid_t start(const std::vector<std::string>& arguments,
            const std::filesystem::path& folder, const limits& most) {
  std::vector<char*> argv{const_cast<char*>(TROUPE_COMMAND)};
  for (const std::string& argument : arguments)
    argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  return in_child([&] {
    // As when started from a shell.
    for (int signal : {SIGXFSZ, SIGHUP, SIGINT, SIGQUIT})
      std::signal(signal, SIG_DFL);
    // Opened now, because another user may have no access to its path.
    const int command = ::open(TROUPE_COMMAND, O_RDONLY | O_CLOEXEC);
    redirect("/dev/null", O_RDONLY, STDIN_FILENO);
    redirect(folder / "out", O_WRONLY | O_CREAT, STDOUT_FILENO);
    redirect(folder / "err", O_WRONLY | O_CREAT, STDERR_FILENO);
    std::filesystem::current_path(folder);
    limit(most);
    ::fexecve(command, argv.data(), environ);
    ::_exit(127);
  });
}

bool ended(pid_t child, int& status, int flags) {
  return ::waitpid(child, &status, flags) == child;
}

command_result
run(const std::vector<std::string>& arguments, const limits& most,
    const std::function<bool(pid_t, const std::string&)>& while_running) {
  const temporary_folder folder;
  const std::string out = folder / "out", err = folder / "err";
  write_bytes(out, "");
  write_bytes(err, "");
  std::filesystem::create_directory_symlink(TROUPE_DATA, folder / "data");
  // The process may become another user.
  std::filesystem::permissions(folder.path(),
                               std::filesystem::perms::others_read
                                 | std::filesystem::perms::others_exec,
                               std::filesystem::perm_options::add);
  const pid_t child = start(arguments, folder.path(), most);
  int status = 0;
  bool over = false;
  for (bool done = !while_running; !done && !over;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    over = ended(child, status, WNOHANG);
    done = over || while_running(child, read_bytes(err));
  }
  if (!over)
    ended(child, status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          read_bytes(out), read_bytes(err)};
}

} // namespace

command_result run_troupe(
  const std::vector<std::string>& arguments,
  const std::function<bool(pid_t, const std::string&)>& while_running) {
  return run(arguments, {}, while_running);
}

command_result run_troupe_within(std::size_t kib,
                                 const std::vector<std::string>& arguments) {
  return run(arguments, {.addresses = kib * 1024}, {});
}

command_result run_troupe_with_data(std::size_t kib,
                                    const std::vector<std::string>& arguments) {
  return run(arguments, {.data = kib * 1024}, {});
}

command_result
run_troupe_with_threads(std::size_t threads,
                        const std::vector<std::string>& arguments) {
  return run(arguments, {.threads = threads}, {});
}

command_result run_troupe_for(std::size_t seconds,
                              const std::vector<std::string>& arguments) {
  return run(arguments, {.cpu_seconds = seconds}, {});
}

command_result run_in(const temporary_folder& folder, const std::string& line) {
  const temporary_folder streams;
  const std::string script = streams / "run.sh", out = streams / "out",
                    err = streams / "err";
  write_bytes(script, "troupe() { " TROUPE_COMMAND " \"$@\"; }; cd "
                        + folder.path().string() + " && " + line + "\n");
  const int status =
    std::system(("sh " + script + " > " + out + " 2> " + err).c_str());
  return {WEXITSTATUS(status), read_bytes(out), read_bytes(err)};
}

bool catches(pid_t process, int signal) {
  const auto status =
    read_bytes("/proc/" + std::to_string(process) + "/status");
  const auto mask = status.find("SigCgt:"); // bit i - 1 for signal i
  return status.starts_with("Name:\ttroupe\n") && mask != status.npos
         && (std::stoull(status.substr(mask + 7), nullptr, 16) >> (signal - 1)
             & 1)
              != 0;
}

double cpu_seconds(pid_t process) {
  clockid_t clock = 0;
  timespec used{};
  if (::clock_getcpuclockid(process, &clock) != 0
      || ::clock_gettime(clock, &used) != 0)
    return 0;
  return static_cast<double>(used.tv_sec)
         + 1e-9 * static_cast<double>(used.tv_nsec);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    lines.push_back(line);
  return lines;
}

bool fails_with(const command_result& result, int code,
                const std::vector<std::string>& parts) {
  const auto lines = lines_of(result.err);
  bool right = result.code == code && result.out.empty() && !lines.empty()
               && lines.back().starts_with("troupe: ");
  for (const std::string& part : parts)
    right = right && contains(lines.back(), part);
  if (!right)
    MESSAGE("exit ", result.code, " out: ", result.out, " err: ", result.err);
  return right;
}

words operator+(words a, const words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<pid_t> ranks_of(pid_t launch) {
  std::vector<pid_t> found;
  for (auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream stat{entry.path() / "stat"};
    std::string text;
    pid_t parent = 0;
    if (!std::getline(stat, text)
        || std::sscanf(text.c_str() + text.rfind(')'), ") %*c %d", &parent) != 1
        || parent != launch)
      continue;
    std::ifstream command{entry.path() / "cmdline"};
    std::string program, subcommand;
    std::getline(command, program, '\0');
    std::getline(command, subcommand, '\0');
    if (subcommand == "train")
      found.push_back(std::stoi(entry.path().filename().string()));
  }
  return found;
}

pid_t rank_in_place(pid_t launch, int place) {
  const auto wanted = "TROUPE_RANK=" + std::to_string(place);
  for (auto rank : ranks_of(launch)) {
    std::ifstream variables{"/proc/" + std::to_string(rank) + "/environ"};
    for (std::string v; std::getline(variables, v, '\0');)
      if (v == wanted)
        return rank;
  }
  return 0;
}

std::vector<std::string> metrics_before(const std::string& key,
                                        const std::filesystem::path& file) {
  auto lines = lines_of(read_bytes(file));
  for (auto& line : lines)
    line.erase(line.find("\"" + key + "\""));
  return lines;
}

} // namespace troupe::test
