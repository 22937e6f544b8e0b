// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/launch/cbor_frame.hpp>
#include <troupe/apps/launch/hosts/host_message.hpp>

#include "apps/launch/launch_runner.hpp"

#include <support/files.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/files/descriptor.hpp>
#include <troupe/comm/job_epoch.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <string>

#include <fcntl.h>
#include <unistd.h>

using namespace troupe;
using namespace troupe::apps;
using namespace troupe::test;

TEST_SUITE("apps.launch.host_message") {

namespace {

/// Reads bytes with one of the functions.
template <class Read>
auto read_from(const std::string& bytes, Read read) {
  const temporary_folder folder;
  write_bytes(folder / "bytes", bytes);
  const descriptor file{
    ::open((folder / "bytes").c_str(), O_RDONLY | O_CLOEXEC)};
  return read(file.get());
}

const host_epoch sample{{7, {5, 3}, true, {0, 1}, "node-1", 4711},
                        {{5, "secret"}, {12, "\n"}}};

} // namespace

TEST_CASE("an epoch is read as it was written") {
  const auto got = read_from(to_frame_of_epoch(sample), read_host_epoch);
  CHECK(got.epoch == sample.epoch);
  CHECK(got.credentials == sample.credentials);
}

TEST_CASE("the name of a folder leads nowhere else") {
  CHECK(read_from(to_frame_of_meeting("job-1.host-0.1"), read_meeting)
        == "job-1.host-0.1");
  for (const std::string& name :
       {std::string(), std::string("../x"), std::string("/x"),
        std::string("a/b"), std::string(".."), std::string("a\0b", 3)})
    CHECK_THROWS_AS(read_from(to_frame_of_meeting(name), read_meeting), error);
}

TEST_CASE("what is no epoch is refused") {
  const auto bytes = to_frame_of_epoch(sample);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    CHECK_THROWS_AS(read_from(bytes.substr(0, size), read_host_epoch), error);
  const nlohmann::json text = comm::to_text(sample.epoch);
  for (const auto& wrong :
       {nlohmann::json{{"epoch", text}},
        nlohmann::json{{"epoch", 1}, {"credentials", 1}},
        nlohmann::json{{"epoch", "x"}, {"credentials", nlohmann::json{}}},
        nlohmann::json{{"epoch", text}, {"credentials", {{"x", "y"}}}},
        nlohmann::json{{"meeting", 1}}}) {
    CHECK_THROWS_AS(read_from(to_frame(wrong), read_host_epoch), error);
    CHECK_THROWS_AS(read_from(to_frame(wrong), read_meeting), error);
  }
}

TEST_CASE("the folder of a host passes on epochs and what ranks tell") {
  const temporary_folder work;
  const auto name = "job-test-" + std::to_string(::getpid());
  const auto folder = meeting_path(name);
  write_bytes(work / "first", to_frame_of_meeting(name));
  write_bytes(work / "second", to_frame_of_epoch({{7, {5}}, {}}));
  const auto result =
    run_in(work, "(cat first; sleep 0.1; cat second; "
                 "until [ -e "
                   + folder + "/epoch ]; do sleep 0.01; done; cp " + folder
                   + "/epoch .; stat -c %a " + folder + " > mode; : > " + folder
                   + "/ended-7-5; sleep 0.3) | troupe launch-host");
  CHECK(result.code == 0);
  const auto lines = lines_of(result.out);
  REQUIRE(lines.size() >= 3);
  CHECK(lines.front() == host_is_ready);
  CHECK(lines[1] == host_lives);
  CHECK(count_of(result.out, "ended-7-5\n") == 1);
  CHECK(read_bytes(work / "epoch") == comm::to_text({7, {5}}));
  CHECK(read_bytes(work / "mode") == "700\n");
  CHECK_FALSE(std::filesystem::exists(folder));
}

TEST_CASE("what keeps the folder of a host is hidden") {
  CHECK_FALSE(contains(run_troupe({"--help"}).out, "launch-host"));
  CHECK(fails_with(run_troupe({"launch-host"}), 1,
                   {"troupe launch ended before it had told"}));
}

} // TEST_SUITE("apps.launch.host_message")
