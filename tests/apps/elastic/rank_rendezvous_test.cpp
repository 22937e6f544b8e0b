// SPDX-License-Identifier: Apache-2.0
//
// The rendezvous that ranks keep. Each object plays a process: locks belong to
// files that are opened, not to the process that opens them.
#include <troupe/apps/elastic/epoch_keeper.hpp>
#include <troupe/apps/elastic/rank_rendezvous.hpp>
#include <troupe/base/random.hpp>
#include <troupe/comm/job_epoch.hpp>

#include <support/files.hpp>
#include <support/skip_case.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace troupe;
using namespace troupe::apps;
using namespace troupe::test;
using namespace std::chrono_literals;

TEST_SUITE("apps.elastic.rank_rendezvous") {

namespace {

using numbers = std::vector<std::uint64_t>;

struct played_rank {
  std::string folder;
  job_processes processes;
  kept_rendezvous kept;

  played_rank(const std::string& in, std::size_t rank, std::size_t size,
              std::size_t most)
    : folder(in), processes(folder, rank, size),
      kept(folder, processes, [this, size, most] {
        return std::make_unique<epoch_keeper>(folder, processes,
                                              epoch_keeper::job{size, most});
      }) {}
};

struct job {
  temporary_folder at;
  std::string folder = at.path().string();
  std::map<std::uint64_t, std::unique_ptr<played_rank>> ranks;
  kept_rendezvous::clock::time_point now = kept_rendezvous::clock::now();

  /// Returns the number of the process.
  std::uint64_t start(std::size_t rank, std::size_t most = 4) {
    auto made = std::make_unique<played_rank>(folder, rank, 3, most);
    const auto number = made->processes.own();
    ranks[number] = std::move(made);
    return number;
  }
  void start_all() {
    for (std::size_t rank = 0; rank < 3; ++rank)
      start(rank);
    look();
  }
  void end(std::uint64_t number) { ranks.erase(number); }
  void look() {
    for (auto& [number, rank] : ranks)
      rank->kept.look(now);
    now += 20ms;
  }
  comm::job_epoch epoch() const { return *comm::read_epoch(folder); }
  numbers keepers() const {
    numbers found;
    for (auto& [number, rank] : ranks)
      if (rank->kept.is_kept_here())
        found.push_back(number);
    return found;
  }
  void join(std::uint64_t number) { comm::tell_epoch_ended(folder, 0, number); }
};

} // namespace

TEST_CASE_FIXTURE(job, "a job begins when all of its ranks are there") {
  start(1);
  start(0);
  look();
  CHECK_FALSE(comm::read_epoch(folder));
  start(2);
  look();
  CHECK(epoch() == comm::job_epoch{1, {0, 1, 2}});
  CHECK(keepers() == numbers{0});
}

TEST_CASE_FIXTURE(job, "the lowest living rank takes the rendezvous over") {
  start_all();
  end(1);
  look();
  CHECK(epoch() == comm::job_epoch{2, {0, 2}});
  CHECK(keepers() == numbers{0});
  end(0);
  look();
  CHECK(epoch() == comm::job_epoch{3, {2}});
  CHECK(keepers() == numbers{2});
}

TEST_CASE_FIXTURE(job, "who takes it over can end at once") {
  start_all();
  end(0);
  ranks[2]->kept.look(now); // it is not its turn
  CHECK(epoch().number == 1);
  CHECK(keepers().empty());
  ranks[1]->kept.look(now);
  CHECK(epoch() == comm::job_epoch{2, {1, 2}});
  end(1);
  look();
  CHECK(epoch() == comm::job_epoch{3, {2}});
}

TEST_CASE_FIXTURE(job, "a process that comes later gets a new number and joins "
                       "when it waits") {
  start_all();
  end(0);
  look();
  const auto late = start(0);
  CHECK(late == 3);
  look();
  CHECK(epoch() == comm::job_epoch{2, {1, 2}});
  join(late);
  look();
  CHECK(epoch() == comm::job_epoch{3, {1, 2, 3}});
  CHECK(keepers() == numbers{1}); // the oldest
  CHECK(start(0) == 4);           // numbers are not used again
}

TEST_CASE_FIXTURE(job, "no more ranks take part than are allowed") {
  start_all();
  join(start(0));
  join(start(0));
  look();
  CHECK(epoch().members.size() == 4);
  end(1);
  look();
  look();
  CHECK(epoch().members == numbers{0, 2, 3, 4});
}

TEST_CASE_FIXTURE(job, "who takes it over knows who has the state") {
  start_all();
  comm::tell_step_done(folder, 1);
  end(0);
  look();
  join(start(0));
  look();
  CHECK(epoch().members == numbers{1, 2, 3});
  end(1);
  look();
  CHECK(epoch() == comm::job_epoch{4, {2, 3}});
  end(2);
  look();
  CHECK(epoch() == comm::job_epoch{5, {3}, true}); // a newcomer alone
}

TEST_CASE_FIXTURE(job, "nobody joins a job that is done") {
  start_all();
  comm::tell_all_done(folder);
  end(0);
  join(start(0));
  look();
  CHECK(epoch() == comm::job_epoch{2, {1, 2}});
}

TEST_CASE_FIXTURE(job, "ranks that end at any time never keep two") {
  start_all();
  splitmix64 draw{29};
  for (int i = 0; i < 300; ++i) {
    // Rank 0 ends most often, also twice in a row.
    if (ranks.size() > 1 && draw.below(3) > 0) {
      const auto order = epoch().members;
      const auto at = draw.below(2) == 0 ? 0 : draw.below(order.size());
      end(order[at]);
    } else if (ranks.size() < 4) {
      join(start(draw.below(3)));
    }
    if (draw.below(4) == 0 && !ranks.empty()) // one is faster than others
      std::next(ranks.begin(),
                static_cast<std::ptrdiff_t>(draw.below(ranks.size())))
        ->second->kept.look(now);
    comm::tell_step_done(folder, epoch().number);
    const auto before = epoch().number;
    look();
    look();
    CHECK(keepers().size() == 1);
    CHECK(epoch().number >= before);
    numbers living;
    for (auto& [number, rank] : ranks)
      living.push_back(number);
    CHECK(epoch().members == living);
  }
}

TEST_CASE_FIXTURE(job, "who keeps it and hangs is killed") {
  const auto first = ::fork();
  if (first == 0) { // keeps the rendezvous until the job begins, then hangs
    ::alarm(60);    // in case nobody kills it
    played_rank rank{folder, 0, 3, 4};
    while (!comm::read_epoch(folder)) {
      rank.kept.look(kept_rendezvous::clock::now());
      ::usleep(1000);
    }
    for (;;)
      ::pause();
  }
  while (!std::filesystem::exists(at / "process-0"))
    ::usleep(1000);
  start(1);
  start(2);
  while (!comm::read_epoch(folder))
    ::usleep(1000);
  now += 1h; // this process was stopped, or has not waited
  look();
  comm::tell_epoch_ended(folder, 1, 1);
  comm::tell_epoch_ended(folder, 1, 2);
  now += 1h;
  look();
  CHECK(::waitpid(first, nullptr, WNOHANG) == 0);
  for (int i = 0; i < 500; ++i)
    look();
  int status = 0;
  CHECK(::waitpid(first, &status, 0) == first);
  CHECK(WTERMSIG(status) == SIGKILL);
  look();
  CHECK(epoch() == comm::job_epoch{2, {1, 2}});
  CHECK(keepers() == numbers{1});
}

TEST_CASE_FIXTURE(job, "a file of a stranger changes nothing") {
  start_all();
  write_bytes(at / "process-7", "1\n"); // holds no lock
  write_bytes(at / "process-x", "1\n");
  write_bytes(at / "process-99999999999999999999999", "1\n");
  write_bytes(at / "keeper-2", "7\n");
  comm::tell_epoch_ended(folder, 0, 7);
  look();
  look();
  CHECK(epoch() == comm::job_epoch{1, {0, 1, 2}});
  CHECK(keepers() == numbers{0});
}

TEST_CASE_FIXTURE(job, "another user gains nothing") {
  if (::geteuid() != 0)
    return skip_case("needs the right to become another user");
  start_all();
  const auto stranger = ::fork();
  if (stranger == 0) {
    constexpr uid_t nobody = 65534;
    const bool is_other = ::setresuid(nobody, nobody, nobody) == 0;
    const auto opens = [](const std::string& path, int how) {
      return ::open(path.c_str(), how, 0600) >= 0;
    };
    const bool gains = opens(folder + "/epoch", O_RDONLY)
                       || opens(folder + "/keeper", O_RDWR)
                       || opens(folder + "/owner", O_RDONLY)
                       || opens(folder + "/process-9", O_RDWR | O_CREAT);
    ::_exit(is_other && !gains ? 0 : 1);
  }
  int status = -1;
  ::waitpid(stranger, &status, 0);
  CHECK(status == 0);
}

} // TEST_SUITE("apps.elastic.rank_rendezvous")
