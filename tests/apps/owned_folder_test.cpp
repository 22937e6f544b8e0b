// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/owned_folder.hpp>

#include <support/caught.hpp>
#include <support/files.hpp>
#include <support/waiting_child.hpp>

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace troupe;
using namespace troupe::apps;
using namespace troupe::test;

TEST_SUITE("apps.owned_folder") {

namespace {

namespace fs = std::filesystem;

/// A process that owns a folder until it is killed, and that has written a file
/// there.
class owner_process : public waiting_child {
public:
  explicit owner_process(const std::string& folder)
    : waiting_child{[&](auto wait) {
        const owned_folder own{folder};
        write_bytes(folder + "/file", "text");
        wait();
      }} {}
};

/// A rank that meets others in a folder, until it is killed.
class rank_process {
public:
  explicit rank_process(const std::string& folder) {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    const auto variable = "TROUPE_RENDEZVOUS=" + folder;
    id_ = ::fork();
    if (id_ == 0) {
      ::execle("/bin/sleep", "sleep", "1000", nullptr,
               std::array<const char*, 2>{variable.c_str(), nullptr}.data());
      ::_exit(1);
    }
    ::close(ends[1]);
    char byte = 0;
    CHECK(::read(ends[0], &byte, 1) == 0); // it runs the other program now
    ::close(ends[0]);
  }
  ~rank_process() {
    ::kill(id_, SIGKILL);
    ::waitpid(id_, nullptr, 0);
  }

private:
  pid_t id_;
};

} // namespace

TEST_CASE("the last owner removes a folder") {
  const temporary_folder all;
  const auto path = (all / "job").string();
  auto first = std::make_unique<owned_folder>(path);
  auto second = std::make_unique<owned_folder>(path);
  write_bytes(all / "job/file", "text");
  first.reset();
  CHECK(fs::exists(all / "job/file"));
  second.reset();
  CHECK(fs::is_empty(all.path()));
}

TEST_CASE("only folders whose owners were killed are removed") {
  const temporary_folder all;
  owner_process killed{all / "killed"};
  const owner_process lives{all / "lives"};
  fs::create_directory(all / "other");
  write_bytes(all / "other/file", "text");
  write_bytes(all / "file", "text");
  remove_ownerless(all.path().string());
  CHECK(fs::exists(all / "killed/file"));
  killed.kill();
  remove_ownerless(all.path().string());
  CHECK_FALSE(fs::exists(all / "killed"));
  CHECK(fs::exists(all / "lives/file"));
  CHECK(fs::exists(all / "other/file"));
  CHECK(fs::exists(all / "file"));
}

TEST_CASE("a host's folder that never had an owner is removed when it is old, "
          "unless one of its ranks lives") {
  const temporary_folder all;
  const auto make = [&](const std::string& name, std::chrono::hours age) {
    fs::create_directory(all / name);
    write_bytes((all / name) / "epoch", "text");
    fs::last_write_time(all / name, fs::file_time_type::clock::now() - age);
  };
  using std::chrono::hours;
  make("job-1-a.host-0.1", hours{1});
  make("job-2-b.host-1.1", hours{0});
  make("job-3-c.logs", hours{1});
  make("job-4-d.host-0.2", hours{1});
  {
    const rank_process lives{all / "job-4-d.host-0.2"};
    remove_ownerless(all.path().string());
    CHECK_FALSE(fs::exists(all / "job-1-a.host-0.1"));
    CHECK(fs::exists(all / "job-2-b.host-1.1/epoch"));
    CHECK(fs::exists(all / "job-3-c.logs/epoch"));
    CHECK(fs::exists(all / "job-4-d.host-0.2/epoch"));
  }
  remove_ownerless(all.path().string());
  CHECK_FALSE(fs::exists(all / "job-4-d.host-0.2"));
}

TEST_CASE("who enters a folder that nobody owns finds nothing in it") {
  const temporary_folder all;
  const auto path = (all / "job").string();
  owner_process killed{path};
  killed.kill();
  REQUIRE(fs::exists(all / "job/file"));
  const owned_folder next{path};
  CHECK_FALSE(fs::exists(all / "job/file"));
  write_bytes(all / "job/new", "text");
  const owned_folder also{path};
  CHECK(fs::exists(all / "job/new"));
}

TEST_CASE("who holds a folder keeps it") {
  const temporary_folder all;
  const auto path = (all / "job").string();
  owner_process killed{path};
  {
    const auto held = hold_folder(path);
    killed.kill();
    remove_ownerless(all.path().string());
    CHECK(fs::exists(all / "job/file"));
  }
  remove_ownerless(all.path().string());
  CHECK_FALSE(fs::exists(all / "job"));
  CHECK_FALSE(hold_folder(path));
}

TEST_CASE("a folder that others may enter is refused") {
  const temporary_folder all;
  fs::create_directory(all / "open");
  ::chmod((all / "open").c_str(), 0755);
  write_bytes(all / "open/file", "text");
  const auto e = caught([&] { const owned_folder own{all / "open"}; });
  CHECK(e.code() == errc::invalid_argument);
  fs::create_directory_symlink(all / "open", all / "link");
  CHECK(caught([&] { const owned_folder own{all / "link"}; }).code()
        == errc::invalid_argument);
  CHECK(fs::exists(all / "open/file"));
}

} // TEST_SUITE("apps.owned_folder")
