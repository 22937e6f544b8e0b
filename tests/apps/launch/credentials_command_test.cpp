// SPDX-License-Identifier: Apache-2.0
//
// What `troupe credentials` makes and refuses.
#include "apps/command_runner.hpp"

#include <support/files.hpp>
#include <troupe/comm/tls/job_credentials.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <set>
#include <string>

using namespace troupe::test;

TEST_SUITE("apps.launch_credentials") {

namespace {

command_result make_credentials(const std::string& ranks,
                                const std::string& folder) {
  return run_troupe({"credentials", "--nodes", ranks, folder});
}

} // namespace

TEST_CASE("credentials are made in a folder that only this user can enter") {
  const temporary_folder folder;
  const std::string made = folder / "made";
  const auto result = make_credentials("3", made);
  CHECK(result.code == 0);
  CHECK(result.out.empty());
  CHECK(result.err.empty());
  CHECK(permissions_of(made) == 0700);
  std::set<std::string> authorities, keys;
  for (std::size_t rank = 0; rank < 3; ++rank) {
    const auto file = made + "/rank-" + std::to_string(rank) + ".credentials";
    CHECK(permissions_of(file) == 0600);
    const auto own = troupe::comm::read_credentials(made, rank);
    authorities.insert(own.authority);
    keys.insert(own.key);
  }
  CHECK(authorities.size() == 1);
  CHECK(keys.size() == 3);
  CHECK_FALSE(std::filesystem::exists(made + "/rank-3.credentials"));
}

TEST_CASE("an empty folder is taken and closed to others") {
  const temporary_folder folder;
  const std::string empty = folder / "empty";
  std::filesystem::create_directory(empty);
  std::filesystem::permissions(empty, std::filesystem::perms(0755));
  CHECK(make_credentials("1", empty).code == 0);
  CHECK(permissions_of(empty) == 0700);
  CHECK(std::filesystem::exists(empty + "/rank-0.credentials"));
}

TEST_CASE("credentials are not added to others") {
  const temporary_folder folder;
  const std::string made = folder / "made";
  REQUIRE(make_credentials("1", made).code == 0);
  const auto before = read_bytes(made + "/rank-0.credentials");
  CHECK(fails_with(make_credentials("2", made), 1,
                   {"troupe: cannot make the folder " + made
                    + ": it exists and is not empty"}));
  CHECK(read_bytes(made + "/rank-0.credentials") == before);
  CHECK_FALSE(std::filesystem::exists(made + "/rank-1.credentials"));
}

TEST_CASE("a folder that cannot be made is named") {
  const temporary_folder folder;
  write_bytes(folder / "file", "");
  CHECK(fails_with(make_credentials("1", folder / "file"), 1,
                   {"cannot make the folder ", "/file: File exists"}));
  CHECK(fails_with(make_credentials("1", folder / "no/such"), 1,
                   {"cannot make the folder ", "/no/such: No such file or "
                                               "directory"}));
}

TEST_CASE("a wrong command line of credentials is refused") {
  CHECK(fails_with(run_troupe({"credentials", "d"}), 2,
                   {"--nodes is required (see troupe credentials --help)"}));
  CHECK(fails_with(run_troupe({"credentials", "--nodes", "2"}), 2,
                   {"DIR is missing: troupe credentials --nodes N DIR"}));
  CHECK(fails_with(make_credentials("0", "d"), 2,
                   {"--nodes: must be more than 0, not 0"}));
  CHECK(fails_with(make_credentials("57", "d"), 2,
                   {"--nodes: must be at most 56, not 57"}));
  CHECK(fails_with(make_credentials("2", ""), 2, {"DIR: must not be empty"}));
  CHECK(fails_with(run_troupe({"credentials", "--nodes", "2", "d", "e"}), 2,
                   {"credentials does not take e"}));
  const auto help = run_troupe({"credentials", "--help"});
  CHECK(help.code == 0);
  CHECK(contains(help.out, "Example:\n  troupe credentials --nodes 4 "));
}

} // TEST_SUITE("apps.launch_credentials")
