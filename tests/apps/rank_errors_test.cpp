// SPDX-License-Identifier: Apache-2.0
//
// What can be wrong with the ranks of a job, and the line that says so. The
// ranks are started without `troupe launch`, as other launchers do.
#include "apps/command_runner.hpp"

#include <actors/remote/job_files.hpp>
#include <support/caught.hpp>
#include <support/own_network.hpp>
#include <support/skip_case.hpp>
#include <troupe/base/version.hpp>
#include <troupe/comm/engine/join.hpp>
#include <troupe/kernels/kernel_options.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <sys/socket.h>
#include <unistd.h>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("apps.rank_errors") {

namespace {

using namespace std::chrono_literals;

constexpr std::uint16_t port = 21'000; // in a network of the test's own

/// A rank as it is started: its number, the size of its job, further variables
/// and options, and what its error says. Empty: it has none, because it would
/// wait for others for long, and is ended when those with errors have ended.
struct started_rank {
  std::size_t rank = 0, size = 2;
  std::string variables = {}, options = {}, says = {};
  std::string program = {}; ///< empty: that of the mistake
};

struct mistake {
  std::string name;
  std::vector<started_rank> ranks;
  std::string program = TROUPE_COMMAND;
};

/// @param local_size 0: all ranks are on one host
std::string command_of(const mistake& m, const started_rank& r,
                       std::size_t local_size) {
  const auto local = local_size == 0 ? r.size : local_size;
  return "exec env TROUPE_RANK=" + std::to_string(r.rank)
         + " TROUPE_SIZE=" + std::to_string(r.size)
         + " TROUPE_LOCAL_RANK=" + std::to_string(r.rank % local)
         + " TROUPE_LOCAL_SIZE=" + std::to_string(local) + " TROUPE_JOB=errors-"
         + std::to_string(::getpid()) + " " + r.variables + " "
         + (r.program.empty() ? m.program : r.program)
         + " train mlp --synthetic --batch 4 --steps 2 --data-network trusted "
         + r.options;
}

/// Starts all ranks at once. Prints the exit codes of those that have errors.
std::string script_of(const mistake& m, std::size_t local_size) {
  std::string start, wait, end;
  for (std::size_t i = 0; i < m.ranks.size(); ++i) {
    const auto id = std::to_string(i);
    start += "( " + command_of(m, m.ranks[i], local_size) + " ) > out." + id
             + " 2> err." + id + " & p" + id + "=$!; ";
    (m.ranks[i].says.empty() ? end : wait) +=
      m.ranks[i].says.empty() ? "kill $p" + id + "; "
                              : "wait $p" + id + "; echo $?; ";
  }
  return "{ " + start + wait + end + "wait; }";
}

/// Without those that say that others are waited for.
words errors_in(const std::string& text) {
  auto lines = lines_of(text);
  std::erase_if(lines, [](const std::string& line) {
    return line.starts_with("rank ") && contains(line, "waits for the other");
  });
  return lines;
}

void check(const mistake& m, std::size_t local_size = 0) {
  CAPTURE(m.name);
  const temporary_folder folder;
  const auto codes = lines_of(run_in(folder, script_of(m, local_size)).out);
  std::size_t ended = 0;
  for (std::size_t i = 0; i < m.ranks.size(); ++i) {
    if (m.ranks[i].says.empty())
      continue;
    CAPTURE(i);
    CHECK(codes.at(ended++) == "1");
    const auto lines =
      errors_in(read_bytes(folder / ("err." + std::to_string(i))));
    REQUIRE(lines.size() == 1);
    INFO(lines[0]);
    CHECK(lines[0].starts_with("troupe: "));
    CHECK(contains(lines[0], m.ranks[i].says));
  }
}

/// Both say the same.
mistake both(const std::string& name, started_rank first, started_rank second,
             const std::string& says) {
  first.says = second.says = says;
  return {name, {std::move(first), std::move(second)}};
}

/// A mistake that each rank finds for itself. Who ends last can have heard only
/// that the other has left: which of them that is, is a matter of time.
void check_found_alone(mistake m, const std::string& reason) {
  for (auto& rank : m.ranks)
    rank.says = reason; // so that the script waits for it
  CAPTURE(m.name);
  const temporary_folder folder;
  for (const auto& code : lines_of(run_in(folder, script_of(m, 0)).out))
    CHECK(code == "1");
  std::string all;
  for (std::size_t i = 0; i < m.ranks.size(); ++i) {
    const auto lines =
      errors_in(read_bytes(folder / ("err." + std::to_string(i))));
    REQUIRE(lines.size() == 1);
    CHECK(lines[0].starts_with("troupe: "));
    all += lines[0] + "\n";
  }
  INFO(all);
  CHECK(contains(all, reason));
}

/// A copy of the command that takes itself for another version.
void write_other_version(const std::string& path) {
  const std::string own{TROUPE_VERSION};
  auto other = own;
  other.back() = own.back() == '9' ? '8' : '9';
  auto bytes = read_bytes(TROUPE_COMMAND);
  const auto end = std::string{'\0'}; // of a string in the program
  for (auto at = bytes.find(own + end); at != bytes.npos;
       at = bytes.find(own + end, at))
    bytes.replace(at, own.size(), other);
  write_bytes(path, bytes);
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
}

bool has_bfloat16() {
  try {
    (void)cpu_kernels({.factors = precision::bfloat16});
    return true;
  } catch (const error&) {
    return false;
  }
}

/// Listens at rank 0's address, as a foreign program might.
struct foreign_server {
  int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

  foreign_server() {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    REQUIRE(
      ::inet_pton(AF_INET, own_network::address_of(1).c_str(), &at.sin_addr)
      == 1);
    REQUIRE(::bind(socket, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
    REQUIRE(::listen(socket, 1) == 0);
  }
  ~foreign_server() { ::close(socket); }
};

} // namespace

TEST_CASE("MPI without mpirun is named") {
  check_found_alone({.name = "MPI without mpirun",
                     .ranks = {{.rank = 0, .options = "--comm mpi"},
                               {.rank = 1, .options = "--comm mpi"}}},
                    comm::mpi_support().is_built
                      ? "mpirun or srun has not started this process"
                      : "this build has no MPI");
}

TEST_CASE("each mistake with ranks of one host has one line") {
  std::vector<mistake> all{
    both("another number of ranks", {.rank = 0, .size = 2},
         {.rank = 1, .size = 3},
         "the processes differ in number of processes: 2 in process 0, 3 in "
         "process 1"),
    both("a rank beyond the number of ranks", {.rank = 0, .size = 2},
         {.rank = 2, .size = 3},
         "process 2 has come, but process 0 expects 2 processes"),
    both("another seed", {.rank = 0}, {.rank = 1, .options = "--seed 5"},
         "the processes differ in seed: 0 in process 0, 5 in process 1"),
  };
  if (has_bfloat16())
    all.push_back(both("another precision", {.rank = 0},
                       {.rank = 1, .options = "--precision bf16"},
                       "the processes differ in precision: fp32 in process 0, "
                       "bf16 in process 1"));
  auto no_memory =
    both("no shared memory", {.rank = 0}, {.rank = 1}, "shared memory of ");
  no_memory.program =
    "sh -c 'ulimit -f 100; exec \"$0\" \"$@\"' " + no_memory.program;
  all.push_back(no_memory);
  const temporary_folder elsewhere;
  const std::string other = elsewhere / "troupe";
  write_other_version(other);
  all.push_back(
    both("another version", {.rank = 0}, {.rank = 1, .program = other},
         "the processes differ in version of Troupe: " TROUPE_VERSION
         " in process 0, "));
  for (auto& m : all)
    check(m);
}

TEST_CASE("an engine whose module is missing is named") {
  if (!comm::gloo_support().is_built)
    return skip_case("needs Gloo");
  const temporary_folder elsewhere;
  const std::string program = elsewhere / "troupe";
  std::filesystem::copy_file(TROUPE_COMMAND, program);
  check_found_alone(
    {.name = "no module",
     .ranks = {{.rank = 0, .options = "--comm gloo"},
               {.rank = 1, .options = "--comm gloo"}},
     .program = program},
    "troupe_gloo.so, a part of Troupe, is not beside the program");
}

TEST_CASE("each mistake with ranks of several hosts has one line") {
  if (!own_network::is_possible() || !comm::gloo_support().is_built)
    return skip_case("needs Gloo, and the right to make a network of its own");
  const own_network network;
  const job_files own(2), of_another(2), old(2, 0h);
  const auto told = [](const job_files& files) {
    return "TROUPE_ADDRESS=" + own_network::address_of(1) + ":"
           + std::to_string(port) + " TROUPE_CREDENTIALS=" + files.path();
  };
  const std::vector<mistake> all{
    {"no address",
     {{.rank = 0,
       .says = "a run on several hosts needs TROUPE_ADDRESS (HOST:PORT of rank "
               "0), which is not set"}}},
    {"no credentials",
     {{.rank = 1,
       .variables = "TROUPE_ADDRESS=10.77.0.1:21000",
       .says = "a run on several hosts needs TROUPE_CREDENTIALS (see troupe "
               "credentials --help), which is not set"}}},
    {"no file of credentials",
     {{.rank = 1,
       .variables = told(own) + "/none",
       .says = "no credentials of process 1: "}}},
    {"a file of credentials in an elastic job",
     {{.rank = 1,
       .variables = told(own) + "/rank-1.credentials TROUPE_ELASTIC=1:2",
       .says = "/rank-1.credentials': an elastic job needs the folder"}}},
    {"credentials of another job",
     {{.rank = 0, .variables = told(own)},
      {.rank = 1,
       .variables = told(of_another),
       .says = "its certificate is of another job"}}},
    {"expired credentials",
     {{.rank = 0, .variables = told(old)},
      {.rank = 1,
       .variables = told(old),
       .says = "its certificate has expired"}}},
    {"an address that leads to loopback",
     {{.rank = 0,
       .variables =
         "TROUPE_ADDRESS=localhost:21000 TROUPE_CREDENTIALS=" + own.path(),
       .says = "host 'localhost' leads to "}}},
    {"an address of another host",
     {{.rank = 0,
       .variables =
         "TROUPE_ADDRESS=192.0.2.1:21000 TROUPE_CREDENTIALS=" + own.path(),
       .says = "cannot listen on 192.0.2.1:21000: Cannot assign requested "
               "address"}}},
    {"no such interface",
     {{.rank = 1,
       .variables = told(own),
       .options = "--interface lo:9",
       .says = "there is no network interface 'lo:9'; this host has lo ("}}},
  };
  for (auto& m : all)
    check(m, 1);
  const foreign_server server;
  check({"a port in use",
         {{.rank = 0,
           .variables = told(own),
           .says = "cannot listen on 10.77.0.1:21000: Address already in "
                   "use"}}},
        1);
}

} // TEST_SUITE("apps.rank_errors")
