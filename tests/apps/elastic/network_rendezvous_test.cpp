// SPDX-License-Identifier: Apache-2.0
//
// The rendezvous that ranks on several hosts keep. Each object plays a process,
// each folder a host, and pairs of sockets are the network between them.
#include <troupe/apps/elastic/epoch_follower.hpp>
#include <troupe/apps/elastic/host_folder.hpp>
#include <troupe/apps/elastic/host_network.hpp>
#include <troupe/apps/elastic/host_wire.hpp>
#include <troupe/apps/elastic/moving_rendezvous.hpp>
#include <troupe/apps/elastic/rank_rendezvous.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/random.hpp>
#include <troupe/comm/job_epoch.hpp>
#include <troupe/comm/tls/job_credentials.hpp>

#include <support/caught.hpp>
#include <support/files.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <sys/socket.h>
#include <sys/stat.h>

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

ino_t inode_of(int file) {
  struct stat found = {};
  return ::fstat(file, &found) == 0 ? found.st_ino : 0;
}

std::string address_of(std::size_t host) {
  return "10.0.0." + std::to_string(host + 1);
}

/// Which hosts let others in, and which ones are cut off from all others.
struct network {
  struct wire {
    std::size_t from;
    std::string to;
    int socket; ///< may be closed, and its number in use again
    ino_t inode;
  };
  std::map<std::string, std::function<void(actors::passage)>> entrances;
  std::vector<wire> wires;
  std::array<bool, all_hosts> is_down{}; ///< makes no new connections
  std::array<int, all_hosts> warnings{}; // of each host

  void cut(std::size_t host) {
    is_down[host] = true;
    for (auto& w : wires)
      if ((w.from == host || w.to == address_of(host))
          && inode_of(w.socket) == w.inode) {
        std::array<char, 4096> lost; // is under way to the host that connected
        while (::recv(w.socket, lost.data(), lost.size(), MSG_DONTWAIT) > 0) {
        }
        ::shutdown(w.socket, SHUT_RDWR);
      }
  }
  bool is_reached(const std::string& address) const {
    for (std::size_t host = 0; host < all_hosts; ++host)
      if (address_of(host) == address && is_down[host])
        return false;
    return entrances.contains(address);
  }
};

class played_network final : public host_network {
public:
  played_network(network& on, std::size_t host) : on_(on), host_(host) {}

  actors::admission connect(const std::string& address) override {
    if (on_.is_down[host_] || !on_.is_reached(address))
      throw error(errc::peer_failure, "nobody is there");
    auto [here, there] = make_wire();
    const auto socket = here.socket.get();
    on_.wires.push_back({host_, address, socket, inode_of(socket)});
    on_.entrances[address](std::move(there));
    return {std::move(here), address_of(host_)};
  }
  std::unique_ptr<entrance>
  open(const std::string& address,
       std::function<void(actors::passage)> admit) override {
    CHECK(address == address_of(host_));
    return std::make_unique<played_entrance>(on_, address, std::move(admit));
  }
  void tell(const std::string& address, const host_report& what) override {
    if (on_.is_down[host_] || !on_.is_reached(address))
      return;
    auto [here, there] = make_wire();
    on_.entrances[address](std::move(there));
    host_wire{std::move(here)}.send(to_line(what));
  }

private:
  struct played_entrance : entrance {
    played_entrance(network& on, std::string at,
                    std::function<void(actors::passage)> admit)
      : of(on), address(std::move(at)) {
      of.entrances[address] = std::move(admit);
    }
    ~played_entrance() override { of.entrances.erase(address); }
    network& of;
    std::string address;
  };

  network& on_;
  std::size_t host_;
};

struct played_rank {
  const std::string folder;
  job_processes processes;
  played_network network_of_host;
  kept_rendezvous kept;

  played_rank(network& on, const std::string& in, std::size_t host,
              std::uint64_t number)
    : folder(in), processes(folder, number, size), network_of_host(on, host),
      kept(folder, processes, [this, &on, host] {
        return std::make_unique<moving_rendezvous>(
          folder, processes,
          moving_rendezvous::job{
            {size, size, std::to_string(host), address_of(0), 4001}, host == 0},
          network_of_host, [&on, host](const std::string& what) {
            CHECK((contains(what, "nobody is there")
                   || contains(what, "tells nothing")
                   || contains(what, "too few hosts of the job")));
            ++on.warnings[host];
          });
      }) {
    // Nobody can kill it by this number, which is the test's own.
    write_bytes(folder + "/process-" + std::to_string(processes.own()), "0");
  }
};

struct job {
  network on;
  std::array<temporary_folder, all_hosts> at;
  struct started {
    std::size_t host = 0;
    std::unique_ptr<played_rank> rank;
  };
  std::map<std::uint64_t, started> ranks; // that live
  std::uint64_t all_started = 0;
  std::array<comm::job_epoch, all_hosts> last; // by host
  std::set<std::string> keepers;               // of all epochs
  std::map<std::pair<std::string, std::uint64_t>, std::string> seen; // epochs
  kept_rendezvous::clock::time_point now = kept_rendezvous::clock::now();

  std::string folder(std::size_t host) const {
    return at[host].path().string();
  }
  /// Returns the number of the process.
  std::uint64_t start(std::size_t rank) {
    const auto host = rank / ranks_of_host;
    // As draw_number, but the same in each run.
    auto made = std::make_unique<played_rank>(
      on, folder(host), host, std::uint64_t{rank} << 32 | ++all_started);
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
  /// A connection to the first host.
  host_wire stranger() {
    auto [here, there] = make_wire();
    on.entrances.at(address_of(0))(std::move(there));
    return host_wire{std::move(here)};
  }
  void end(std::uint64_t number) { ranks.erase(number); }
  /// Removes the folder of a host, as its last process does.
  void forget(std::size_t host) {
    std::filesystem::remove_all(folder(host));
    std::filesystem::create_directory(folder(host));
  }
  void end_host(std::size_t host) {
    std::erase_if(ranks, [&](auto& one) { return one.second.host == host; });
  }
  void look(std::chrono::milliseconds time = 200ms) {
    look_on({0, 1, 2}, time);
  }
  /// The processes of other hosts are stopped meanwhile.
  void look_on(const std::set<std::size_t>& hosts,
               std::chrono::milliseconds time) {
    for (; time > 0ms; time -= 20ms) {
      for (auto& [number, one] : ranks)
        if (hosts.contains(one.host))
          one.rank->kept.look(now);
      now += 20ms;
      for (std::size_t host = 0; host < all_hosts; ++host)
        note_epoch(host);
      check_in_use();
    }
  }
  /// Ends those that the host has killed: they are no members any more. Never
  /// two epochs have the same number.
  void note_epoch(std::size_t host) {
    const auto is = epoch(host);
    if (is == last[host])
      return;
    for (const auto member : last[host].members)
      if (!is.rank_of(member) && ranks.contains(member)
          && ranks[member].host == host)
        end(member);
    last[host] = is;
    if (is.number == 0)
      return;
    keepers.insert(is.sites.front().host);
    const auto known =
      seen.try_emplace({is.origin, is.number}, comm::to_text(is)).first;
    REQUIRE(known->second == comm::to_text(is));
  }
  /// Never two epochs have all of their members.
  void check_in_use() const {
    std::set<std::uint64_t> in_use;
    for (auto& one : last)
      if (!one.members.empty()
          && std::ranges::all_of(one.members, [&](auto member) {
               const auto found = ranks.find(member);
               return found != ranks.end() && last[found->second.host] == one;
             }))
        in_use.insert(one.number);
    REQUIRE(in_use.size() <= 1);
  }
  comm::job_epoch epoch(std::size_t host = 0) const {
    return comm::read_epoch(folder(host)).value_or(comm::job_epoch{});
  }
  /// True if enough of the folders are left that vote on what follows.
  bool have_votes_after(const comm::job_epoch& last) const {
    std::map<std::string, bool> voters; // and whether it is left
    for (std::size_t rank = 0; rank < last.members.size(); ++rank)
      voters[last.sites[last.host_of(rank)].folder] = false;
    for (auto& [number, one] : ranks)
      if (const auto found = voters.find(read_votes(folder(one.host)).folder);
          found != voters.end())
        found->second = true;
    const auto left =
      std::ranges::count_if(voters, [](auto& v) { return v.second; });
    const auto all = static_cast<std::ptrdiff_t>(voters.size());
    return 2 * left > all
           || (2 * left == all && voters[last.sites.front().folder]);
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
  auto wire = stranger();
  end(all[5]); // its kill would end this process
  wire.send(to_line(host_report{
    "2", "10.0.0.3", read_votes(folder(2)), {all[5]}, {all[5]}, {}}));
  look();
  numbers ended;
  while (const auto line = wire.receive())
    for (const auto number : parse_host_order(*line).ends)
      ended.push_back(number);
  CHECK(std::ranges::find(ended, all[5]) != ended.end());
  CHECK(epoch(0).members == numbers{all[0], all[1], all[2], all[3]});
}

TEST_CASE_FIXTURE(job, "the first host ends, and another one keeps the "
                       "rendezvous") {
  const auto all = start_all();
  comm::tell_step_done(folder(0), 1);
  look();
  end_host(0);
  look(4s);
  check_members({all[2], all[3], all[4], all[5]});
  CHECK(on.warnings == std::array{0, 0, 0});
  CHECK(epoch(1).sites.front().host == "1");
  CHECK(epoch(1).address == address_of(1));
  CHECK_FALSE(epoch(1).has_only_newcomers);
  end(all[2]); // another rank of that host goes on with it
  look();
  check_members({all[3], all[4], all[5]});
  CHECK(epoch(1).sites.front().host == "1");
}

TEST_CASE_FIXTURE(job, "a rank that is started on the first host again finds "
                       "who keeps the rendezvous") {
  const auto all = start_all();
  comm::tell_step_done(folder(0), 1);
  look();
  end_host(0);
  look(4s);
  bool has_folder = false;
  SUBCASE("with the folder of the host") {
    has_folder = true;
  }
  SUBCASE("without, as when its last process removed it") {}
  if (!has_folder)
    forget(0);
  const auto late = start(0);
  join(late);
  look(10s);
  check_members({all[2], all[3], all[4], all[5], late});
  CHECK(epoch(0).sites.front().host == "1");
}

TEST_CASE_FIXTURE(job, "a rank that knows the first host alone learns there "
                       "that another one keeps the rendezvous") {
  const auto all = start_all();
  comm::tell_step_done(folder(0), 1);
  look();
  end_host(0);
  look(4s);
  const auto late = start(0);
  join(late);
  look(10s);
  end_host(2);
  forget(2);
  look(4s);
  const auto later = start(4);
  join(later);
  look(4s);
  check_members({all[2], all[3], late, later});
  end_host(1); // the first host keeps it again, or the third one
  look(10s);
  check_members({late, later});
}

TEST_CASE_FIXTURE(job, "a host that kept the rendezvous and is cut off is no "
                       "second group") {
  const auto all = start_all();
  comm::tell_step_done(folder(0), 1);
  look();
  on.cut(0);
  look(15s);
  CHECK(epoch(0).number == 1); // it has one vote of three
  CHECK(epoch(1).members == numbers{all[2], all[3], all[4], all[5]});
  CHECK(epoch(2) == epoch(1));
  on.is_down[0] = false;
  const auto late = start(0);
  join(late);
  look(10s);
  CHECK_FALSE(ranks.contains(all[0])); // has been killed
  check_members({all[2], all[3], all[4], all[5], late});
}

namespace {

/// The third host is cut off, and the first one goes on with the second one,
/// which votes for that and is cut off before it learns that it was decided.
/// The other two reach each other then. Returns the ranks; those of the third
/// host have ended, and there is another one.
numbers go_on_without_third(job& of) {
  const auto all = of.start_all();
  comm::tell_step_done(of.folder(0), 1);
  of.look();
  of.on.cut(2);
  for (int tick = 0; of.epoch(0).number == 1 && tick < 500; ++tick) {
    of.look_on({0}, 20ms);
    if (of.epoch(0).number == 1)
      of.look_on({1}, 20ms);
  }
  CHECK(of.epoch(0).members == numbers{all[0], all[1], all[2], all[3]});
  CHECK(of.epoch(1).number == 1);
  of.on.cut(0);
  of.end_host(2);
  of.join(of.start(4));
  of.on.is_down[2] = false;
  return all;
}

} // namespace

TEST_CASE_FIXTURE(job, "a host that has gone on with one group has no vote in "
                       "another one") {
  std::uint64_t first_goes_on_to = 2;
  SUBCASE("of the same number of epochs") {}
  SUBCASE("of more epochs") {
    first_goes_on_to = 3;
  }
  const auto all = go_on_without_third(*this);
  if (first_goes_on_to == 3) {
    look_on({0}, 4s);
    CHECK(epoch(0).members == numbers{all[0], all[1]});
  }
  look_on({1, 2}, 30s);
  CHECK(epoch(1).number == 2); // that of the first host
  CHECK(epoch(2).number < 3);
  CHECK(epoch(0).number == first_goes_on_to);
  on.is_down[0] = false;
  look(20s);
  CHECK(epoch(0).number > first_goes_on_to);
  CHECK(epoch(0).rank_of(all[0]));
  CHECK(ranks.contains(all[2]) == (first_goes_on_to == 2)); // else it is killed
  check_members(epoch(0).members);
}

TEST_CASE_FIXTURE(job, "an epoch for which nobody else has voted is none") {
  const auto all = start_all();
  comm::tell_step_done(folder(0), 1);
  look();
  on.cut(2);
  look_on({0}, 3s); // the second host does not answer
  CHECK(epoch(0).number == 1);
  on.cut(0);
  on.is_down[2] = false;
  look_on({1, 2}, 15s);
  CHECK(epoch(1).number == 2);
  CHECK(epoch(1).members == numbers{all[2], all[3], all[4], all[5]});
  CHECK(epoch(2) == epoch(1));
  on.is_down[0] = false;
  const auto late = start(0);
  join(late);
  look(15s);
  check_members({all[2], all[3], all[4], all[5], late});
}

TEST_CASE("a host that cannot keep what it promises does not promise") {
  const temporary_folder at;
  const auto folder = at.path().string();
  const job_processes processes{folder, 1, 2};
  auto votes = read_votes(folder);
  auto [here, there] = make_wire();
  host_wire keeper{std::move(there)};
  epoch_follower follower{
    folder,
    processes,
    votes,
    "1",
    [&wire = here](const std::string&) {
      return actors::admission{std::move(wire), "10.0.0.2"};
    },
    [](const std::string&) {}};
  const auto promised = [&] {
    std::uint64_t highest = 0;
    while (const auto line = keeper.receive())
      highest =
        std::max(highest, parse_host_report(*line).votes.promised.round);
    return highest;
  };
  const auto now = kept_rendezvous::clock::now();
  keeper.send(to_line(host_order{{{3, "f"}, {}, {}}, {}, {}, {}}));
  follower.keep(now);
  CHECK(promised() == 3);
  CHECK(read_votes(folder).promised == ballot{3, "f"});
  std::filesystem::create_directory(at
                                    / "votes.next"); // in the place of the file
  keeper.send(to_line(host_order{{{4, "f"}, {}, {}}, {}, {}, {}}));
  CHECK(caught([&] { follower.keep(now); }).code() == errc::io_failure);
  CHECK(promised() == 0); // nothing is told
  CHECK(read_votes(folder).promised == ballot{3, "f"});
}

TEST_CASE_FIXTURE(job, "who takes it over in the same host knows what the "
                       "host has promised") {
  const auto all = start_all();
  const auto before = read_votes(folder(2));
  CHECK(before.promised.round > 0);
  end(all[4]); // was the connection
  on.is_down[2] = true;
  look(1s);
  CHECK(read_votes(folder(2)) == before);
  on.is_down[2] = false;
  look(1s);
  check_members(without(all, all[4]));
  CHECK(read_votes(folder(2)).folder == before.folder);
}

TEST_CASE_FIXTURE(job, "two hosts: half goes on with the one that kept the "
                       "rendezvous, and not without") {
  const auto all = start_all();
  comm::tell_step_done(folder(0), 1);
  look();
  end_host(0);
  look(4s);
  comm::tell_step_done(folder(1), epoch(1).number);
  look();
  const auto before = epoch(1).number;
  SUBCASE("with it") {
    end_host(2);
    look(4s);
    check_members({all[2], all[3]});
  }
  SUBCASE("without it, which has lost its folder") {
    end_host(1);
    forget(1);
    look(20s);
    CHECK(epoch(2).number == before);
    CHECK(on.warnings[2] == 1);
    join(start(2));
    join(start(0));
    look(20s);
    CHECK(epoch(2).number == before);
  }
  SUBCASE("with it, where another process goes on") {
    const auto late = start(2);
    look();
    end(all[2]);
    end(all[3]);
    look(4s);
    join(late);
    look(4s);
    check_members({all[4], all[5], late});
  }
  SUBCASE("without it, and another host has no vote") {
    end_host(1);
    forget(0);
    join(start(0));
    look(20s);
    CHECK(epoch(2).number == before);
  }
}

TEST_CASE_FIXTURE(job, "all ranks end that have the state of the job, and "
                       "others begin it again") {
  const auto all = start_all();
  comm::tell_step_done(folder(0), 1);
  look();
  end(all[1]);
  look();
  const auto late = start(0);
  join(late);
  look();
  for (const auto old : {all[0], all[2], all[3], all[4], all[5]})
    end(old);
  look(4s);
  CHECK(epoch().members.size() == 6); // one vote of three
  start(3);
  start(5);
  look(20s);
  check_members({late});
  CHECK(epoch().has_only_newcomers);
}

TEST_CASE_FIXTURE(job, "too few hosts are left, and the job begins anew when "
                       "their ranks have ended") {
  const auto all = start_all();
  comm::tell_step_done(folder(0), 1);
  look();
  const auto before = epoch(2);
  for (const std::size_t host : {0, 1}) {
    end_host(host);
    forget(host);
  }
  numbers others{start(0), start(1), start(2), start(3)};
  look(20s);
  CHECK(epoch(2) == before);
  CHECK(epoch(0).number == 0); // else they would wait for the votes, too
  end_host(2);
  forget(2);
  others.push_back(start(4));
  others.push_back(start(5));
  look(10s);
  check_members(others);
  CHECK(epoch().number == 1);
  CHECK(epoch().origin != before.origin);
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
    auto wire = stranger();
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
  const auto on_host = [&](std::size_t host) {
    return std::ranges::count_if(
      ranks, [&](auto& one) { return one.second.host == host; });
  };
  const auto are_on_others = [&](std::size_t host) {
    for (std::size_t other = 0; other < all_hosts; ++other)
      if (other != host && on_host(other) == 0)
        return false;
    return true;
  };
  for (int i = 0; i < 24; ++i) {
    for (auto ends = draw.below(3); ends > 0; --ends) {
      auto victim = ranks.begin();
      std::advance(victim, draw.below(ranks.size()));
      const auto host = victim->second.host;
      if (are_on_others(host) || on_host(host) > 1)
        end(victim->first);
    }
    if (const auto host = static_cast<std::size_t>(i / 3) % all_hosts;
        i % 3 == 0 && are_on_others(host)) {
      end_host(host);
      look(4s); // another one takes over
    }
    while (ranks.size() < size && draw.below(2) == 0)
      join(start(draw.below(size)));
    look(std::chrono::milliseconds{draw.below(20) * 20});
    for (std::size_t host = 0; host < all_hosts; ++host) {
      const auto is = epoch(host);
      CHECK(is.number >= last[host]);
      last[host] = is.number;
      if (on_host(host) == 0)
        continue; // what it knows need not have been told to others
      const auto& members =
        seen.try_emplace(is.number, is.members).first->second;
      CHECK(is.members == members);
    }
    for (std::size_t host = 0; host < all_hosts; ++host)
      if (on_host(host) > 0)
        comm::tell_step_done(folder(host), epoch(host).number);
  }
  CHECK(keepers.size() > 1);
  for (std::size_t host = 0; host < all_hosts; ++host)
    if (on_host(host) == 0 && ranks.size() < size)
      join(start(host * ranks_of_host));
  look(10s);
  numbers living, members = epoch().members;
  for (auto& [number, one] : ranks)
    living.push_back(number);
  std::ranges::sort(members);
  CHECK(members == living);
  check_members(epoch().members);
}

TEST_CASE_FIXTURE(job, "the network breaks at any time, and ranks end: no two "
                       "groups go on") {
  start_all();
  splitmix64 draw{44};
  std::array<int, all_hosts> down{}; // rounds
  const auto has_ranks = [&](std::size_t host) {
    return std::ranges::any_of(
      ranks, [&](auto& one) { return one.second.host == host; });
  };
  for (int i = 0; i < 24; ++i) {
    for (std::size_t host = 0; host < all_hosts; ++host) {
      if (down[host] == 0 && draw.below(6) == 0) {
        on.cut(host);
        down[host] = static_cast<int>(1 + draw.below(4));
      } else if (down[host] > 0 && --down[host] == 0) {
        on.is_down[host] = false;
      }
      if (has_ranks(host) && draw.below(8) == 0)
        end(std::ranges::find_if(ranks, [&](auto& one) {
              return one.second.host == host;
            })->first);
      if (!has_ranks(host) && draw.below(2) == 0)
        forget(host);
      while (ranks.size() < size && draw.below(3) > 0)
        join(start(host * ranks_of_host + draw.below(ranks_of_host)));
    }
    look(std::chrono::milliseconds{draw.below(200) * 20}); // checks
    for (std::size_t host = 0; host < all_hosts; ++host)
      if (has_ranks(host) && epoch(host).number > 0)
        comm::tell_step_done(folder(host), epoch(host).number);
  }
  CHECK(seen.size() > 5);
  CHECK(keepers.size() > 1);
  // When all is whole again, the hosts go on if enough have a vote.
  comm::job_epoch newest;
  for (std::size_t host = 0; host < all_hosts; ++host) {
    on.is_down[host] = false;
    if (has_ranks(host) && epoch(host).number > newest.number)
      newest = epoch(host);
  }
  const bool may_go_on = have_votes_after(newest);
  if (!has_ranks(0))
    join(start(0)); // others may know its address alone
  look(20s);
  for (auto& [number, one] : ranks)
    CHECK((epoch(one.host).number == epoch(ranks.begin()->second.host).number
           || !may_go_on));
  for (const auto member : epoch(ranks.begin()->second.host).members)
    CHECK((ranks.contains(member) || !may_go_on));
}

} // TEST_SUITE("apps.elastic.network_rendezvous")
