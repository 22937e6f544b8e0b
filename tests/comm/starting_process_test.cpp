// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/starting_process.hpp>

#include <support/child_process.hpp>
#include <support/files.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <string>
#include <thread>

#include <unistd.h>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("comm.starting_process") {

namespace {

/// A process that was started by a shell, which was started by a shell, which
/// is a child of this process. All three have the variable and no other.
class third_process {
public:
  explicit third_process(const std::string& variable) {
    const auto line = "sh -c 'sleep 60 & echo $! > " + file() + ".new; mv "
                      + file() + ".new " + file() + "; wait' & wait";
    shell_ = in_child([&] {
      ::setpgid(0, 0);
      ::clearenv();
      ::setenv(variable.c_str(), "1", 1);
      ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
    });
    for (int i = 0; i < 10'000 && !std::filesystem::exists(file()); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    REQUIRE(std::filesystem::exists(file()));
  }
  ~third_process() {
    ::kill(-shell_, SIGKILL);
    exit_code(shell_);
  }

  pid_t id() const { return std::stoi(read_bytes(file())); }

private:
  std::string file() const { return folder_ / "id"; }

  temporary_folder folder_;
  pid_t shell_ = 0;
};

} // namespace

TEST_CASE("a variable that no ancestor has was set by the parent") {
  const auto parent = std::to_string(::getppid()) + ".";
  const auto setter = comm::process_that_set("TROUPE_TEST_UNSET", ::getpid());
  CHECK(setter.starts_with(parent));
  CHECK(setter.size() > parent.size()); // the time
  CHECK(setter == comm::process_that_set("TROUPE_TEST_UNSET", ::getpid()));
}

TEST_CASE("ancestors that have the variable are passed over") {
  const third_process third("TROUPE_TEST_SET");
  const auto own = std::to_string(::getpid()) + ".";
  CHECK(comm::process_that_set("TROUPE_TEST_SET", third.id()).starts_with(own));
  for (const auto* other : {"TROUPE_TEST_SE", "ROUPE_TEST_SET"}) {
    const auto setter = comm::process_that_set(other, third.id());
    CHECK_FALSE(setter.empty());
    CHECK_FALSE(setter.starts_with(own));
  }
}

TEST_CASE("a process without ancestors got its variables from none") {
  CHECK(comm::process_that_set("TROUPE_TEST_UNSET", 1).empty());
  const auto gone = in_child([] {});
  exit_code(gone);
  CHECK(comm::process_that_set("TROUPE_TEST_UNSET", gone).empty());
}

} // TEST_SUITE("comm.starting_process")
