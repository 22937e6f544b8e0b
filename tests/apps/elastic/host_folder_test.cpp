// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/elastic/host_folder.hpp>
#include <troupe/apps/elastic/vote_text.hpp>
#include <troupe/base/error.hpp>

#include <support/caught.hpp>
#include <support/files.hpp>

#include <doctest/doctest.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

using namespace troupe;
using namespace troupe::apps;
using namespace troupe::test;

TEST_SUITE("apps.elastic.host_folder") {

namespace {

comm::job_epoch epoch(std::uint64_t number) {
  return {number,
          {4, 5},
          false,
          {0, 1},
          "10.0.0.1",
          4002,
          {{"a", "f1", "10.0.0.1"}, {"b", "f2", "10.0.0.2"}},
          "f1-1"};
}

} // namespace

TEST_CASE("what a host keeps of its votes is read again") {
  const temporary_folder at;
  const auto folder = at.path().string();
  vote_memory votes{"f1", {}, {}, {}};
  for (const auto& more :
       {vote_memory{"f1"}, vote_memory{"f1", {}, {3, "f2"}},
        vote_memory{"f1", {}, {3, "f2"}, epoch_proposal{{2, "f1"}, epoch(2)}},
        vote_memory{
          "f1", epoch(1), {4, "f1"}, epoch_proposal{{4, "f1"}, epoch(2)}}}) {
    write_votes(folder, more);
    if (more.decided)
      comm::write_epoch(folder, *more.decided);
    CHECK(read_votes(folder) == more);
    auto without = more;
    without.decided.reset();
    CHECK(parse_votes(to_text(more), "f") == without);
  }
}

TEST_CASE("a proposal for an epoch that is decided is forgotten") {
  const temporary_folder at;
  const auto folder = at.path().string();
  write_votes(folder,
              {"f1", {}, {4, "f1"}, epoch_proposal{{4, "f1"}, epoch(2)}});
  comm::write_epoch(folder, epoch(2)); // and the process ends
  CHECK(read_votes(folder) == vote_memory{"f1", epoch(2), {4, "f1"}});
}

TEST_CASE("a folder without votes gets a name that no other one has") {
  const temporary_folder at;
  const auto one = read_votes(at.path().string()),
             other = read_votes(at.path().string());
  CHECK(one.promised == ballot{});
  CHECK_FALSE(one.accepted);
  CHECK_FALSE(one.folder.empty());
  CHECK(one.folder != other.folder);
}

TEST_CASE("a process that is no member any more is killed, and others are "
          "not") {
  const temporary_folder at;
  const auto folder = at.path().string();
  const auto start = [&](std::uint64_t number) {
    const auto process = ::fork();
    if (process == 0) {
      ::alarm(60); // in case nobody kills it
      const job_processes entered{folder, number, number + 1};
      for (;;)
        ::pause();
    }
    while (!std::filesystem::exists(at / ("process-" + std::to_string(number))))
      ::usleep(1000);
    return process;
  };
  const auto member = start(4), excluded = start(5);
  comm::write_epoch(folder, epoch(1));
  auto next = epoch(2);
  next.members = {4};
  next.hosts = {};
  begin_here(folder, job_processes{folder, 6, 7}, next, {});
  CHECK(comm::read_epoch(folder) == next);
  int status = 0;
  CHECK(::waitpid(excluded, &status, 0) == excluded);
  CHECK(WIFSIGNALED(status));
  CHECK(::waitpid(member, &status, WNOHANG) == 0);
  ::kill(member, SIGKILL);
  ::waitpid(member, &status, 0);
}

TEST_CASE("a file that has no votes is refused") {
  const temporary_folder at;
  for (const char* text :
       {"", "troupe", "troupe votes of \n", "troupe votes of f1",
        "troupe votes of f1 f2\n", "troupe votes of f1\npromised\n",
        "troupe votes of f1\npromised 0 f2\n",
        "troupe votes of f1\npromised -1 f2\n",
        "troupe votes of f1\npromised 1\n",
        "troupe votes of f1\npromised 1 f2 f3\n",
        "troupe votes of f1\naccepted 1 f2\n",
        "troupe votes of f1\naccepted 1 f2\ntroupe epoch 1 of 1 new\n0\n",
        "troupe votes of f1\nor 1 f2\n"}) {
    CAPTURE(text);
    write_bytes(at / "votes", text);
    CHECK(caught([&] { read_votes(at.path().string()); }).code()
          == errc::bad_file);
  }
}

} // TEST_SUITE("apps.elastic.host_folder")
