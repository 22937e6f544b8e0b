// SPDX-License-Identifier: Apache-2.0
#include "../values.hpp"

#include <troupe/base/files/descriptor.hpp>
#include <troupe/comm/shm/join.hpp>

#include <support/caught.hpp>

#include <doctest/doctest.h>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace comm_test;
using namespace troupe::comm;
using namespace std::chrono_literals;
using troupe::test::caught;
using troupe::test::says;

TEST_SUITE("comm.shm.join") {

namespace {

using ends_of_group = std::vector<std::unique_ptr<communicator>>;

/// A process's attempt to join, on a thread of its own.
class attempt {
public:
  explicit attempt(shm_group_options options)
    : thread_([this, options = std::move(options)] {
        try {
          ends_ = join_shm_group(options);
        } catch (const error& e) {
          failure_ = e;
          failed_ = true;
        }
      }) {}

  bool has_failed() const { return failed_; }

  ends_of_group ends() {
    wait();
    CHECK(!failure_);
    return std::move(ends_);
  }
  error failure() {
    wait();
    REQUIRE(failure_);
    return *failure_;
  }

private:
  void wait() {
    if (thread_.joinable())
      thread_.join();
  }

  ends_of_group ends_;
  std::optional<error> failure_;
  std::atomic<bool> failed_{false};
  std::jthread thread_;
};

/// Connects to the socket as soon as it is there.
descriptor stranger_at(const std::string& path) {
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  std::memcpy(at.sun_path, path.data(), path.size());
  for (;;) {
    descriptor made{::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)};
    if (::connect(made.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) == 0)
      return made;
    std::this_thread::sleep_for(1ms);
  }
}

} // namespace

TEST_CASE("processes get the ranks that they want, in whichever order they "
          "join") {
  const auto path = socket_path();
  const std::vector<std::size_t> wanted[] = {{1, 2, 5}, {0}, {3, 4}};
  attempt last{
    {.path = path, .process = 2, .processes = 3, .ranks = wanted[2]}};
  attempt middle{
    {.path = path, .process = 1, .processes = 3, .ranks = wanted[1]}};
  attempt first{
    {.path = path, .process = 0, .processes = 3, .ranks = wanted[0]}};
  std::size_t process = 0;
  for (auto* joined : {&first, &middle, &last}) {
    std::vector<std::size_t> got;
    for (auto& end : joined->ends()) {
      got.push_back(end->rank());
      CHECK(end->size() == 6);
    }
    CHECK(got == wanted[process++]);
  }
  CHECK(!std::filesystem::exists(path));
}

TEST_CASE("each rank belongs to one process") {
  const auto path = socket_path();
  attempt first{{.path = path, .processes = 2, .ranks = {0, 3}}};
  const auto twice = caught([&] {
    join_shm_group(
      {.path = path, .process = 1, .processes = 2, .ranks = {2, 3}});
  });
  CHECK(says(twice, "process 1 has ranks of another process"));
  attempt second{{.path = path, .process = 1, .processes = 2, .ranks = {1}}};
  for (auto* process : {&first, &second})
    CHECK(says(process->failure(), "no process has rank 2"));
}

TEST_CASE("options that make no sense are refused") {
  const auto path = socket_path();
  for (const shm_group_options& wrong :
       {shm_group_options{.path = path, .processes = 0},
        shm_group_options{.path = path, .process = 2, .processes = 2},
        shm_group_options{.path = path, .processes = 65},
        shm_group_options{.path = path, .ranks = {56}},
        shm_group_options{.path = ""},
        shm_group_options{.path = std::string(200, 'x')}})
    CHECK(caught([&] { join_shm_group(wrong); }).code()
          == errc::invalid_argument);
}

TEST_CASE("a path that is taken is an error, and stays") {
  const auto path = socket_path();
  std::ofstream{path} << "mine";
  const auto e = caught([&] { join_shm_group({.path = path}); });
  CHECK(e.code() == errc::io_failure);
  CHECK(says(e, path));
  CHECK(std::filesystem::file_size(path) == 4);
  std::filesystem::remove(path);
}

TEST_CASE("a process that does not fit is refused, and the others join") {
  const auto path = socket_path();
  attempt first{{.path = path, .processes = 3}};
  attempt second{{.path = path, .process = 1, .processes = 3}};
  const auto e = caught(
    [&] { join_shm_group({.path = path, .process = 1, .processes = 2}); });
  CHECK(e.code() == errc::invalid_argument);
  CHECK(says(e, "process 1 is one of 2 processes, process 0 one of 3"));
  attempt third{{.path = path, .process = 2, .processes = 3}};
  CHECK(first.ends().size() == 1);
  CHECK(second.ends().size() == 1);
  CHECK(third.ends().size() == 1);
}

TEST_CASE("a number that is taken is refused") {
  const auto path = socket_path();
  attempt first{{.path = path, .processes = 3}};
  attempt one{{.path = path, .process = 1, .processes = 3}};
  attempt same{{.path = path, .process = 1, .processes = 3}};
  while (!one.has_failed() && !same.has_failed())
    std::this_thread::sleep_for(1ms);
  attempt third{{.path = path, .process = 2, .processes = 3}};
  auto& refused = one.has_failed() ? one : same;
  CHECK(says(refused.failure(), "process 1 is there already"));
  for (auto* process : {&first, &refused == &one ? &same : &one, &third})
    CHECK(process->ends().size() == 1);
}

TEST_CASE("processes that do not come are named after the timeout") {
  const auto path = socket_path();
  attempt second{{.path = path, .process = 1, .processes = 4, .timeout = 5s}};
  const auto e = caught(
    [&] { join_shm_group({.path = path, .processes = 4, .timeout = 300ms}); });
  CHECK(e.code() == errc::peer_failure);
  CHECK(says(e, "did not join in time: 2, 3"));
  CHECK(second.failure().code() == errc::peer_failure);
  CHECK(!std::filesystem::exists(path));
  const auto alone = caught([&] {
    join_shm_group(
      {.path = path, .process = 1, .processes = 2, .timeout = 50ms});
  });
  CHECK(alone.code() == errc::peer_failure);
  CHECK(says(alone, "process 0 does not listen at " + path));
}

TEST_CASE("strangers change nothing") {
  const auto path = socket_path();
  attempt first{{.path = path, .processes = 2}};
  { auto left = stranger_at(path); }
  auto talks = stranger_at(path);
  const std::string nonsense(5000, 'x');
  CHECK(::send(talks.get(), nonsense.data(), nonsense.size(), MSG_NOSIGNAL)
        > 0);
  attempt second{{.path = path, .process = 1, .processes = 2}};
  CHECK(first.ends().size() == 1);
  CHECK(second.ends().size() == 1);
}

} // TEST_SUITE("comm.shm.join")
