// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/files/atomic_file.hpp>
#include <troupe/base/files/input_file.hpp>

#include <support/child_process.hpp>
#include <support/files.hpp>
#include <support/immutable_file.hpp>
#include <support/killed_child.hpp>
#include <support/number_of_the_dead.hpp>
#include <support/skip_case.hpp>

#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace troupe;
using test::contains;
using test::error_of;

TEST_SUITE("base.atomic_file") {

TEST_CASE("a committed file has what was written and leaves nothing else") {
  test::temporary_folder folder;
  atomic_file file(folder / "a");
  file.write("one ");
  file.write("two");
  CHECK_FALSE(std::filesystem::exists(folder / "a"));
  file.commit();
  CHECK(test::read_bytes(folder / "a") == "one two");
  CHECK(folder.entries() == 1);
}

TEST_CASE("a library can write a file by the name that it has until then") {
  test::temporary_folder folder;
  atomic_file file(folder / "a");
  CHECK(file.temporary().parent_path() == folder.path());
  test::write_bytes(file.temporary(), "by another");
  file.commit();
  CHECK(test::read_bytes(folder / "a") == "by another");
  CHECK(folder.entries() == 1);
}

TEST_CASE("a file that is not committed leaves the old one as it was") {
  test::temporary_folder folder;
  test::write_bytes(folder / "a", "old");
  {
    atomic_file file(folder / "a");
    file.write("new");
  }
  CHECK(test::read_bytes(folder / "a") == "old");
  CHECK(folder.entries() == 1);
}

TEST_CASE("two writers of one target do not disturb each other") {
  test::temporary_folder folder;
  atomic_file first(folder / "a"), second(folder / "a");
  first.write("1");
  second.write("2");
  second.commit();
  first.commit();
  CHECK(test::read_bytes(folder / "a") == "1");
  CHECK(folder.entries() == 1);
}

TEST_CASE("a full disk is an error with the system's text, nothing is left") {
  test::temporary_folder folder;
  test::file_size_limit limit(1000);
  auto message = error_of([&] {
    atomic_file file(folder / "a");
    file.write(std::string(2000, 'x'));
    file.commit();
  });
  CHECK(contains(message, "io_failure"));
  CHECK(contains(message, "File too large"));
  CHECK(folder.entries() == 0);
}

TEST_CASE("a missing folder is an error that names the target") {
  test::temporary_folder folder;
  auto message = error_of([&] { atomic_file file(folder / "no/a"); });
  CHECK(contains(message, "no/a: cannot create it: No such file"));
}

TEST_CASE("a device is never replaced by a file") {
  CHECK(contains(error_of([] { atomic_file file("/dev/full"); }),
                 "/dev/full: exists and is not a regular file"));
}

TEST_CASE("a link keeps pointing to the file that is replaced") {
  test::temporary_folder folder;
  test::write_bytes(folder / "a", "old");
  std::filesystem::create_symlink("a", folder / "link");
  atomic_file file(folder / "link");
  file.write("new");
  file.commit();
  CHECK(std::filesystem::is_symlink(folder / "link"));
  CHECK(test::read_bytes(folder / "a") == "new");
}

TEST_CASE("a file appears where a link leads that led nowhere") {
  test::temporary_folder folder;
  std::filesystem::create_symlink("a", folder / "link");
  atomic_file file(folder / "link");
  file.write("new");
  file.commit();
  CHECK(std::filesystem::is_symlink(folder / "link"));
  CHECK(test::read_bytes(folder / "a") == "new");
}

TEST_CASE("files of processes that are gone are removed, others stay") {
  test::temporary_folder folder;
  const auto dead = std::to_string(test::number_of_the_dead());
  for (auto& name : {"a.troupe-tmp.1", "a.troupe-tmp.x", "a.troupe-tmp.",
                     "b.troupe-tmp.", "a.troupe-tmp.12x"})
    test::write_bytes(folder / name, "other");
  std::filesystem::create_directory(folder / ("a.troupe-tmp." + dead + ".9"));
  test::write_bytes(folder / ("a.troupe-tmp." + dead), "half");
  test::write_bytes(folder / ("a.troupe-tmp." + dead + ".7"), "half");
  // As a process of another container has it.
  const auto held = folder / ("a.troupe-tmp." + dead + ".8");
  test::write_bytes(held, "half");
  const int lock = ::open(held.c_str(), O_RDONLY);
  ::flock(lock, LOCK_EX);
  atomic_file(folder / "a").commit();
  CHECK(folder.entries() == 8);
  CHECK(std::filesystem::exists(held));
  CHECK_FALSE(std::filesystem::exists(folder / ("a.troupe-tmp." + dead)));
  ::close(lock);
  atomic_file(folder / "a").commit();
  CHECK_FALSE(std::filesystem::exists(held));
}

TEST_CASE("a file that is written over keeps its permissions") {
  test::temporary_folder folder;
  const auto temporary =
    folder / ("a.troupe-tmp." + std::to_string(::getpid()));
  for (const mode_t mode : {0600U, 0640U, 0400U, 0666U, 0777U}) {
    CAPTURE(mode);
    test::write_bytes(folder / "a", "old");
    REQUIRE(::chmod((folder / "a").c_str(), mode) == 0);
    atomic_file file(folder / "a");
    CHECK(test::permissions_of(temporary)
          == 0600); // whatever the new one will have
    file.commit();
    CHECK(test::permissions_of(folder / "a") == mode);
    std::filesystem::remove(folder / "a");
  }
  // A change meanwhile counts.
  test::write_bytes(folder / "a", "old");
  atomic_file file(folder / "a");
  REQUIRE(::chmod((folder / "a").c_str(), 0640) == 0);
  file.commit();
  CHECK(test::permissions_of(folder / "a") == 0640);
}

TEST_CASE("a new file gets the permissions of new files, no special ones") {
  test::temporary_folder folder;
  const mode_t before = ::umask(027);
  atomic_file(folder / "a").commit();
  ::umask(before);
  CHECK(test::permissions_of(folder / "a") == 0640);
  REQUIRE(::chmod((folder / "a").c_str(), 04755) == 0);
  atomic_file(folder / "a").commit();
  CHECK(test::permissions_of(folder / "a") == 0755);
}

TEST_CASE("a file of another user keeps owner and group where that can be") {
  if (::geteuid() != 0)
    return test::skip_case("needs root");
  test::temporary_folder folder;
  test::write_bytes(folder / "a", "old");
  REQUIRE(::chown((folder / "a").c_str(), 65534, 65533) == 0);
  atomic_file(folder / "a").commit();
  struct stat status = {};
  REQUIRE(::stat((folder / "a").c_str(), &status) == 0);
  CHECK(status.st_uid == 65534);
  CHECK(status.st_gid == 65533);

  // One who is not in the file's group may not let his own read it instead.
  REQUIRE(::chmod((folder / "a").c_str(), 0660) == 0);
  REQUIRE(::chown(folder.path().c_str(), 65534, 65534) == 0);
  CHECK(test::exit_code(test::in_child([&] {
          test::become_user(65534);
          atomic_file(folder / "a").commit();
        }))
        == 0);
  REQUIRE(::stat((folder / "a").c_str(), &status) == 0);
  CHECK(status.st_gid == 65534);
  CHECK(test::permissions_of(folder / "a") == 0600);
}

TEST_CASE("a file that cannot be replaced is refused before it is written") {
  test::temporary_folder folder;
  test::write_bytes(folder / "a", "old");
  {
    const test::immutable_file fixed{folder / "a"};
    if (!fixed)
      return test::skip_case("needs to make a file immutable");
    CHECK(contains(error_of([&] { atomic_file{folder / "a"}; }),
                   "/a: is immutable or append-only"));
    CHECK(folder.entries() == 1);
  }
  // In a sticky folder, users may replace their own files only.
  REQUIRE(::chmod(folder.path().c_str(), 01777) == 0);
  CHECK(test::exit_code(test::in_child([&] {
          test::become_user(65534);
          const auto why = error_of([&] { atomic_file{folder / "a"}; });
          if (!contains(why, "/a: may not be replaced by this user"))
            ::_exit(2);
        }))
        == 0);
}

TEST_CASE("a process of another container, which removes what nobody has "
          "locked, may come at any moment") {
  test::temporary_folder folder;
  const auto calls = test::meet_at_each_call(
    [&] { std::filesystem::remove(folder / "a"); },
    [&] {
      atomic_file file(folder / "a");
      file.write("whole");
      file.commit();
    },
    [&](pid_t writer) {
      const auto name = folder / ("a.troupe-tmp." + std::to_string(writer));
      const int file = ::open(name.c_str(), O_RDONLY);
      if (::flock(file, LOCK_EX | LOCK_NB) == 0)
        ::unlink(name.c_str());
      ::close(file);
    },
    [&](test::child_end end) {
      CHECK(end == test::child_end::went_on);
      CHECK(test::read_bytes(folder / "a") == "whole");
      CHECK(folder.entries() == 1);
    });
  if (calls == 0)
    return test::skip_case("needs to trace a child process");
  CHECK(calls > 5);
}

TEST_CASE("the name of a folder is no name of a file") {
  test::temporary_folder folder;
  for (const auto* name : {"new/", "there/", "there/.", "there/..", "new/."}) {
    CAPTURE(name);
    std::filesystem::create_directory(folder / "there");
    CHECK(contains(error_of([&] { atomic_file file(folder / name); }),
                   std::string{name} + ": is a folder's name, not a file's"));
    CHECK(folder.entries() == 1);
  }
}

TEST_CASE("a file that is being written is locked") {
  test::temporary_folder folder;
  const atomic_file file(folder / "a");
  const auto name = "a.troupe-tmp." + std::to_string(::getpid());
  const int other = ::open((folder / name).c_str(), O_RDONLY);
  CHECK(::flock(other, LOCK_EX | LOCK_NB) != 0);
  ::close(other);
}

} // TEST_SUITE("base.atomic_file")

TEST_SUITE("base.input_file") {

TEST_CASE("reading past the end says how many bytes are missing") {
  test::temporary_folder folder;
  test::write_bytes(folder / "a", "12345");
  input_file file(folder / "a");
  CHECK(file.size() == 5);
  CHECK(file.read_string(3) == "123");
  CHECK(contains(error_of([&] { file.read_string(3, "a label"); }),
                 "a: too short: a label needs 3 bytes at byte 3 but only 2"));
  CHECK(file.read_string(2) == "45");
  CHECK(file.remaining() == 0);
}

TEST_CASE("an impossible length allocates nothing") {
  test::temporary_folder folder;
  test::write_bytes(folder / "a", "12345");
  input_file file(folder / "a");
  CHECK(contains(error_of([&] { file.read_string(~std::uint64_t{0}); }),
                 "bad_file"));
}

TEST_CASE("missing files, folders and long files are told apart") {
  test::temporary_folder folder;
  test::write_bytes(folder / "a", "12345");
  CHECK(
    contains(error_of([&] { input_file file(folder / "b"); }), "not_found"));
  CHECK(contains(error_of([&] { input_file file(folder.path()); }),
                 "not a regular file"));
  CHECK(read_whole_file(folder / "a", 5) == "12345");
  CHECK(contains(error_of([&] { read_whole_file(folder / "a", 4); }),
                 "has 5 bytes, more than the 4"));
}

} // TEST_SUITE("base.input_file")
