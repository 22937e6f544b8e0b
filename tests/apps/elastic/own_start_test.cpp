// SPDX-License-Identifier: Apache-2.0
//
// Elastic jobs that no `troupe launch` has started: a rank keeps the
// rendezvous.
#include "apps/launch/launch_runner.hpp"

#include <support/files.hpp>
#include <support/own_network.hpp>
#include <support/skip_case.hpp>
#include <troupe/base/random.hpp>
#include <troupe/comm/engine/join.hpp>
#include <troupe/comm/job_epoch.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("apps.elastic.own_start") {

namespace {

namespace fs = std::filesystem;

constexpr int all_steps = 80; // later ones differ more, by rounding

/// Results do not depend on the number of ranks, except for rounding.
words digits(const words& more) {
  return words{"train",
               "digits",
               "--data",
               TROUPE_DATA "/digits",
               "--seed",
               "3",
               "--steps",
               std::to_string(all_steps),
               "--sync-batch-norm"}
         + more;
}

/// Hosts are addresses of the test's network, and names.
void enter_host(const std::string& variable) {
  const std::string name = "ON_HOST=";
  if (variable.starts_with(name)
      && (::unshare(CLONE_NEWUTS) != 0
          || ::sethostname(variable.c_str() + name.size(),
                           variable.size() - name.size())
               != 0))
    ::_exit(126);
}

/// A process of the command with variables of its own. ON_HOST has the name of
/// its host.
class own_process {
public:
  own_process(const words& variables, const words& arguments,
              const std::string& errors) {
    id_ = ::fork();
    if (id_ != 0)
      return;
    const int err = ::open(errors.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::dup2(err, 1);
    ::dup2(err, 2);
    for (auto& variable : variables) {
      enter_host(variable);
      ::putenv(::strdup(variable.c_str()));
    }
    std::vector<char*> all{::strdup(TROUPE_COMMAND)};
    for (auto& argument : arguments)
      all.push_back(::strdup(argument.c_str()));
    all.push_back(nullptr);
    ::execv(TROUPE_COMMAND, all.data());
    ::_exit(127);
  }
  ~own_process() {
    if (!end())
      ::kill(id_, SIGKILL);
    (void)wait();
  }
  own_process(const own_process&) = delete;
  own_process& operator=(const own_process&) = delete;

  pid_t id() const { return id_; }
  /// The exit code, or 128 and the signal's number; nothing while it runs.
  std::optional<int> end() { return look(WNOHANG); }
  int wait() { return *look(0); }

private:
  std::optional<int> look(int how) {
    int status = 0;
    if (!code_ && ::waitpid(id_, &status, how) == id_)
      code_ =
        WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return code_;
  }

  pid_t id_ = 0;
  std::optional<int> code_;
};

using form = std::function<words(std::size_t rank, const std::string& job)>;

words plain(std::size_t rank, const std::string& job) {
  const auto number = std::to_string(rank);
  return {"TROUPE_RANK=" + number,       "TROUPE_SIZE=3",
          "TROUPE_LOCAL_RANK=" + number, "TROUPE_LOCAL_SIZE=3",
          "TROUPE_JOB=" + job,           "TROUPE_ELASTIC=1:3"};
}

words torchrun(std::size_t rank, const std::string& job) {
  const auto number = std::to_string(rank);
  return {"TORCHELASTIC_RUN_ID=" + job, "RANK=" + number,
          "LOCAL_RANK=" + number,       "WORLD_SIZE=3",
          "LOCAL_WORLD_SIZE=3",         "TROUPE_ELASTIC=1:3"};
}

class own_job {
public:
  /// @param slow what a step takes in each rank
  explicit own_job(form of, std::string slow = "20ms")
    : form_(std::move(of)), slow_(std::move(slow)) {
    for (std::size_t rank = 0; rank < 3; ++rank)
      start(rank);
  }

  std::string name() const { return "test-" + std::to_string(::getpid()); }
  void start(std::size_t rank, const words& more = {}) {
    processes_.emplace_back(
      form_(rank, name()),
      digits({"--slow", "mean=" + slow_, "--devices", "cpu:1", "--data-network",
              "trusted", "--metrics", folder / "m.jsonl", "--save",
              folder / "saved"})
        + more,
      folder / "err");
  }
  std::string text() const { return read_if_there(folder / "err"); }
  /// The folders of the job, one per host.
  std::vector<fs::path> rendezvous() const {
    std::vector<fs::path> found;
    for (auto& entry :
         fs::directory_iterator("/tmp/troupe-" + std::to_string(::geteuid())))
      if (contains(entry.path().filename().string(), name())
          && entry.path().extension() == ".elastic")
        found.push_back(entry.path());
    return found;
  }
  comm::job_epoch last_epoch() const {
    comm::job_epoch last;
    for (auto& at : rendezvous())
      if (auto epoch = comm::read_epoch(at.string());
          epoch && epoch->number > last.number)
        last = *std::move(epoch);
    return last;
  }
  /// Signals the process that has a rank now. False if there is none.
  bool signal(std::size_t rank, int number) const {
    const auto epoch = last_epoch();
    if (rank >= epoch.members.size())
      return false;
    for (auto& at : rendezvous()) {
      pid_t process = 0;
      if (std::ifstream{at / ("process-" + std::to_string(epoch.members[rank]))}
          >> process)
        return ::kill(process, number) == 0;
    }
    return false;
  }
  std::uint64_t epoch() const { return last_epoch().number; }
  std::size_t members() const { return last_epoch().members.size(); }
  std::size_t living() {
    return static_cast<std::size_t>(
      std::ranges::count_if(processes_, [](auto& p) { return !p.end(); }));
  }
  std::size_t lines() const {
    return count_of(read_if_there(folder / "m.jsonl"), "\n");
  }
  /// Waits until more steps are done. False if the job is over.
  bool goes_on() {
    const auto before = lines();
    CHECK(comes_true([&] { return lines() >= before + 5 || is_over(); }));
    return !is_over();
  }
  bool is_over() {
    return std::ranges::all_of(processes_,
                               [](auto& p) { return p.end().has_value(); });
  }
  std::size_t successes() {
    return static_cast<std::size_t>(
      std::ranges::count_if(processes_, [](auto& p) { return p.wait() == 0; }));
  }

  temporary_folder folder;

private:
  form form_;
  std::string slow_;
  std::list<own_process> processes_;
};

std::vector<double> losses(const fs::path& metrics) {
  std::vector<double> all;
  std::ifstream in{metrics};
  for (std::string line; std::getline(in, line);) {
    const auto step = nlohmann::json::parse(line);
    CHECK(step.at("step") == all.size()); // each once
    all.push_back(step.at("loss"));
  }
  return all;
}

/// With another number of ranks, only the order of additions differs.
void check_losses(const own_job& job) {
  const temporary_folder folder;
  REQUIRE(run_troupe(digits({"--devices", "cpu:3", "--strategy", "all_reduce",
                             "--metrics", folder / "whole.jsonl"}))
            .code
          == 0);
  const auto whole = losses(folder / "whole.jsonl"),
             own = losses(job.folder / "m.jsonl");
  REQUIRE(own.size() == all_steps);
  for (std::size_t step = 0; step < own.size(); ++step) {
    CAPTURE(step);
    CHECK(own[step] == doctest::Approx(whole[step]).epsilon(0.02));
  }
}

} // namespace

TEST_CASE("a job goes on when rank 0 is killed") {
  for (const auto& of : {form{plain}, form{torchrun}}) {
    own_job job{of};
    REQUIRE(job.goes_on());
    REQUIRE(job.signal(0, SIGKILL));
    CHECK(comes_true([&] { return job.is_over(); }));
    INFO(job.text());
    CHECK(job.successes() == 2);
    CHECK(contains(job.text(), "goes on after step"));
    CHECK(fs::exists(job.folder / "saved/params.pdiparams"));
    CHECK(job.rendezvous().empty());
    check_losses(job);
  }
}

TEST_CASE("a rank that is started with other options ends, and the others go "
          "on") {
  own_job job{plain, "50ms"}; // there is time to join
  REQUIRE(job.goes_on());
  REQUIRE(job.signal(2, SIGKILL));
  CHECK(comes_true([&] { return job.members() == 2 || job.is_over(); }));
  job.start(2, {"--batch", "16"});
  CHECK(comes_true([&] { return job.is_over(); }));
  INFO(job.text());
  CHECK(job.successes() == 2);
  CHECK(
    contains(job.text(), "troupe: the processes differ in samples per step: "));
  check_losses(job);
}

TEST_CASE("ranks are killed and started again, rank 0 twice in a row") {
  own_job job{plain};
  splitmix64 draw{17};
  std::size_t kills = 0;
  for (int round = 0; round < 4 && job.goes_on(); ++round) {
    for (const std::size_t victim :
         {std::size_t{0}, round == 0 ? 0 : draw.below(2)}) {
      const auto before = job.epoch();
      kills += job.signal(victim, SIGKILL) ? 1 : 0;
      CHECK(comes_true([&] { return job.epoch() > before || job.is_over(); }));
      if (round > 0)
        break;
    }
    for (std::size_t rank = 0; job.living() < 3 && rank < 3; ++rank)
      job.start(rank);
    const auto enough = [&] { return job.members() == 3 || job.is_over(); };
    CHECK(comes_true(enough));
  }
  CHECK(comes_true([&] { return job.is_over(); }));
  INFO(job.text());
  CHECK(kills > 2);
  CHECK(job.successes() > 0);
  CHECK(job.rendezvous().empty());
  check_losses(job);
}

TEST_CASE("ranks are on three hosts: the job goes on when that of rank 0 has "
          "none any more, and when one is started there again") {
  if (!own_network::is_possible() || !comm::gloo_support().is_built)
    return skip_case("needs Gloo, and the right to make a network of its own");
  const own_network network;
  const temporary_folder folder;
  const std::string credentials = folder / "credentials";
  REQUIRE(run_troupe({"credentials", "--nodes", "3", credentials}).code == 0);
  own_job job{[&](std::size_t rank, const std::string& name) {
                const auto host = static_cast<int>(rank) + 1;
                return words{"ON_HOST=host-" + std::to_string(host),
                             "TROUPE_RANK=" + std::to_string(rank),
                             "TROUPE_SIZE=3",
                             "TROUPE_LOCAL_RANK=0",
                             "TROUPE_LOCAL_SIZE=1",
                             "TROUPE_JOB=" + name,
                             "TROUPE_ELASTIC=1:3",
                             "TROUPE_ADDRESS=" + own_network::address_of(1)
                               + ":4000",
                             "TROUPE_INTERFACE=lo:" + std::to_string(host),
                             "TROUPE_CREDENTIALS=" + credentials};
              },
              "50ms"}; // there is time to join
  REQUIRE(job.goes_on());
  CHECK(job.rendezvous().size() == 3);
  REQUIRE(job.signal(0, SIGKILL));
  CHECK(comes_true([&] { return job.epoch() == 2; }));
  REQUIRE(job.goes_on());
  job.start(0);
  CHECK(comes_true([&] { return job.members() == 3 || job.is_over(); }));
  CHECK(comes_true([&] { return job.is_over(); }));
  INFO(job.text());
  CHECK(job.successes() == 3);
  CHECK(job.rendezvous().empty());
  check_losses(job);
}

} // TEST_SUITE("apps.elastic.own_start")
