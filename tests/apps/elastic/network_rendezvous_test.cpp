// SPDX-License-Identifier: Apache-2.0
//
// The rendezvous that ranks on several hosts keep. Each object plays a process,
// each folder a host, and pairs of sockets are the network between them.
#include <troupe/apps/elastic/epoch_follower.hpp>
#include <troupe/apps/elastic/epoch_keeper.hpp>
#include <troupe/apps/elastic/other_hosts.hpp>
#include <troupe/apps/elastic/rank_rendezvous.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/random.hpp>
#include <troupe/comm/job_epoch.hpp>
#include <troupe/comm/tls/job_credentials.hpp>

#include <support/files.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <sys/socket.h>

using namespace troupe;
using namespace troupe::apps;
using namespace troupe::test;
using namespace std::chrono_literals;

TEST_SUITE("apps.elastic.network_rendezvous") {

namespace {

using numbers = std::vector<std::uint64_t>;

constexpr std::size_t ranks_of_host = 2, all_hosts = 3;
constexpr std::size_t size = ranks_of_host * all_hosts;

std::pair<actors::passage, actors::passage> make_wire() {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  return {actors::passage{descriptor{ends[0]}},
          actors::passage{descriptor{ends[1]}}};
}

/// The first host's connections; null while nobody keeps the rendezvous.
struct network {
  other_hosts* keeper = nullptr;
  std::array<bool, all_hosts> is_down{};
  std::array<int, all_hosts> warnings{}; // of each host
};

class played_keeper final : public rendezvous_duty {
public:
  played_keeper(network& on, const std::string& folder,
                const job_processes& processes)
    : on_(on), others_(folder),
      keeper_(folder, processes, {size, size, "10.0.0.1", 4001}, &others_) {
    on_.keeper = &others_;
  }
  ~played_keeper() override { on_.keeper = nullptr; }
  played_keeper(const played_keeper&) = delete;
  played_keeper& operator=(const played_keeper&) = delete;

  void keep(clock::time_point now) override { keeper_.keep(now); }

private:
  network& on_;
  other_hosts others_;
  epoch_keeper keeper_;
};

struct played_rank {
  const std::string folder;
  job_processes processes;
  kept_rendezvous kept;

  played_rank(network& on, const std::string& in, std::size_t host,
              std::size_t rank)
    : folder(in), processes(folder, draw_number(rank), size),
      kept(folder, processes,
           [this, &on, host]() -> std::unique_ptr<rendezvous_duty> {
             if (host == 0)
               return std::make_unique<played_keeper>(on, folder, processes);
             return std::make_unique<epoch_follower>(
               folder, processes, std::to_string(host),
               [&on, host] {
                 if (!on.keeper || on.is_down[host])
                   throw error(errc::peer_failure, "nobody is there");
                 auto [here, there] = make_wire();
                 on.keeper->admit(std::move(there));
                 return actors::admission{std::move(here),
                                          "10.0.0." + std::to_string(host + 1)};
               },
               [&on, host](const std::string& why) {
                 CHECK(why == "nobody is there");
                 ++on.warnings[host];
               });
           }) {}
};

struct job {
  network on;
  std::array<temporary_folder, all_hosts> at;
  struct started {
    std::size_t host = 0;
    std::unique_ptr<played_rank> rank;
  };
  std::map<std::uint64_t, started> ranks; // that live
  kept_rendezvous::clock::time_point now = kept_rendezvous::clock::now();

  std::string folder(std::size_t host) const {
    return at[host].path().string();
  }
  /// Returns the number of the process.
  std::uint64_t start(std::size_t rank) {
    const auto host = rank / ranks_of_host;
    auto made = std::make_unique<played_rank>(on, folder(host), host, rank);
    const auto number = made->processes.own();
    ranks[number] = {host, std::move(made)};
    return number;
  }
  void join(std::uint64_t number) {
    comm::tell_epoch_ended(folder(ranks[number].host), 0, number);
  }
  /// Returns their numbers by rank.
  numbers start_all() {
    numbers all;
    for (std::size_t rank = 0; rank < size; ++rank)
      all.push_back(start(rank));
    look();
    return all;
  }
  void end(std::uint64_t number) { ranks.erase(number); }
  void look(std::chrono::milliseconds time = 200ms) {
    for (; time > 0ms; time -= 20ms) {
      for (auto& [number, one] : ranks)
        one.rank->kept.look(now);
      now += 20ms;
    }
  }
  comm::job_epoch epoch(std::size_t host = 0) const {
    return comm::read_epoch(folder(host)).value_or(comm::job_epoch{});
  }
  /// Of all hosts with processes: they know the same epoch.
  void check_members(const numbers& expected) const {
    for (auto& [number, one] : ranks) {
      CHECK(epoch(one.host).members == expected);
      CHECK(epoch(one.host).number == epoch(ranks.begin()->second.host).number);
    }
  }
};

numbers without(numbers all, std::uint64_t one) {
  std::erase(all, one);
  return all;
}

} // namespace

TEST_CASE_FIXTURE(job, "a job begins when the ranks of all hosts are there") {
  numbers all{start(5), start(0), start(2), start(1), start(4)};
  look();
  CHECK(epoch().number == 0);
  all.push_back(start(3));
  look();
  std::ranges::sort(all); // by rank
  check_members(all);
  CHECK(epoch().host_of(0) == epoch().host_of(1));
  CHECK(epoch().host_of(1) != epoch().host_of(2));
  CHECK(epoch().host_of(2) != epoch().host_of(5));
  CHECK(epoch().address == "10.0.0.1");
  CHECK(epoch().port == 4002);
}

TEST_CASE_FIXTURE(job, "each host gets the credentials of its own members") {
  const auto all = start_all();
  for (std::size_t rank = 0; rank < size; ++rank)
    for (std::size_t host = 0; host < all_hosts; ++host) {
      const auto path = comm::credentials_path(folder(host), 1, all[rank]);
      CHECK(std::filesystem::exists(path) == (host == rank / ranks_of_host));
      if (host == rank / ranks_of_host)
        CHECK_NOTHROW(comm::read_credentials(path, rank));
    }
}

TEST_CASE_FIXTURE(job, "a rank of another host ends") {
  const auto all = start_all();
  end(all[3]);
  look();
  check_members(without(all, all[3]));
  CHECK(epoch().number == 2);
}

TEST_CASE_FIXTURE(job, "rank 0 ends: the next of its host takes it over") {
  const auto all = start_all();
  end(all[0]);
  look();
  check_members(without(all, all[0]));
  CHECK(epoch().number == 2);
  end(all[2]); // is the connection of its host
  look();
  check_members({all[1], all[3], all[4], all[5]});
}

TEST_CASE_FIXTURE(job, "a rank that is started again joins when it waits") {
  auto all = start_all();
  end(all[2]);
  look();
  const auto late = start(2);
  look();
  CHECK(epoch().number == 2);
  join(late);
  look();
  all = without(all, all[2]);
  all.push_back(late);
  check_members(all);
}

TEST_CASE_FIXTURE(job, "all ranks of a host end, and so the rest goes on") {
  const auto all = start_all();
  end(all[4]);
  end(all[5]);
  look(3s);
  check_members({all[0], all[1], all[2], all[3]});
}

TEST_CASE_FIXTURE(job, "a short break of a connection changes nothing") {
  const auto all = start_all();
  on.is_down[2] = true;
  end(all[4]); // was the connection
  look(1s);
  CHECK(epoch().members == without(all, all[4]));
  CHECK(epoch(2).number == 1);
  on.is_down[2] = false;
  look(1s);
  check_members(without(all, all[4]));
}

TEST_CASE_FIXTURE(job, "a host that cannot be reached is given up") {
  const auto all = start_all();
  on.is_down[2] = true;
  end(all[4]); // all[5] lives, but cannot connect
  look(4s);
  CHECK(epoch(0).members == numbers{all[0], all[1], all[2], all[3]});
  CHECK(epoch(1) == epoch(0));
  CHECK(epoch(2).number == 1);
  // What it has, the others may have done otherwise meanwhile.
  auto [here, there] = make_wire();
  on.keeper->admit(std::move(there));
  host_wire wire{std::move(here)};
  end(all[5]); // its kill would end this process
  wire.send(
    to_line(host_report{"2", "10.0.0.3", epoch(2), {all[5]}, {all[5]}, {}}));
  look();
  numbers ended;
  while (const auto line = wire.receive())
    for (const auto number : parse_host_order(*line).ends)
      ended.push_back(number);
  CHECK(std::ranges::find(ended, all[5]) != ended.end());
  CHECK(epoch(0).members == numbers{all[0], all[1], all[2], all[3]});
}

TEST_CASE_FIXTURE(job, "without ranks on the first host no epoch begins, until "
                       "one is started there") {
  const auto all = start_all();
  comm::tell_step_done(folder(0), 1);
  look();
  end(all[0]);
  end(all[1]);
  end(all[2]);
  CHECK(on.warnings == std::array{0, 0, 0});
  look(1min);
  CHECK(epoch(1).number == 1);
  CHECK(on.warnings == std::array{0, 1, 1});
  std::filesystem::remove_all(folder(0)); // so its last process does
  std::filesystem::create_directory(folder(0));
  const auto late = start(0);
  look();
  check_members({all[3], all[4], all[5]});
  CHECK_FALSE(epoch().has_only_newcomers);
  CHECK(epoch().address == "10.0.0.2");
  join(late);
  look();
  check_members({all[3], all[4], all[5], late});
  for (const auto old : {all[3], all[4], all[5]})
    end(old);
  look(3s);
  check_members({late});
  CHECK(epoch().has_only_newcomers); // nobody is left who has the state
}

TEST_CASE_FIXTURE(job, "nobody joins a job that is done") {
  const auto all = start_all();
  comm::tell_all_done(folder(1));
  look();
  CHECK(comm::is_all_done(folder(2)));
  end(all[5]);
  join(start(5));
  look();
  check_members(without(all, all[5]));
}

TEST_CASE_FIXTURE(job, "a stranger who sends something else changes nothing") {
  const auto all = start_all();
  for (const char* text : {"x\n", "{}\n", "{\"host\":1}\n", "\n", "[]\n"}) {
    auto [here, there] = make_wire();
    on.keeper->admit(std::move(there));
    host_wire wire{std::move(here)};
    wire.send(text);
    look();
    (void)wire.receive();
    CHECK(wire.is_gone());
  }
  CHECK(epoch() == epoch(1));
  check_members(all);
}

TEST_CASE_FIXTURE(job, "ranks end at any time on any host, and all hosts have "
                       "the same epochs") {
  start_all();
  splitmix64 draw{41};
  std::map<std::uint64_t, numbers> seen; // members by epoch
  std::array<std::uint64_t, all_hosts> last{};
  for (int i = 0; i < 60; ++i) {
    for (auto ends = draw.below(3); ends > 0; --ends) {
      auto victim = ranks.begin();
      std::advance(victim, draw.below(ranks.size()));
      const auto others = std::ranges::count_if(ranks, [&](auto& one) {
        return one.second.host == victim->second.host;
      });
      if (others > 1 || victim->second.host != 0)
        end(victim->first);
    }
    while (ranks.size() < size && draw.below(2) == 0)
      join(start(draw.below(size)));
    look(std::chrono::milliseconds{draw.below(10) * 20});
    for (std::size_t host = 0; host < all_hosts; ++host) {
      const auto is = epoch(host);
      CHECK(is.number >= last[host]);
      last[host] = is.number;
      const auto& members =
        seen.try_emplace(is.number, is.members).first->second;
      CHECK(is.members == members);
    }
    comm::tell_step_done(folder(0), epoch().number);
  }
  look(6s);
  numbers living, members = epoch().members;
  for (auto& [number, one] : ranks)
    living.push_back(number);
  std::ranges::sort(members);
  CHECK(members == living);
}

} // TEST_SUITE("apps.elastic.network_rendezvous")
