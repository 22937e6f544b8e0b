// SPDX-License-Identifier: Apache-2.0
//
// How jobs of `troupe launch --hosts` end: output, failures, signals, processes
// and secrets left behind.
#include "apps/launch/launch_runner.hpp"
#include "apps/launch/played_ssh.hpp"

#include <support/files.hpp>
#include <troupe/comm/tls/job_credentials.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include <unistd.h>

using namespace troupe::test;

TEST_SUITE("apps.launch_hosts_end") {

namespace {

const std::string for_ever = "while :; do sleep 0.02; done";

/// Sends a signal to the launcher once `ranks` ranks have printed "ready".
while_launched send_if_ready(int signal, std::size_t ranks) {
  return [signal, ranks](pid_t launcher, const std::string& err) {
    return count_of(err, "ready") == ranks && ::kill(launcher, signal) == 0;
  };
}

/// A script that notes the numbers of the rank's two processes and of the
/// process that started it, and the file of its credentials.
std::string noting(const temporary_folder& folder) {
  const auto note = (folder / "note.$TROUPE_RANK").string();
  return "sleep 60 & echo $! $$ $PPID $TROUPE_CREDENTIALS > " + note
         + "; echo ready >&2; ";
}

words noted_by(const temporary_folder& folder, int rank) {
  std::istringstream in(read_bytes(folder / ("note." + std::to_string(rank))));
  return {std::istream_iterator<std::string>(in), {}};
}

/// Checks that the noted processes end and that the credentials, with their
/// folder, go.
void check_nothing_is_left(const temporary_folder& folder, int ranks) {
  for (int rank = 0; rank < ranks; ++rank) {
    CAPTURE(rank);
    const auto noted = noted_by(folder, rank);
    REQUIRE(noted.size() == 4);
    for (std::size_t i = 0; i < 3; ++i) {
      INFO("process " << i << ": " << noted[i] << " "
                      << read_if_there("/proc/" + noted[i] + "/stat"));
      CHECK(comes_true([&] { return has_ended(noted[i]); }));
    }
    const auto secrets = std::filesystem::path(noted[3]).parent_path();
    REQUIRE(secrets.string().starts_with("/tmp/troupe-"));
    CHECK(comes_true([&] { return !std::filesystem::exists(secrets); }));
  }
}

/// The command lines and variables of all processes.
std::string text_of_all_processes() {
  std::string text;
  for (auto& entry : std::filesystem::directory_iterator("/proc"))
    for (const auto* part : {"cmdline", "environ"})
      text += read_if_there(entry.path() / part) + '\n';
  return text;
}

/// All files in a folder, one after the other.
std::string text_of_all_files(const std::filesystem::path& folder) {
  std::string text;
  for (auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      text += read_bytes(entry.path());
  return text;
}

/// In the order in which they were started.
words children_of(const std::string& process) {
  std::ifstream in("/proc/" + process + "/task/" + process + "/children");
  return {std::istream_iterator<std::string>(in), {}};
}

/// The lines of credentials that nobody else may know.
words secret_lines(const std::string& credentials) {
  words found;
  bool is_secret = false;
  for (const auto& line : lines_of(credentials)) {
    if (line.starts_with("-----"))
      is_secret = !contains(line, "CERTIFICATE");
    else if (is_secret && line.size() > 16)
      found.push_back(line);
  }
  return found;
}

} // namespace

TEST_CASE("output of other hosts has the prefixes of its ranks") {
  const temporary_folder folder;
  const auto result = played_ssh().launch("a,b:2", "echo out; echo err >&2",
                                          {"--logs", folder / "logs"});
  CHECK(result.code == 0);
  auto out = lines_of(result.out), err = lines_of(result.err);
  std::ranges::sort(out);
  std::ranges::sort(err);
  CHECK(out == words{"1| out", "2| out", "out"});
  CHECK(err == words{"0| err", "1| err", "2| err"});
  CHECK(contains(read_bytes(folder / "logs/rank-2.log"), "out\n"));
}

TEST_CASE("a launch has the exit code of the first rank to fail on any host") {
  const temporary_folder folder;
  const auto result =
    played_ssh().launch("a,b:2", in_rank(2, "echo why >&2; exit 3", for_ever),
                        {"--logs", folder / "logs", "--grace", "0.05"});
  CHECK(result.code == 3);
  CHECK(last_error(result)
        == "troupe: rank 2 on host b failed with exit code 3 (output: "
             + (folder / "logs/rank-2.log").string() + "): why");
}

TEST_CASE("a rank that a signal killed on another host is told of with it") {
  const temporary_folder folder;
  const auto result =
    played_ssh().launch("a", "kill -SEGV $$", {"--logs", folder / "logs"});
  CHECK(result.code == 128 + SIGSEGV);
  CHECK(contains(last_error(result), "rank 0 on host a failed with exit code "
                                     "139 (SIGSEGV) (output: "));
}

TEST_CASE("a command that another host does not have is named") {
  const temporary_folder folder;
  const auto result = played_ssh().launch_command("a", {"troupe-no-such"},
                                                  {"--logs", folder / "logs"});
  CHECK(result.code == 1);
  CHECK(lines_of(result.err).size() == 2);
  CHECK(last_error(result).ends_with(
    "): troupe: cannot start 'troupe-no-such': No such file or directory"));
}

TEST_CASE("a host that cannot be reached is named") {
  const temporary_folder folder;
  const played_ssh ssh("if [ $host = b ]; then printf 'ssh: connect to host b: "
                       "No route\\r\\n' >&2; exit 255; fi");
  const auto result = ssh.launch(
    "a:2,b", for_ever, {"--logs", folder / "logs", "--grace", "0.05"});
  CHECK(result.code == 1);
  CHECK(last_error(result)
        == "troupe: rank 2: ssh could not reach host b (exit code 255) "
           "(output: "
             + (folder / "logs/rank-2.log").string()
             + "): ssh: connect to host b: No route");
}

TEST_CASE("a host that was lost is told of as one that was reached") {
  const temporary_folder folder;
  const auto result =
    played_ssh().launch("a", "exit 255", {"--logs", folder / "logs"});
  CHECK(result.code == 255);
  CHECK(contains(last_error(result), "rank 0 on host a failed with exit code "
                                     "255, or ssh has lost the host"));
}

TEST_CASE("a job that is to end starts no more ranks") {
  const temporary_folder folder;
  const std::string logins = folder / "logins", go = folder / "go";
  const played_ssh ssh("echo >> " + logins + "; echo ready >&2; until [ -e "
                       + go + " ]; do sleep 0.01; done; exit 0");
  const auto result =
    ssh.launch("a:20", "true", {}, [&](pid_t launcher, const std::string& err) {
      if (count_of(err, "ready") < 8 || ::kill(launcher, SIGTERM) != 0)
        return false;
      write_bytes(go, "");
      return true;
    });
  CHECK(result.code == 0);
  CHECK(lines_of(read_bytes(logins)).size() == 8);
}

TEST_CASE("when a rank has failed those on other hosts get SIGTERM") {
  const temporary_folder folder;
  const auto result = played_ssh().launch(
    "a,b",
    in_rank(1, "sleep 0.05; exit 3",
            "trap 'echo told to end; exit 0' TERM; " + for_ever),
    {"--grace", "0.1", "--logs", folder / "logs"});
  CHECK(result.code == 3);
  CHECK(result.out == "told to end\n");
}

TEST_CASE("a rank on another host that ignores SIGTERM is killed") {
  const temporary_folder folder;
  const auto result = played_ssh().launch(
    "a,b",
    noting(folder)
      + in_rank(1, "sleep 0.05; exit 3", "trap '' TERM; " + for_ever),
    {"--grace", "0.1", "--logs", folder / "logs"});
  CHECK(result.code == 3);
  check_nothing_is_left(folder, 2);
}

TEST_CASE("signals are passed on to ranks on other hosts") {
  for (const auto& [signal, name] : {std::pair<int, std::string>{SIGINT, "INT"},
                                     {SIGTERM, "TERM"},
                                     {SIGHUP, "HUP"},
                                     {SIGQUIT, "QUIT"}}) {
    CAPTURE(name);
    const auto result = played_ssh().launch("a,b",
                                            "trap 'echo told; exit 7' " + name
                                              + "; echo ready >&2; " + for_ever,
                                            {}, send_if_ready(signal, 2));
    CHECK(result.code == 7);
    CHECK(count_of(result.out, "told\n") == 2);
    CHECK(contains(last_error(result),
                   " failed with exit code 7 after SIG" + name + ": "));
  }
}

TEST_CASE("a second Ctrl-C kills ranks on other hosts") {
  const temporary_folder folder;
  int sent = 0;
  const auto result = played_ssh().launch(
    "a,b", "trap 'echo no >&2' INT; " + noting(folder) + for_ever,
    {"--grace", "0.1"}, [&](pid_t launcher, const std::string& err) {
      if (sent == 0 && count_of(err, "ready") == 2)
        sent += ::kill(launcher, SIGINT) == 0;
      if (sent == 1 && count_of(err, "no\n") == 2)
        sent += ::kill(launcher, SIGINT) == 0;
      return sent == 2;
    });
  CHECK(result.code == 128 + SIGKILL);
  check_nothing_is_left(folder, 2);
}

TEST_CASE("no rank on another host outlives a launcher that was killed") {
  const temporary_folder folder;
  const auto result = played_ssh().launch(
    "a:2,b", "trap '' TERM HUP; " + noting(folder) + for_ever,
    {"--grace", "0.1", "--logs", folder / "logs"}, send_if_ready(SIGKILL, 3));
  CHECK(result.code == 128 + SIGKILL);
  check_nothing_is_left(folder, 3);
}

TEST_CASE("a rank whose launcher is gone can end by itself") {
  const temporary_folder folder;
  const std::string done = folder / "done";
  const auto result = played_ssh().launch(
    "a,b",
    // The shell would tell of what ended, but nobody reads that any more.
    "trap 'sleep 0.1; touch " + done + ".$TROUPE_RANK; exit 0' TERM; "
      + noting(folder) + "exec 2>/dev/null; " + for_ever,
    {"--grace", "30", "--logs", folder / "logs"}, send_if_ready(SIGKILL, 2));
  CHECK(result.code == 128 + SIGKILL);
  check_nothing_is_left(folder, 2);
  CHECK(std::filesystem::exists(done + ".0"));
  CHECK(std::filesystem::exists(done + ".1"));
}

TEST_CASE("nothing outlives what was killed on another host") {
  const temporary_folder folder;
  const auto result =
    played_ssh().launch("a,b", "trap '' TERM; " + noting(folder) + for_ever,
                        {"--grace", "0.1", "--logs", folder / "logs"},
                        [&](pid_t, const std::string& err) {
                          if (count_of(err, "ready") < 2)
                            return false;
                          const auto noted = noted_by(folder, 1);
                          // Once the guardian knows the rank, the first one has
                          // ended.
                          const auto children = children_of(noted.at(2));
                          return children.size() == 2 && children[0] == noted[1]
                                 && ::kill(std::stoi(noted[2]), SIGKILL) == 0;
                        });
  CHECK(result.code != 0);
  CHECK(contains(last_error(result), "rank 1 "));
  check_nothing_is_left(folder, 2);
}

TEST_CASE("what a rank on another host has started ends with it") {
  const temporary_folder folder;
  CHECK(played_ssh().launch("a,b", noting(folder) + "exit 0").code == 0);
  check_nothing_is_left(folder, 2);
}

TEST_CASE("secrets stand in no command line, variable, output or log") {
  const temporary_folder folder;
  words secrets;
  std::string seen;
  const auto result = played_ssh().launch(
    "a,b", noting(folder) + "trap 'exit 0' TERM; " + for_ever,
    {"--logs", folder / "logs"}, [&](pid_t launcher, const std::string& err) {
      if (count_of(err, "ready") < 2)
        return false;
      for (int rank : {0, 1})
        for (auto& line :
             secret_lines(read_bytes(noted_by(folder, rank).at(3))))
          secrets.push_back(line);
      seen = text_of_all_processes();
      return ::kill(launcher, SIGTERM) == 0;
    });
  CHECK(result.code == 0);
  CHECK(secrets.size() >= 4); // two keys, and twice what proves the job
  CHECK(contains(seen, "launch-rank"));
  seen += result.out + result.err + text_of_all_files(folder / "logs");
  for (const auto& secret : secrets)
    CHECK_FALSE(contains(seen, secret));
}

} // TEST_SUITE("apps.launch_hosts_end")
