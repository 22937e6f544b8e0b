// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/remote/gate.hpp>

#include <support/caught.hpp>
#include <support/files.hpp>
#include <support/own_network.hpp>
#include <support/skip_case.hpp>

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::test;
using namespace troupe::actors;
using namespace std::chrono_literals;

TEST_SUITE("actors.gate") {

namespace {

constexpr auto host = "127.0.0.1";

std::chrono::steady_clock::time_point in(std::chrono::milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}

descriptor connect_to(std::uint16_t port) {
  const auto at = parse_loopback(host, port);
  descriptor socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  REQUIRE(::connect(socket.get(), at.get(), at.size) == 0);
  return socket;
}

/// Waits until the other end closes. Returns what it sent before.
std::string rest_of(const descriptor& socket) {
  std::string text;
  char some[64];
  for (;;) {
    const auto n = ::recv(socket.get(), some, sizeof some, 0);
    if (n <= 0)
      return text;
    text.append(some, static_cast<std::size_t>(n));
  }
}

struct own_folder {
  temporary_folder made; // of mode 0700
  std::string path() const { return made.path().string(); }
};

way_in way(const own_folder& folder, std::uint16_t port = 0) {
  return {.host = host, .port = port, .folder = folder.path()};
}

void ignore(const passage&, std::uint64_t, std::uint16_t) {}

} // namespace

TEST_CASE("a client that knows the pass is admitted with a working socket") {
  const own_folder folder;
  std::atomic<int> come{0};
  gate in_gate{way(folder),
               {[&](const passage& by, std::uint64_t process, std::uint16_t) {
                 (void)!::send(by.socket.get(), "hello", 5, 0);
                 come += int(process);
               }}};
  for (int i = 0; i < 3; ++i) {
    const auto come_in = knock(way(folder, in_gate.port()), 1, in(20s));
    CHECK(rest_of(come_in.through.socket) == "hello");
    CHECK(come_in.own_address == host);
  }
  CHECK(come == 3);
}

TEST_CASE("connections that send a wrong pass are closed and not admitted") {
  const own_folder folder;
  std::atomic<int> come{0};
  gate in_gate{way(folder),
               {[&](const passage&, std::uint64_t, std::uint16_t) { ++come; }}};
  // The first message of a CAF program, here with a length of 2^32 - 1.
  std::string header(32, '\0');
  header[4] = header[5] = header[6] = header[7] = '\xff';
  for (const auto& sent : {header, std::string(32, 'x'), std::string(4096, 'x'),
                           header.substr(0, 31) + "yz"}) {
    const auto socket = connect_to(in_gate.port());
    REQUIRE(::send(socket.get(), sent.data(), sent.size(), MSG_NOSIGNAL)
            == static_cast<ssize_t>(sent.size()));
    CHECK(rest_of(socket).empty());
  }
  CHECK(come == 0);
}

TEST_CASE("silent connections do not keep other clients out") {
  const own_folder folder;
  gate in_gate{way(folder), {ignore}};
  std::vector<descriptor> mute;
  for (int i = 0; i < 100; ++i)
    mute.push_back(connect_to(in_gate.port()));
  CHECK(knock(way(folder, in_gate.port()), 1, in(20s)).through.socket);
  CHECK(rest_of(mute.front()).empty()); // the oldest one was closed
}

TEST_CASE("the pass file is private, new for each gate and removed with it") {
  const own_folder folder;
  const auto read = [](const std::string& path) {
    std::ifstream file{path, std::ios::binary};
    return std::string{std::istreambuf_iterator<char>{file}, {}};
  };
  std::string first, path;
  {
    gate one{way(folder), {ignore}};
    path = pass_path(folder.path(), one.port());
    struct stat found {};
    REQUIRE(::stat(path.c_str(), &found) == 0);
    CHECK((found.st_mode & 0777) == 0600);
    first = read(path);
    CHECK(first.size() == 64);
    CHECK(first.substr(0, 32) != first.substr(32));
  }
  CHECK_FALSE(std::filesystem::exists(path));
  gate other{way(folder), {ignore}};
  CHECK(read(pass_path(folder.path(), other.port())) != first);
}

TEST_CASE("a gate refuses a pass folder that other users can access") {
  const own_folder folder;
  ::chmod(folder.path().c_str(), 0755);
  const auto make = [&] { gate{way(folder, 0), {ignore}}; };
  CHECK(caught(make).code() == errc::invalid_argument);
  CHECK(caught([&] { pass_path(folder.path() + "/none", 1); }).code()
        == errc::io_failure);
}

TEST_CASE("a folder of one run has one gate") {
  const own_folder folder;
  gate one{way(folder), {ignore}};
  const auto e = caught([&] { gate{way(folder), {ignore}}; });
  CHECK(e.code() == errc::peer_failure);
  CHECK(says(e, "process 0 is there already, at 127.0.0.1:"
                  + std::to_string(one.port()) + ": two have this number"));
  CHECK(ports_of_passes(folder.path()) == std::vector{one.port()});
  CHECK(knock(way(folder, one.port()), 1, in(20s)).through.socket);
}

TEST_CASE("a pass that a run has left in its folder does not matter") {
  const own_folder folder;
  std::uint16_t port = 0;
  {
    gate gone{way(folder), {ignore}};
    port = gone.port();
  }
  write_pass(pass_path(folder.path(), port), run_pass::random());
  CHECK(gate{way(folder), {ignore}}.port() != 0);
}

TEST_CASE("the error for a port in use names the port") {
  const own_folder folder;
  gate one{way(folder), {ignore}};
  const auto e = caught([&] { gate{way(folder, one.port()), {ignore}}; });
  CHECK(e.code() == errc::peer_failure);
  CHECK(says(e, std::to_string(one.port())));
  CHECK(knock(way(folder, one.port()), 1, in(20s)).through.socket);
}

TEST_CASE("knock fails after its deadline or without a pass file") {
  const own_folder folder;
  // A listener that never answers, with the pass of a run that has ended.
  const descriptor mute{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  const auto at = parse_loopback(host, 0);
  REQUIRE(::bind(mute.get(), at.get(), at.size) == 0);
  REQUIRE(::listen(mute.get(), 8) == 0);
  const auto port = own_address(mute.get()).port();
  std::ofstream{pass_path(folder.path(), port)} << std::string(64, 'p');
  auto e = caught([&] { knock(way(folder, port), 1, in(50ms)); });
  CHECK(e.code() == errc::peer_failure);
  CHECK(says(e, "does not answer"));
  CHECK(says(e, std::to_string(port)));
  std::filesystem::remove(pass_path(folder.path(), port));
  e = caught([&] { knock(way(folder, port), 1, in(20s)); });
  CHECK(e.code() == errc::peer_failure);
  CHECK(says(e, "no pass"));
}

TEST_CASE("a run is found by the pass in its folder, once it has one") {
  const own_folder folder;
  const auto e = caught([&] { find_run(host, folder.path(), in(20ms)); });
  CHECK(e.code() == errc::peer_failure);
  CHECK(says(e, folder.path()));
  std::ofstream{folder.path() + "/1.pass"} << "of a run that was killed";
  std::ofstream{folder.path() + "/notes.pass"} << "of something else";
  std::optional<gate> late;
  std::thread opens{[&] {
    std::this_thread::sleep_for(20ms);
    late.emplace(way(folder), gate::listener{ignore});
  }};
  const auto found = find_run(host, folder.path(), in(20s));
  opens.join();
  CHECK(found == late->port());
}

TEST_CASE("knock rejects a listener that does not know the pass") {
  const own_folder folder, of_another;
  gate stranger{way(of_another), {ignore}};
  std::ofstream{pass_path(folder.path(), stranger.port())}
    << std::string(64, 'p');
  const auto e =
    caught([&] { knock(way(folder, stranger.port()), 1, in(20s)); });
  CHECK(e.code() == errc::peer_failure);
  CHECK(says(e, "not belong to this run"));
}

TEST_CASE("knock reports a port on which nobody listens") {
  const own_folder folder;
  std::uint16_t port = 0;
  {
    gate gone{way(folder), {ignore}};
    port = gone.port();
  }
  const auto e = caught([&] { knock(way(folder, port), 1, in(20s)); });
  CHECK(e.code() == errc::peer_failure);
  CHECK(says(e, "cannot reach process 0"));
}

TEST_CASE("between hosts, the gate opens to certificates of the job") {
  if (!own_network::is_possible())
    return skip_case("needs the right to make a network of its own");
  const own_network network;
  const auto job = comm::make_job_credentials(3);
  const auto way_of = [](const comm::job_credentials& own, std::uint16_t port) {
    return way_in{.host = own_network::address_of(2),
                  .port = port,
                  .credentials =
                    std::make_shared<const comm::job_credentials>(own)};
  };
  std::atomic<std::uint64_t> come{0};
  gate in_gate{way_of(job[0], 0),
               {[&](const passage& by, std::uint64_t process, std::uint16_t) {
                 come = process;
                 (void)!::send(by.socket.get(), "hello", 5, 0);
               }}};
  CHECK(in_gate.address() == own_network::address_of(2));
  const auto port = in_gate.port();
  const auto second = knock(way_of(job[2], port), 2, in(20s));
  CHECK(rest_of(second.through.socket) == "hello"); // passed on, then the end
  CHECK(come == 2);
  // Process 1 says that it is process 2.
  come = 0;
  const auto e = caught([&] { knock(way_of(job[1], port), 2, in(20s)); });
  CHECK(e.code() == errc::peer_failure);
  CHECK(says(e, "does not belong to this run"));
  auto stranger = job[1]; // has a certificate of the job, but not its secrets
  stranger.knock = {};
  CHECK(caught([&] { knock(way_of(stranger, port), 1, in(20s)); }).code()
        == errc::peer_failure);
  const auto other = comm::make_job_credentials(2);
  CHECK(says(caught([&] { knock(way_of(other[1], port), 1, in(20s)); }),
             "another job"));
  CHECK(come == 0);
}

TEST_CASE("between hosts, both ends use the interface that is named") {
  if (!own_network::is_possible())
    return skip_case("needs the right to make a network of its own");
  const own_network network;
  const auto job = comm::make_job_credentials(2);
  const auto way_of = [&](std::size_t process, const std::string& interface,
                          std::uint16_t port = 0) {
    return way_in{.host = own_network::address_of(2),
                  .port = port,
                  .credentials =
                    std::make_shared<const comm::job_credentials>(job[process]),
                  .interface = interface};
  };
  gate in_gate{way_of(0, "lo:2"), {ignore}};
  CHECK(in_gate.address() == own_network::address_of(2));
  CHECK(knock(way_of(1, "lo:3", in_gate.port()), 1, in(20s)).own_address
        == own_network::address_of(3));
  CHECK(says(caught([&] {
               gate{way_of(0, "lo:3"), {ignore}};
             }),
             "host '10.77.0.2' leads to 10.77.0.2, which is no address of "
             "network interface 'lo:3' (10.77.0.3)"));
  // Does not wait for an interface that is not there.
  CHECK(says(caught([&] { knock(way_of(1, "lo:9", 1), 1, in(20s)); }),
             "there is no network interface 'lo:9'"));
}

TEST_CASE("knock does not take another process of the job for process 0") {
  if (!own_network::is_possible())
    return skip_case("needs the right to make a network of its own");
  const own_network network;
  const auto job = comm::make_job_credentials(3);
  const auto way_of = [&](std::size_t process, std::uint16_t port) {
    return way_in{.host = own_network::address_of(1),
                  .port = port,
                  .credentials = std::make_shared<const comm::job_credentials>(
                    job[process])};
  };
  gate of_second{way_of(2, 0), {ignore}};
  const auto e =
    caught([&] { knock(way_of(1, of_second.port()), 1, in(20s)); });
  CHECK(says(e, "does not belong to this run"));
}

TEST_CASE("a host that cannot be reached is named") {
  if (!own_network::is_possible())
    return skip_case("needs the right to make a network of its own");
  const own_network network; // without a way out
  const way_in way{.host = "192.0.2.1",
                   .port = 1,
                   .credentials = std::make_shared<const comm::job_credentials>(
                     comm::make_job_credentials(2)[1])};
  CHECK(says(caught([&] { knock(way, 1, in(1ms)); }),
             "cannot reach process 0 at 192.0.2.1:1: Network is unreachable"));
}

TEST_CASE("a wait for process 0 can be ended") {
  if (!own_network::is_possible())
    return skip_case("needs the right to make a network of its own");
  const own_network network; // nobody listens there
  const way_in way{.host = own_network::address_of(1),
                   .port = 4711,
                   .credentials = std::make_shared<const comm::job_credentials>(
                     comm::make_job_credentials(2)[1])};
  int checks = 0;
  const auto e = caught([&] {
    knock(way, 1, in(60s), [&] {
      if (++checks == 3)
        throw error(errc::cancelled, "enough");
    });
  });
  CHECK(e.code() == errc::cancelled);
  CHECK(checks == 3);
}

} // TEST_SUITE("actors.gate")
