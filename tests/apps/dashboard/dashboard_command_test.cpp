// SPDX-License-Identifier: Apache-2.0
#include "apps/command_runner.hpp"

#include <dashboard/server/raw_client.hpp>
#include <support/files.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <csignal>
#include <cstdlib>
#include <optional>
#include <string>

using namespace troupe::test;
using troupe::dashboard::test::raw_answer;
using troupe::dashboard::test::raw_client;

TEST_SUITE("apps.dashboard") {

namespace {

/// The link that a command has printed.
struct printed_link {
  std::string host;
  std::uint16_t port = 0;
  std::string path; ///< with the token
};

std::optional<printed_link> find_link(const std::string& text,
                                      const std::string& before) {
  const std::string scheme = "http://";
  const auto line = text.find(before);
  const auto at = text.find(scheme, line);
  const auto end = text.find('\n', at);
  if (line == text.npos || at == text.npos || end == text.npos)
    return {};
  const auto link = text.substr(at + scheme.size(), end - at - scheme.size());
  const auto slash = link.find('/');
  const auto colon = link.find(':');
  return printed_link{
    link.substr(0, slash),
    static_cast<std::uint16_t>(std::stoul(link.substr(colon + 1))),
    link.substr(slash)};
}

raw_answer get(const printed_link& link, const std::string& path,
               const std::string& cookie = "") {
  raw_client client{link.port};
  client.send("GET " + path + " HTTP/1.1\r\nHost: " + link.host + "\r\n"
              + (cookie.empty() ? "" : "Cookie: " + cookie + "\r\n") + "\r\n");
  return client.receive_answer();
}

/// Follows a link once, as a browser does. Returns the cookie.
std::string log_in(const printed_link& link) {
  const auto answer = get(link, link.path);
  CHECK(answer.status == 303);
  const auto cookie = answer.header("Set-Cookie");
  return cookie.substr(0, cookie.find(';'));
}

} // namespace

TEST_CASE("a training is shown to who follows its link") {
  bool is_seen = false;
  const auto result = run_troupe(
    {"train", "mlp", "--synthetic", "--batch", "8", "--steps", "100000000",
     "--threads", "1", "--devices", "cpu:1", "--dashboard"},
    [&](pid_t process, const std::string& err) {
      const auto link = find_link(err, "dashboard, to look:");
      if (!link || err.find("mlp on cpu") == err.npos)
        return false;
      const auto cookie = log_in(*link);
      CHECK(get(*link, link->path).status == 401); // a second time
      auto run = get(*link, "/api/v1/run", cookie);
      while (run.status == 503) // not shown yet
        run = get(*link, "/api/v1/run", cookie);
      CHECK(run.status == 200);
      const auto answer = nlohmann::json::parse(run.body);
      CHECK(answer["command"] == "train mlp");
      CHECK(answer["pid"] == process);
      CHECK(answer["may_control"] == false);
      for (;;) {
        const auto series =
          nlohmann::json::parse(get(*link, "/api/v1/series", cookie).body);
        if (series["loss"].empty() || series["loss"][0].is_null())
          continue;
        CHECK(series["learning_rate"][0].is_number());
        break;
      }
      is_seen = true;
      ::kill(process, SIGINT);
      return true;
    });
  INFO(result.err);
  CHECK(is_seen);
  CHECK(result.code == 1); // it was stopped
}

TEST_CASE("each rank of a job shows its part") {
  const auto job =
    run_troupe({"launch", "--nodes", "2", "--", TROUPE_COMMAND, "train", "mlp",
                "--synthetic", "--batch", "8", "--steps", "3", "--threads", "1",
                "--dashboard"});
  INFO(job.err);
  CHECK(job.code == 0);
  const auto text = job.out + job.err;
  const auto first = find_link(text, "0| dashboard of rank 0, to look:");
  const auto second = find_link(text, "1| dashboard of rank 1, to look:");
  REQUIRE(first);
  REQUIRE(second);
  CHECK(first->port != second->port);
}

TEST_CASE("a job of which one rank alone has a dashboard is told what to do") {
  const auto job = run_troupe(
    {"launch", "--nodes", "2", "--grace", "0.2", "--", "/bin/sh", "-c",
     TROUPE_COMMAND " train mlp --synthetic --batch 8 --steps 1 --threads 1 "
                    "$([ $TROUPE_RANK = 1 ] && echo --dashboard)"});
  CHECK(fails_with(job, 1,
                   {"the processes differ in --dashboard, which all ranks need "
                    "or none: not given in process 0, given in process 1"}));
}

TEST_CASE("a file, or those of a job, are shown until the command is stopped") {
  const temporary_folder folder;
  const std::string file = folder / "a.trt", second = folder / "a.1.trt",
                    page = folder / "a.html";
  REQUIRE(run_troupe({"launch", "--nodes", "2", "--", TROUPE_COMMAND, "train",
                      "mlp", "--synthetic", "--batch", "8", "--steps", "3",
                      "--threads", "1", "--trace", file})
            .code
          == 0);
  for (const auto& files : {words{file}, words{second, file}}) {
    const auto result = run_troupe(words{"dashboard", "--json"} + files,
                                   [](pid_t process, const std::string&) {
                                     if (!catches(process, SIGTERM))
                                       return false;
                                     ::kill(process, SIGTERM);
                                     return true;
                                   });
    INFO(result.err);
    CHECK(result.code == 0);
    CHECK(result.out.starts_with("{\"link\":\"http://127.0.0.1:"));
  }
  CHECK(fails_with(run_troupe({"dashboard", file, file}), 1,
                   {"the traces are not of one run"}));
  CHECK(fails_with(run_troupe({"dashboard", file, "--address", "127.0.0.1"}), 2,
                   {"--address: an address is HOST:PORT"}));
  CHECK(
    fails_with(run_troupe({"dashboard", file, "--address", "127.0.0.1:65536"}),
               2, {"--address: the port must be from 0 to 65535, not 65536"}));
  const auto report =
    run_troupe({"trace", "report", second, file, "--out", page});
  INFO(report.err);
  CHECK(report.code == 0);
  CHECK(contains(read_bytes(page), "rank 1: check</td>"));
}

TEST_CASE("a dashboard whose link nobody can read is not served") {
  const temporary_folder folder;
  const std::string file = folder / "a.trt", errors = folder / "errors",
                    script = folder / "run.sh";
  REQUIRE(
    run_troupe({"train", "mlp", "--synthetic", "--batch", "8", "--steps", "1",
                "--threads", "1", "--devices", "cpu:1", "--trace", file})
      .code
    == 0);
  for (const std::string more : {"", " --json"}) {
    write_bytes(script, "exec timeout 20 " TROUPE_COMMAND " dashboard " + file
                          + more + " > /dev/full 2> " + errors + "\n");
    const int status = std::system(("sh " + script).c_str());
    CHECK(WEXITSTATUS(status) == 1);
    CHECK(read_bytes(errors) == "troupe: cannot write to standard output\n");
  }
}

TEST_CASE("a dashboard that cannot be had is refused in one line") {
  const temporary_folder folder;
  const words train{"train",   "mlp", "--synthetic", "--batch", "8",
                    "--steps", "1",   "--devices",   "cpu:1"};
  for (const std::string address : {"nowhere", "nowhere:80", "127.0.0.1:x"}) {
    INFO(address);
    const auto told = address == "nowhere:80" ? "nowhere" : address;
    CHECK(fails_with(run_troupe(train + words{"--dashboard", address}), 2,
                     {"--dashboard", told}));
    // Before anything is read.
    CHECK(fails_with(run_troupe({"train", "no/such", "--dashboard", address}),
                     2, {told}));
    CHECK(fails_with(run_troupe({"dashboard", "no.trt", "--address", address}),
                     2, {"--address", told}));
  }
  CHECK(fails_with(run_troupe(train + words{"--dashboard", "0.0.0.0:0"}), 2,
                   {"certificate", "token file"}));
  CHECK(fails_with(run_troupe(train + words{"--dashboard-token", "t"}), 2,
                   {"--dashboard"}));
  CHECK(fails_with(run_troupe({"dashboard", folder / "none.trt"}), 1,
                   {"none.trt"}));
  write_bytes(folder / "a.trt", "no trace");
  CHECK(fails_with(run_troupe({"dashboard", folder / "a.trt"}), 1, {"a.trt"}));
}

} // TEST_SUITE("apps.dashboard")
