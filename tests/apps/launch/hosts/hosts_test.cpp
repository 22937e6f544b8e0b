// SPDX-License-Identifier: Apache-2.0
//
// What ranks on other hosts are given by `troupe launch --hosts`, and what it
// refuses.
#include "apps/launch/launch_runner.hpp"
#include "apps/launch/played_ssh.hpp"

#include <support/files.hpp>
#include <support/own_network.hpp>
#include <support/skip_case.hpp>
#include <troupe/base/cores.hpp>
#include <troupe/comm/tls/job_credentials.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>

using namespace troupe::test;

TEST_SUITE("apps.launch_hosts") {

namespace {

/// The lines of all ranks, rank 0 first, without prefixes.
words lines_by_rank(const std::string& text) {
  auto lines = lines_of(text);
  std::ranges::sort(lines, {}, [](const std::string& line) {
    return line.find("| ") == 1 ? line : "0";
  });
  for (auto& line : lines)
    if (line.find("| ") == 1)
      line.erase(0, 3);
  return lines;
}

/// Runs `troupe launch` with a list of hosts that must be refused.
command_result launch_on(const std::string& hosts, const words& more = {}) {
  return run_troupe(words{"launch", "--hosts", hosts, "--ssh", "false"} + more
                    + words{"--", "true"});
}

/// True if the command line is refused in one line with this text.
bool is_refused(const command_result& result, const std::string& why) {
  return fails_with(result, 2, {why}) && lines_of(result.err).size() == 1;
}

} // namespace

TEST_CASE("ranks are numbered host by host") {
  const auto result = played_ssh().launch(
    "a:2,b,c:1", "echo $ON_HOST: $TROUPE_RANK of $TROUPE_SIZE, here "
                 "$TROUPE_LOCAL_RANK of $TROUPE_LOCAL_SIZE");
  CHECK(result.code == 0);
  CHECK(result.err.empty());
  CHECK(lines_by_rank(result.out)
        == words{"a: 0 of 4, here 0 of 2", "a: 1 of 4, here 1 of 2",
                 "b: 2 of 4, here 0 of 1", "c: 3 of 4, here 0 of 1"});
}

TEST_CASE("all ranks know the job and where rank 0 waits") {
  const played_ssh ssh;
  const std::string show =
    "echo $TROUPE_JOB $TROUPE_ADDRESS ${TROUPE_RENDEZVOUS-none}";
  const auto lines = lines_by_rank(ssh.launch("first:2,b", show).out);
  REQUIRE(lines.size() == 3);
  CHECK(std::set(lines.begin(), lines.end()).size() == 1);
  CHECK(lines[0].starts_with("job-"));
  CHECK(lines[0].ends_with(" none"));
  const auto at = lines[0].find(" first:");
  REQUIRE(at != std::string::npos);
  const auto port = std::stoi(lines[0].substr(at + 7));
  CHECK(port >= 20000);
  CHECK(port <= 32767);
  CHECK(lines_by_rank(ssh.launch("first:2,b", show).out) != lines);
}

TEST_CASE("the address is the first host's name, without its user") {
  const auto address = [](const std::string& hosts) {
    return lines_by_rank(
             played_ssh()
               .launch(hosts, "echo $TROUPE_ADDRESS", {"--port", "4321"})
               .out)
      .at(1);
  };
  CHECK(address("me@node-1.b_c,b") == "node-1.b_c:4321");
  CHECK(address("[fe80::2]:1,b") == "[fe80::2]:4321");
  CHECK(address("me@[fe80::2],b") == "[fe80::2]:4321");
  CHECK(address("10.0.0.1,b") == "10.0.0.1:4321");
}

TEST_CASE("ssh is given the user and the name") {
  const played_ssh ssh;
  CHECK(ssh.launch("me@a.b:1,[fe80::2]:1,you@[fe80::3]", "true").code == 0);
  auto calls = ssh.calls();
  std::ranges::sort(calls);
  const std::string command = " " TROUPE_COMMAND " launch-rank";
  CHECK(
    calls
    == words{"fe80::2" + command, "me@a.b" + command, "you@fe80::3" + command});
}

TEST_CASE("each rank on several hosts has credentials of its own") {
  const temporary_folder folder;
  const auto result = played_ssh().launch(
    "a:2,b",
    "cp $TROUPE_CREDENTIALS " + folder.path().string()
      + "/$TROUPE_RANK; echo $TROUPE_CREDENTIALS; chmod 600 "
      + folder.path().string() + "/$TROUPE_RANK; "
      + "stat -c %a $TROUPE_CREDENTIALS $(dirname $TROUPE_CREDENTIALS)");
  REQUIRE(result.code == 0);
  const auto lines = lines_by_rank(result.out);
  REQUIRE(lines.size() == 9);
  CHECK(std::ranges::count(lines, "600") == 3);
  CHECK(std::ranges::count(lines, "700") == 3);
  std::set<std::string> authorities, certificates, keys;
  for (std::size_t rank = 0; rank < 3; ++rank) {
    const auto own =
      troupe::comm::read_credentials(folder / std::to_string(rank), rank);
    authorities.insert(own.authority);
    certificates.insert(own.certificate);
    keys.insert(own.key);
  }
  CHECK(authorities.size() == 1);
  CHECK(certificates.size() == 3);
  CHECK(keys.size() == 3);
  for (const auto& line : lines)
    if (line.starts_with('/')) {
      CHECK(line.starts_with("/tmp/troupe-"));
      CHECK_FALSE(std::filesystem::exists(line));
      CHECK_FALSE(
        std::filesystem::exists(std::filesystem::path(line).parent_path()));
    }
}

TEST_CASE("ranks of a single host need neither credentials nor an address") {
  for (const std::string host : {"a", "localhost", "127.0.0.1", "[::1]"}) {
    const auto result = played_ssh().launch(
      host + ":2", "echo ${TROUPE_ADDRESS-none} ${TROUPE_CREDENTIALS-none}");
    CHECK(result.code == 0);
    CHECK(lines_by_rank(result.out) == words{"none none", "none none"});
  }
}

TEST_CASE("a rank has the variables of its login and not the launcher's") {
  const temporary_folder folder;
  const played_ssh ssh("ON_LOGIN=1; export ON_LOGIN");
  const auto result = run_in(
    folder, "OF_LAUNCHER=1 TROUPE_ADDRESS=x:1 TROUPE_MEMBER=3 troupe launch "
            "--hosts a --ssh '"
              + ssh.shell() + "' -- env");
  CHECK(result.code == 0);
  CHECK(contains(result.out, "ON_HOST=a\n"));
  CHECK(contains(result.out, "TROUPE_RANK=0\n"));
  for (const auto* other : {"OF_LAUNCHER", "TROUPE_ADDRESS", "TROUPE_MEMBER"})
    CHECK_FALSE(contains(result.out, other));
}

TEST_CASE("a rank of this host has no place in another job") {
  const temporary_folder folder;
  const auto result =
    run_in(folder, "TROUPE_ADDRESS=x:1 TROUPE_CREDENTIALS=y TROUPE_MEMBER=3 "
                   "troupe launch --nodes 1 -- env");
  CHECK(result.code == 0);
  for (const auto* other :
       {"TROUPE_ADDRESS", "TROUPE_CREDENTIALS", "TROUPE_MEMBER"})
    CHECK_FALSE(contains(result.out, other));
}

TEST_CASE("ranks meet at the address of the interface that is named") {
  if (!own_network::is_possible())
    return skip_case("needs the right to make a network of its own");
  const own_network network;
  const played_ssh ssh{"echo welcome"}; // a login prints lines of its own
  const auto result =
    ssh.launch("a,b", "echo =$TROUPE_ADDRESS $TROUPE_INTERFACE",
               {"--interface", "lo:3", "--port", "4321"});
  INFO(result.err);
  CHECK(result.code == 0);
  const auto lines = lines_by_rank(result.out);
  CHECK(std::ranges::count(lines, "=10.77.0.3:4321 lo:3") == 2);
  CHECK(std::ranges::count_if(ssh.calls(),
                              [](const std::string& call) {
                                return contains(call, "launch-address");
                              })
        == 2);
  // A single host needs no address.
  CHECK(ssh.launch("a", "true", {"--interface", "lo:9"}).code == 0);
  const played_ssh quiet;
  const auto unknown = quiet.launch("a,b", "true", {"--interface", "lo:9"});
  CHECK(fails_with(unknown, 1,
                   {"troupe: host a does not tell its address (failed with "
                    "exit code 1): there is no network interface 'lo:9'; this "
                    "host has lo (127.0.0.1"}));
  CHECK(lines_of(unknown.err).size() == 1);
  CHECK(quiet.calls().size() == 2); // no rank was started
}

TEST_CASE("ranks of a host divide its cores if there are enough") {
  const played_ssh ssh;
  const auto all = std::to_string(troupe::usable_cores());
  CHECK(lines_by_rank(ssh.launch("a,b", "nproc").out) == words{all, all});
  CHECK(lines_by_rank(ssh.launch("a:2", "nproc", {"--no-bind"}).out)
        == words{all, all});
  if (troupe::usable_cores() < 2)
    return;
  const auto two =
    lines_by_rank(ssh.launch("a:2", "taskset -cp $$ | sed 's/.*: //'").out);
  REQUIRE(two.size() == 2);
  CHECK(two[0] != two[1]);
}

TEST_CASE("ranks on other hosts read no input") {
  const temporary_folder folder;
  const played_ssh ssh;
  const auto result =
    run_in(folder, "echo hello | troupe launch --hosts a,b --ssh '"
                     + ssh.shell() + "' -- sh -c 'cat; echo end'");
  CHECK(result.code == 0);
  CHECK(lines_by_rank(result.out) == words{"end", "end"});
}

TEST_CASE("ranks work in the folder in which the launch works") {
  const temporary_folder folder;
  const played_ssh ssh;
  const auto result = run_in(folder, "troupe launch --hosts a,b --ssh '"
                                       + ssh.shell() + "' -- pwd");
  CHECK(result.code == 0);
  const auto path = folder.path().string();
  CHECK(lines_by_rank(result.out) == words{path, path});
}

TEST_CASE("a folder that a host does not have is named") {
  const temporary_folder folder;
  const std::string there = folder / "there";
  std::filesystem::create_directory(there);
  const played_ssh ssh("[ $host = b ] && mv " + there + " " + there + ".else");
  const auto result =
    run_in(folder, "cd there && troupe launch --hosts b --logs ../logs --ssh '"
                     + ssh.shell() + "' -- true");
  CHECK(result.code == 1);
  CHECK(contains(last_error(result),
                 "troupe: rank 0 on host b failed with exit code 1 (output: "));
  CHECK(contains(last_error(result),
                 ": troupe: this host has not the folder " + there));
}

TEST_CASE("the words of the command reach other hosts unchanged") {
  const words odd{"two words", "it's",    "\"quoted\"",  "$HOME", "`id`",
                  "a\nb",      "",        "back\\slash", "*",     "\t",
                  "\xff\xfe",  "--nodes", "--",          "a;b&c", "~"};
  const auto result =
    played_ssh().launch_command("a", words{"printf", "[%s]"} + odd);
  CHECK(result.code == 0);
  std::string expected;
  for (const auto& word : odd)
    expected += "[" + word + "]";
  CHECK(result.out == expected);
}

TEST_CASE("a long word reaches other hosts") {
  const std::string word(100 << 10, 'x');
  const auto result =
    played_ssh().launch_command("a,b:2", {"printf", "%s\n", word});
  CHECK(result.code == 0);
  CHECK(lines_by_rank(result.out) == words{word, word, word});
}

TEST_CASE("troupe can have another place on other hosts") {
  const temporary_folder folder;
  const std::string odd = folder / "it's a $troupe";
  std::filesystem::create_symlink(TROUPE_COMMAND, odd);
  const auto result =
    played_ssh().launch("a,b", "echo done", {"--remote-troupe", odd});
  CHECK(result.code == 0);
  CHECK(lines_by_rank(result.out) == words{"done", "done"});
  const auto missing = played_ssh().launch(
    "a", "true", {"--remote-troupe", "/no/troupe", "--logs", folder / "logs"});
  CHECK(missing.code == 127);
  CHECK(contains(last_error(missing), "rank 0 on host a failed with exit code "
                                      "127"));
  CHECK(contains(last_error(missing), "/no/troupe"));
}

TEST_CASE("neither a rank nor what starts it gets files of the launcher") {
  const std::string show = "ls -m /proc/self/fd"; // in one line
  // The test can have been started with more files than the streams.
  const auto files = lines_of(launch(1, show).out).at(0);
  const auto result = played_ssh(show + " >&2").launch("a:2,b", show);
  CHECK(result.code == 0);
  CHECK(lines_by_rank(result.out) == words{files, files, files});
  CHECK(lines_by_rank(result.err) == words{files, files, files});
}

TEST_CASE("a host is not asked for more than eight logins at once") {
  const temporary_folder folder;
  const auto path = folder.path().string();
  const played_ssh ssh("touch " + path + "/$$; ls " + path
                       + " | wc -l >&2; sleep 0.1; rm " + path + "/$$");
  const auto result = ssh.launch("a:25", "echo done");
  CHECK(result.code == 0);
  CHECK(count_of(result.out, "done\n") == 25);
  const auto logins = lines_of(result.err);
  CHECK(logins.size() == 25);
  for (const auto& line : logins)
    CHECK(std::stoi(line.substr(line.find(' '))) <= 8);
}

TEST_CASE("ranks on one other host train together") {
  const auto result = played_ssh().launch_command(
    "localhost:2", {TROUPE_COMMAND, "train", "mlp", "--synthetic", "--steps",
                    "2", "--devices", "cpu:1", "--json"});
  INFO(result.err);
  CHECK(result.code == 0);
  CHECK(contains(result.out, "\"steps\":2,"));
}

TEST_CASE("a wrong list of hosts is refused") {
  for (const std::string list :
       {"a:", "a:x", "a:1.5", "a:-1", "a b", "a:1:2", "::1", "[::1", "a,,b",
        "a,", ",", "@a", "me@", "a/b", "a$b", "me you@a", "a;b", "a:1 "}) {
    CAPTURE(list);
    CHECK(is_refused(launch_on(list), "is no NAME[:RANKS] (several are "
                                      "separated by commas: a:2,b:2)"));
  }
  for (const std::string list : {"[a]", "[]", "[1.2.3.4]:2", "me@[x]"})
    CHECK(is_refused(launch_on(list),
                     "'" + list + "' has no IPv6 address in its brackets"));
  for (const std::string list : {"-a", "-oProxyCommand", "me@-a", "-me@a"})
    CHECK(is_refused(launch_on(list),
                     "'" + list
                       + "' begins with '-': ssh would take it for an "
                         "option"));
  CHECK(is_refused(launch_on(""), "--hosts: must not be empty"));
}

TEST_CASE("a wrong number of ranks is refused") {
  for (const std::string list : {"a:0", "a:57", "a:99999999999999999999"})
    CHECK(is_refused(launch_on(list),
                     "--hosts: '" + list + "' must have from 1 to 56 ranks"));
  CHECK(is_refused(launch_on("a:30,b:27"),
                   "--hosts: must have at most 56 ranks, not 57"));
  CHECK(is_refused(launch_on("a:2,b", {"--nodes", "2"}),
                   "--nodes: must be the number of ranks of --hosts, 3, not "
                   "2"));
}

TEST_CASE("a host that is there twice is refused") {
  CHECK(is_refused(launch_on("a:2,b,a"),
                   "--hosts: 'a' is there twice: give all its ranks at once, "
                   "as a:3"));
  CHECK(is_refused(launch_on("me@a,you@A:1"), "'A' is there twice"));
}

TEST_CASE("a name by which other hosts cannot reach a host is refused") {
  for (const std::string name :
       {"localhost", "LocalHost", "localhost.localdomain", "x.localhost",
        "127.0.0.1", "127.1", "0.0.0.0", "[::1]", "[::]", "[::ffff:127.0.0.1]",
        "me@localhost"}) {
    CAPTURE(name);
    for (const auto& list : {name + ",b", "b," + name + ":2"})
      CHECK(is_refused(launch_on(list),
                       "names another host on each of them: give a name by "
                       "which all hosts can reach it"));
  }
}

TEST_CASE("options for hosts that do not fit are refused") {
  for (const words& option : {words{"--port", "20000"}, words{"--ssh", "ssh"},
                              words{"--remote-troupe", "troupe"}})
    CHECK(is_refused(run_troupe(words{"launch", "--nodes", "2"} + option
                                + words{"--", "true"}),
                     option[0] + " needs --hosts"));
  CHECK(is_refused(launch_on("a,b", {"--port", "0"}), "--port: must be"));
  CHECK(is_refused(launch_on("a,b", {"--port", "65536"}), "--port: must be"));
  CHECK(
    is_refused(launch_on("a,b", {"--ssh", ""}), "--ssh: must not be empty"));
  CHECK(is_refused(launch_on("a,b", {"--ssh", "  "}),
                   "--ssh: must name a command"));
  CHECK(is_refused(launch_on("a,b", {"--remote-troupe", ""}),
                   "--remote-troupe: must not be empty"));
  CHECK(is_refused(launch_on("a,b", {"--interface", ""}),
                   "--interface: must not be empty"));
  CHECK(is_refused(run_troupe({"launch", "--hosts", "a,b"}),
                   "a command is missing: troupe launch"));
}

TEST_CASE("a remote shell that cannot be started is named") {
  CHECK(fails_with(run_troupe({"launch", "--hosts", "a,b", "--ssh",
                               "troupe-no-ssh -o x", "--", "true"}),
                   1,
                   {"troupe: cannot start 'troupe-no-ssh': No such file or "
                    "directory"}));
}

TEST_CASE("what starts a rank on another host is hidden") {
  CHECK_FALSE(contains(run_troupe({"--help"}).out, "launch-rank"));
  CHECK_FALSE(contains(run_troupe({"fly"}).err, "launch-rank"));
  const auto empty = run_troupe({"launch-rank"});
  CHECK(fails_with(empty, 1, {"troupe launch ended before it had told"}));
  const temporary_folder folder;
  for (const std::string text : {"hello, world", "\\004\\000\\000\\000abcd",
                                 "\\001\\000\\000\\000\\240"})
    CHECK(
      fails_with(run_in(folder, "printf '" + text + "' | troupe launch-rank"),
                 1, {"only troupe launch --hosts can start this command"}));
}

} // TEST_SUITE("apps.launch_hosts")
