// SPDX-License-Identifier: Apache-2.0
//
// How hosts decide which epoch follows another one. No time passes here, and
// nothing is sent: a test delivers what it likes, in the order that it likes.
#include <troupe/apps/elastic/epoch_consensus.hpp>
#include <troupe/base/random.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::apps;

TEST_SUITE("apps.elastic.epoch_consensus") {

namespace {

using names = std::vector<std::string>;

/// With a member on each host; the first host keeps the rendezvous.
comm::job_epoch epoch_on(std::uint64_t number, const names& folders) {
  comm::job_epoch epoch;
  epoch.number = number;
  for (std::size_t host = 0; host < folders.size(); ++host) {
    epoch.members.push_back(host);
    epoch.hosts.push_back(host);
    epoch.sites.push_back({folders[host], folders[host], "10.0.0.1"});
  }
  return epoch;
}

/// Hosts that reach each other at once.
struct hosts {
  std::map<std::string, vote_memory> all;

  explicit hosts(const names& folders) {
    for (auto& folder : folders)
      all[folder] = {folder};
  }
  vote_memory& operator[](const std::string& folder) { return all[folder]; }

  /// One round: the candidate asks, they answer.
  void ask(epoch_candidate& by, const names& reached) {
    std::vector<vote_memory> answers;
    for (auto& folder : reached) {
      answer(all[folder], by.request());
      answers.push_back(all[folder]);
    }
    by.take(std::move(answers));
  }
  /// All have decided the first epoch, which "a" has proposed.
  void begin() {
    names folders, others;
    for (auto& [folder, memory] : all)
      folders.push_back(folder);
    others.assign(folders.begin() + 1, folders.end());
    epoch_candidate a{all.at("a")};
    ask(a, others);
    REQUIRE(a.propose(epoch_on(1, folders)));
    ask(a, others);
    ask(a, others);
  }
  std::uint64_t number(const std::string& folder) {
    return all[folder].decided ? all[folder].decided->number : 0;
  }
};

} // namespace

TEST_CASE("the first epoch is decided when all of its hosts have accepted it") {
  hosts of{{"a", "b", "c"}};
  epoch_candidate a{of["a"]};
  const auto first = epoch_on(1, {"a", "b", "c"});
  CHECK_FALSE(a.propose(first));
  of.ask(a, {"b"});
  CHECK_FALSE(a.propose(first));
  of.ask(a, {"b", "c"});
  CHECK_FALSE(a.has_votes()); // there is no epoch yet
  REQUIRE(a.propose(first));
  of.ask(a, {"b"});
  CHECK(of.number("a") == 0);
  of.ask(a, {"b", "c"});
  CHECK(of.number("a") == 1);
  CHECK(of.number("b") == 0); // is told with the next request
  of.ask(a, {"b", "c"});
  CHECK(of["b"].decided == of["a"].decided);
  CHECK(of["c"].decided == of["a"].decided);
  CHECK_FALSE(of["a"].decided->origin.empty());
}

TEST_CASE("more than half of the hosts decide what follows, or half with the "
          "one that kept the rendezvous") {
  struct {
    names all, reached;
    std::string by;
    bool may;
  } const cases[] = {{{"a", "b", "c"}, {"b"}, "a", true},
                     {{"a", "b", "c"}, {"c"}, "b", true},
                     {{"a", "b", "c"}, {}, "a", false},
                     {{"a", "b"}, {}, "a", true},
                     {{"a", "b"}, {}, "b", false},
                     {{"a", "b"}, {"a"}, "b", true},
                     {{"a", "b", "c", "d"}, {"a"}, "c", true},
                     {{"a", "b", "c", "d"}, {"c"}, "b", false},
                     {{"a", "b", "c", "d"}, {"c", "d"}, "b", true}};
  for (auto& one : cases) {
    CAPTURE(one.all.size());
    CAPTURE(one.by);
    CAPTURE(one.reached.size());
    hosts of{one.all};
    of.begin();
    epoch_candidate by{of[one.by]};
    of.ask(by, one.reached);
    of.ask(by, one.reached); // "a" had the higher ballot
    CHECK(by.has_votes() == one.may);
    auto members = one.reached;
    members.push_back(one.by);
    CHECK(by.propose(epoch_on(2, members)) == one.may);
    of.ask(by, one.reached);
    CHECK((of.number(one.by) == 2) == one.may);
  }
}

TEST_CASE("who has decided one epoch needs no promises for the next") {
  hosts of{{"a", "b", "c"}};
  of.begin();
  epoch_candidate a{of["a"]};
  of.ask(a, {"b", "c"});
  for (std::uint64_t number = 2; number < 5; ++number) {
    REQUIRE(a.propose(epoch_on(number, {"a", "b", "c"})));
    of.ask(a, {"b", "c"});
    CHECK(of.number("a") == number);
  }
}

TEST_CASE("a host that is alone decides alone") {
  hosts of{{"a", "b"}};
  of.begin();
  epoch_candidate a{of["a"]};
  REQUIRE(a.propose(epoch_on(2, {"a"})));
  CHECK(of.number("a") == 2);
  REQUIRE(a.propose(epoch_on(3, {"a"})));
  CHECK(of.number("a") == 3);
}

TEST_CASE("who takes it over proposes again what may have been decided") {
  hosts of{{"a", "b", "c"}};
  of.begin();
  epoch_candidate a{of["a"]};
  of.ask(a, {"b", "c"});
  REQUIRE(a.propose(epoch_on(2, {"a", "b"})));
  answer(of["b"], a.request()); // and a ends
  epoch_candidate c{of["c"]};
  of.ask(c, {"b"});
  of.ask(c, {"b"});
  CHECK_FALSE(c.propose(epoch_on(2, {"b", "c"})));
  of.ask(c, {"b"});
  CHECK(of["c"].decided->members.size() == 2);
  CHECK(of["c"].decided->sites.back().folder == "b");
}

TEST_CASE("of two that hosts have accepted, the one with the higher ballot is "
          "proposed again") {
  hosts of{{"a", "b", "c"}};
  of.begin();
  epoch_candidate a{of["a"]};
  of.ask(a, {"b", "c"});
  REQUIRE(a.propose(epoch_on(2, {"a", "b"}))); // only it has accepted that
  epoch_candidate b{of["b"]};
  of.ask(b, {"c"});
  of.ask(b, {"c"});
  REQUIRE(b.propose(epoch_on(2, {"b", "c"})));
  answer(of["c"], b.request()); // decided, but nobody knows
  epoch_candidate again{of["a"]};
  of.ask(again, {"c"});
  of.ask(again, {"c"});
  of.ask(again, {"c"});
  CHECK(of["a"].decided->sites.front().folder == "b");
}

TEST_CASE("a host that has promised more accepts nothing with a lower ballot") {
  hosts of{{"a", "b", "c"}};
  of.begin();
  epoch_candidate a{of["a"]};
  of.ask(a, {"b", "c"});
  epoch_candidate b{of["b"]};
  of.ask(b, {"c"});
  of.ask(b, {"c"});
  const auto promised = of["c"].promised;
  REQUIRE(a.propose(epoch_on(2, {"a", "c"})));
  answer(of["c"], a.request());
  CHECK_FALSE(of["c"].accepted);
  CHECK(of["c"].promised == promised);
  of.ask(a, {"c"}); // it takes a higher ballot then
  of.ask(a, {"c"});
  of.ask(a, {"c"});
  CHECK(of.number("a") == 2);
}

TEST_CASE("a request that comes late changes nothing") {
  hosts of{{"a", "b", "c"}};
  of.begin();
  epoch_candidate a{of["a"]};
  of.ask(a, {"b", "c"});
  REQUIRE(a.propose(epoch_on(2, {"a", "b", "c"})));
  const auto late = a.request();
  of.ask(a, {"b", "c"});
  REQUIRE(a.propose(epoch_on(3, {"a", "b", "c"})));
  of.ask(a, {"b"});
  const auto accepted = of["b"];
  CHECK(accepted.accepted->epoch.number == 3);
  answer(of["b"], late);
  CHECK(of["b"] == accepted);
}

TEST_CASE("a host that has lost its folder has no vote until an epoch has "
          "members there") {
  hosts of{{"a", "b", "c"}};
  of.begin();
  of["new"] = {"new"};
  epoch_candidate b{of["b"]};
  of.ask(b, {"new"});
  of.ask(b, {"new"});
  CHECK_FALSE(b.has_votes());
  of.ask(b, {"c", "new"});
  of.ask(b, {"c", "new"});
  REQUIRE(b.propose(epoch_on(2, {"b", "c", "new"})));
  of.ask(b, {"c", "new"});
  of.ask(b, {"c", "new"});
  of.ask(b, {"new"});
  CHECK(b.has_votes());
}

TEST_CASE("who knows no epoch learns none from which the others cannot go "
          "on") {
  hosts of{{"a", "b", "c"}};
  of.begin();
  of["new"] = {"new"};
  epoch_candidate by{of["new"]};
  of.ask(by, {"b"});
  of.ask(by, {"b"});
  CHECK(by.knows_job());
  CHECK_FALSE(of["new"].decided);
  CHECK_FALSE(by.propose(epoch_on(1, {"new", "b"}))); // b is to end first
  SUBCASE("they can") {
    of.ask(by, {"b", "c"});
    of.ask(by, {"b", "c"});
    CHECK(of["new"].decided == of["b"].decided);
    CHECK(by.has_votes());
  }
  SUBCASE("it begins anew when they have ended") {
    of["other"] = {"other"};
    of.ask(by, {"other"});
    CHECK(by.propose(epoch_on(1, {"new", "other"})));
  }
  SUBCASE("nor does one that is asked") {
    epoch_candidate b{of["b"]};
    of.ask(b, {"new"});
    of.ask(b, {"new"});
    CHECK_FALSE(of["new"].decided);
    of.ask(b, {"new", "c"});
    of.ask(b, {"new", "c"});
    of.ask(b, {"new", "c"});
    CHECK(of["new"].decided == of["b"].decided);
  }
}

TEST_CASE("hosts of a job that began apart do not count") {
  hosts of{{"a", "b", "c"}};
  of.begin();
  hosts other{{"a", "b", "c"}};
  other["a"].promised.round = 7;
  other.begin();
  const auto before = other["c"];
  of["c"] = before;
  epoch_candidate a{of["a"]};
  const auto asked = a.request();
  of.ask(a, {"c"});
  of.ask(a, {"c"});
  CHECK(of["c"] == before);
  CHECK(a.request() == asked);
  CHECK_FALSE(a.has_votes());
}

namespace {

constexpr std::size_t founders = 3, all_hosts = 5;

/// Hosts that lose messages, their processes, and their folders. A host has one
/// process, whose number changes when it has lost its folder.
class played_hosts {
public:
  explicit played_hosts(std::uint64_t seed) : draw_(seed) {
    for (std::size_t host = 0; host < all_hosts; ++host)
      forget(host);
    begin();
  }

  void play(int actions) {
    while (actions-- > 0) {
      act();
      check();
    }
  }
  std::size_t decided() const { return texts_.size(); }
  std::size_t kept_by() const { return keepers_.size(); }

private:
  struct message {
    std::size_t to, from;
    std::optional<vote_request> asked;
    vote_memory answered;
  };
  struct host {
    vote_memory kept;
    std::uint64_t process = 0;
    std::unique_ptr<epoch_candidate> candidate; ///< uses `kept`
    std::map<std::size_t, vote_memory> answers; ///< that it has
  };

  std::size_t any() { return draw_.below(all_hosts); }

  void forget(std::size_t at) {
    auto& one = hosts_[at];
    one.candidate.reset();
    one.answers.clear();
    one.kept = {"f" + std::to_string(++drawn_)};
    one.process = drawn_;
  }
  /// Most jobs begin without trouble.
  void begin() {
    stand(0);
    const auto calm = draw_.below(8) > 0 ? 4 : 0;
    for (int round = 0; round < calm; ++round) {
      for (std::size_t host = 1; host < founders; ++host) {
        answer(hosts_[host].kept, hosts_[0].candidate->request());
        hosts_[0].answers[host] = hosts_[host].kept;
      }
      take(hosts_[0]);
      if (round == 0)
        propose(0);
    }
  }
  void stand(std::size_t at) {
    hosts_[at].answers.clear();
    hosts_[at].candidate = std::make_unique<epoch_candidate>(hosts_[at].kept);
  }
  void ask(std::size_t from, std::size_t to) {
    if (from != to && hosts_[from].candidate)
      under_way_.push_back({to, from, hosts_[from].candidate->request(), {}});
  }
  void deliver() {
    if (under_way_.empty())
      return;
    const auto at = draw_.below(under_way_.size());
    const auto come = under_way_[at];
    if (draw_.below(10) > 0) // else it comes once more
      under_way_.erase(under_way_.begin() + static_cast<std::ptrdiff_t>(at));
    auto& one = hosts_[come.to];
    if (come.asked) {
      if (one.kept.promised < come.asked->by)
        one.candidate.reset(); // it follows another one
      answer(one.kept, *come.asked);
      under_way_.push_back({come.from, come.to, {}, one.kept});
    } else if (one.candidate) {
      one.answers[come.from] = come.answered;
      take(one);
    }
  }
  void take(host& one) {
    std::vector<vote_memory> answers;
    for (auto& [from, told] : one.answers)
      answers.push_back(told);
    one.candidate->take(std::move(answers));
  }
  /// With the members of the last one that it can reach, and some others.
  void propose(std::size_t at) {
    auto& one = hosts_[at];
    if (!one.candidate)
      return;
    const auto& last = one.kept.decided;
    comm::job_epoch next;
    next.number = last ? last->number + 1 : 1;
    add(next, at, one.kept.folder, last);
    for (auto& [host, told] : one.answers)
      add(next, host, told.folder, last);
    if (!next.members.empty() && (last || next.members.size() == founders))
      (void)one.candidate->propose(std::move(next));
  }
  void add(comm::job_epoch& next, std::size_t host, const std::string& folder,
           const std::optional<comm::job_epoch>& last) {
    const auto process = std::stoull(folder.substr(1));
    next.sites.push_back({std::to_string(host), folder, "10.0.0.1"});
    if (last ? !last->rank_of(process) && draw_.below(3) > 0 : host >= founders)
      return;
    next.members.push_back(process);
    next.hosts.push_back(next.sites.size() - 1);
  }

  void act() {
    const auto at = any(), what = draw_.below(200);
    if (what < 1)
      forget(at);
    else if (what < 3)
      hosts_[at].candidate.reset(); // its process ends, another one goes on
    else if (what < 6)
      stand(at);
    else if (what < 10)
      lose(at, any());
    else if (what < 20)
      drop_message();
    else if (what < 40)
      propose(at);
    else if (what < 60)
      for (std::size_t to = 0; to < all_hosts; ++to)
        ask(at, to);
    else
      deliver();
  }
  void lose(std::size_t at, std::size_t other) {
    hosts_[at].answers.erase(other);
    if (hosts_[at].candidate)
      take(hosts_[at]);
  }
  void drop_message() {
    if (!under_way_.empty())
      under_way_.erase(
        under_way_.begin()
        + static_cast<std::ptrdiff_t>(draw_.below(under_way_.size())));
  }

  /// An epoch is in use if all of its members live and know it.
  bool is_in_use(const comm::job_epoch& epoch) const {
    return std::ranges::all_of(epoch.members, [&](auto process) {
      return std::ranges::any_of(hosts_, [&](const host& one) {
        return one.process == process && one.kept.decided == epoch;
      });
    });
  }

  void check() {
    if (!has_changed())
      return;
    std::set<std::string> in_use;
    for (auto& one : hosts_) {
      if (!one.kept.decided)
        continue;
      auto& epoch = *one.kept.decided;
      const auto text = comm::to_text(epoch);
      const auto known =
        texts_.try_emplace({epoch.origin, epoch.number}, text).first;
      REQUIRE(known->second == text);
      keepers_.insert(epoch.sites.front().host);
      if (is_in_use(epoch))
        in_use.insert(text);
    }
    REQUIRE(in_use.size() <= 1);
  }
  bool has_changed() {
    bool any = false;
    for (std::size_t host = 0; host < all_hosts; ++host)
      if (auto& kept = hosts_[host].kept; known_[host] != kept.decided) {
        known_[host] = kept.decided;
        any = true;
      }
    return any;
  }

  splitmix64 draw_;
  std::uint64_t drawn_ = 0;
  std::array<host, all_hosts> hosts_;
  std::array<std::optional<comm::job_epoch>, all_hosts> known_; ///< decided
  std::vector<message> under_way_;
  std::map<std::pair<std::string, std::uint64_t>, std::string> texts_;
  std::set<std::string> keepers_;
};

} // namespace

TEST_CASE("whatever is lost, in whatever order: no two epochs of one number "
          "are decided, and no two are in use at a time") {
  std::size_t decided = 0, keepers = 0;
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    CAPTURE(seed);
    played_hosts played{seed};
    played.play(300);
    decided += played.decided();
    keepers += played.kept_by() > 1;
  }
  CHECK(decided > 2000);
  CHECK(keepers > 150);
}

} // TEST_SUITE("apps.elastic.epoch_consensus")
