// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/files/atomic_directory.hpp>
#include <troupe/base/files/atomic_file.hpp>

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
#include <sys/wait.h>

using namespace troupe;
using test::contains;
using test::error_of;

namespace fs = std::filesystem;

TEST_SUITE("base.atomic_directory") {

namespace {

void write_whole(const fs::path& path, const std::string& text) {
  atomic_file file(path);
  file.write(text);
  file.commit();
}

constexpr auto needs_tracing = "needs to trace a child process";

/// Saves two files that belong together.
void save(const fs::path& target, const std::string& text) {
  atomic_directory made(target);
  write_whole(made.path() / "a", text);
  write_whole(made.path() / "b", text);
  made.commit({"stale"});
}

} // namespace

TEST_CASE("a folder appears with all its contents on commit") {
  test::temporary_folder folder;
  atomic_directory made(folder / "d");
  test::write_bytes(made.path() / "a", "1");
  CHECK_FALSE(std::filesystem::exists(folder / "d"));
  made.commit();
  CHECK(test::read_bytes(folder / "d/a") == "1");
  CHECK(folder.entries() == 1);
}

TEST_CASE("committing into a folder keeps the files of others") {
  test::temporary_folder folder;
  std::filesystem::create_directories(folder / "d/sub");
  test::write_bytes(folder / "d/a", "old");
  test::write_bytes(folder / "d/other", "mine");
  atomic_directory made((folder / "d").string() + "/");
  std::filesystem::create_directory(made.path() / "sub");
  test::write_bytes(made.path() / "a", "new");
  test::write_bytes(made.path() / "sub/b", "2");
  made.commit();
  CHECK(test::read_bytes(folder / "d/a") == "new");
  CHECK(test::read_bytes(folder / "d/sub/b") == "2");
  CHECK(test::read_bytes(folder / "d/other") == "mine");
  CHECK(folder.entries() == 1);
}

TEST_CASE("a folder that is not committed leaves nothing") {
  test::temporary_folder folder;
  {
    atomic_directory made(folder / "d");
    test::write_bytes(made.path() / "a", "1");
  }
  CHECK(folder.entries() == 0);
}

TEST_CASE("a folder cannot replace a file") {
  test::temporary_folder folder;
  test::write_bytes(folder / "a", "1");
  CHECK(contains(error_of([&] { atomic_directory made(folder / "a"); }),
                 "exists and is not a folder"));
}

TEST_CASE(
  "a folder that is saved over is the old one or the new one at any time") {
  test::temporary_folder folder;
  const auto target = folder / "d";
  const auto calls = test::kill_at_each_call(
    [&] {
      fs::remove_all(target);
      save(target, "old");
      test::write_bytes(target / "stale", "old");
      fs::create_directory(target / "sub");
      test::write_bytes(target / "sub/other", "mine");
    },
    [&] { save(target, "new"); },
    [&] {
      const auto a = test::read_bytes(target / "a");
      CHECK((a == "old" || a == "new"));
      CHECK(test::read_bytes(target / "b") == a);
      CHECK(fs::exists(target / "stale") == (a == "old"));
      CHECK(test::read_bytes(target / "sub/other") == "mine");
    });
  if (calls == 0)
    return test::skip_case(needs_tracing);
  CHECK(calls > 20);
  CHECK(test::read_bytes(target / "a") == "new");
  save(target, "last");
  CHECK(folder.entries() == 1); // what the killed ones left is gone
}

TEST_CASE(
  "a folder appears whole or not at all, whenever the saver is killed") {
  test::temporary_folder folder;
  const auto target = folder / "d";
  bool absent = false, whole = false;
  const auto calls = test::kill_at_each_call(
    [&] { fs::remove_all(target); }, [&] { save(target, "new"); },
    [&] {
      const bool exists = fs::exists(target);
      (exists ? whole : absent) = true;
      if (!exists)
        return;
      CHECK(test::read_bytes(target / "a") == "new");
      CHECK(test::read_bytes(target / "b") == "new");
    });
  if (calls == 0)
    return test::skip_case(needs_tracing);
  CHECK(absent);
  CHECK(whole);
}

TEST_CASE("files of others keep their links, modes and writers") {
  test::temporary_folder folder;
  save(folder / "d", "old");
  fs::create_symlink("nowhere", folder / "d/link");
  fs::create_directories(folder / "d/sub/deep");
  fs::permissions(folder / "d/sub", fs::perms::owner_all);
  fs::permissions(folder / "d", fs::perms::owner_all | fs::perms::group_read);
  ::mkfifo((folder / "d/pipe").c_str(), 0600);
  std::ofstream log(folder / "d/log");
  save(folder / "d", "new");
  log << "later" << std::flush;
  CHECK(test::read_bytes(folder / "d/log") == "later");
  CHECK(fs::read_symlink(folder / "d/link") == "nowhere");
  CHECK(fs::is_fifo(folder / "d/pipe"));
  CHECK(fs::is_directory(folder / "d/sub/deep"));
  CHECK(fs::status(folder / "d/sub").permissions() == fs::perms::owner_all);
  CHECK(fs::status(folder / "d").permissions()
        == (fs::perms::owner_all | fs::perms::group_read));
}

TEST_CASE("what is saved over keeps its permissions") {
  test::temporary_folder folder;
  const auto target = folder / "d";
  save(target, "old");
  fs::remove(target / "b");
  fs::create_directory(target / "sub");
  test::write_bytes(target / "sub/a", "old");
  REQUIRE(::chmod((target / "a").c_str(), 0640) == 0);
  REQUIRE(::chmod((target / "sub/a").c_str(), 0600) == 0);
  REQUIRE(::chmod((target / "sub").c_str(), 0710) == 0);
  REQUIRE(::chmod(target.c_str(), 02750) == 0);
  {
    const mode_t before = ::umask(022);
    atomic_directory made(target);
    CHECK(test::permissions_of(made.path()) == 0700); // whatever it will have
    for (const auto* name : {"a", "b"})
      write_whole(made.path() / name, "new");
    fs::create_directory(made.path() / "sub");
    write_whole(made.path() / "sub/a", "new");
    made.commit();
    ::umask(before);
  }
  CHECK(test::read_bytes(target / "sub/a") == "new");
  CHECK(test::permissions_of(target) == 02750);
  CHECK(test::permissions_of(target / "a") == 0640);
  CHECK(test::permissions_of(target / "b") == 0644); // is new
  CHECK(test::permissions_of(target / "sub") == 0710);
  CHECK(test::permissions_of(target / "sub/a") == 0600);
}

TEST_CASE("a file in the place of a link is no more open than what that led "
          "to") {
  test::temporary_folder folder;
  fs::create_directory(folder / "d");
  test::write_bytes(folder / "secret", "old");
  REQUIRE(::chmod((folder / "secret").c_str(), 0600) == 0);
  fs::create_symlink("../secret", folder / "d/a");
  fs::create_symlink("nowhere", folder / "d/b");
  save(folder / "d", "new");
  CHECK(test::permissions_of(folder / "d/a") == 0600);
  CHECK(test::read_bytes(folder / "secret") == "old");
}

TEST_CASE("an empty folder keeps its permissions, a new one has those of new "
          "folders") {
  test::temporary_folder folder;
  const mode_t before = ::umask(027);
  save(folder / "new", "1");
  CHECK(test::permissions_of(folder / "new") == 0750);
  ::umask(before);
  fs::create_directory(folder / "d");
  REQUIRE(::chmod((folder / "d").c_str(), 0700) == 0);
  save(folder / "d", "1");
  CHECK(test::permissions_of(folder / "d") == 0700);
}

TEST_CASE("what others have under a name that is saved is not removed") {
  test::temporary_folder folder;
  save(folder / "d", "old");
  fs::remove(folder / "d/b");
  fs::create_directory(folder / "d/b");
  test::write_bytes(folder / "d/b/other", "mine");
  const auto message = error_of([&] { save(folder / "d", "new"); });
  CHECK(contains(message, "d/b: is a folder where a file is saved"));
  CHECK(test::read_bytes(folder / "d/a") == "old");
  CHECK(test::read_bytes(folder / "d/b/other") == "mine");
  // Nothing of what was to be saved is lost.
  auto kept = folder / "d";
  kept += ".saved." + std::to_string(::getpid());
  CHECK(contains(message, kept.string()));
  CHECK(test::read_bytes(kept / "b") == "new");
}

TEST_CASE("two savers that meet at any moment both succeed") {
  test::temporary_folder folder;
  const auto target = folder / "d";
  for (const bool exists : {false, true}) {
    CAPTURE(exists);
    const auto calls = test::meet_at_each_call(
      [&] {
        fs::remove_all(target);
        if (exists)
          save(target, "old");
      },
      [&] { save(target, "child"); }, [&](pid_t) { save(target, "parent"); },
      [&](test::child_end end) {
        CHECK(end == test::child_end::went_on);
        const auto a = test::read_bytes(target / "a");
        CHECK((a == "child" || a == "parent"));
        CHECK(test::read_bytes(target / "b") == a);
        CHECK(folder.entries() == 1);
      });
    if (calls == 0)
      return test::skip_case(needs_tracing);
    CHECK(calls > 20);
  }
}

TEST_CASE("a process of another container, which removes folders that nobody "
          "has locked, may come at any moment") {
  test::temporary_folder folder;
  const auto calls = test::meet_at_each_call(
    [&] { fs::remove_all(folder / "d"); }, [&] { save(folder / "d", "whole"); },
    [&](pid_t writer) {
      const auto name = folder / ("d.troupe-tmp." + std::to_string(writer));
      const int found = ::open(name.c_str(), O_RDONLY);
      if (found >= 0 && ::flock(found, LOCK_EX | LOCK_NB) == 0)
        fs::remove_all(name);
      ::close(found);
    },
    [&](test::child_end end) {
      CHECK(end == test::child_end::went_on);
      CHECK(test::read_bytes(folder / "d/b") == "whole");
      CHECK(folder.entries() == 1);
    });
  if (calls == 0)
    return test::skip_case(needs_tracing);
  CHECK(calls > 10);
}

TEST_CASE("what users call NAME.tmp.NUMBER is theirs") {
  test::temporary_folder folder;
  const auto dead = std::to_string(test::number_of_the_dead());
  for (const auto& name : {"d.tmp." + dead, std::string{"d.tmp.2020"}}) {
    fs::create_directories(folder / name / "sub");
    test::write_bytes(folder / name / "sub/data", "precious");
  }
  save(folder / "d", "new");
  CHECK(folder.entries() == 3);
  CHECK(test::read_bytes(folder / "d.tmp.2020/sub/data") == "precious");
}

TEST_CASE("folders under names that are to be files are refused before "
          "anything is written") {
  test::temporary_folder folder;
  save(folder / "d", "old");
  fs::remove(folder / "d/b");
  fs::create_directory(folder / "d/b");
  atomic_directory d{folder / "d"};
  d.require_files({"a", "new"});
  CHECK(contains(error_of([&] {
                   d.require_files({"a", "b"});
                 }),
                 "d/b: is a folder where a file is saved"));
}

TEST_CASE("a folder is refused with what not even its owner can remove") {
  test::temporary_folder folder;
  save(folder / "d", "old");
  fs::create_directory(folder / "d/sub");
  test::write_bytes(folder / "d/sub/fixed", "mine");
  const test::immutable_file fixed{folder / "d/sub/fixed"};
  if (!fixed)
    return test::skip_case("needs to make a file immutable");
  CHECK(contains(error_of([&] { atomic_directory{folder / "d"}; }),
                 "d/sub/fixed: is immutable"));
  CHECK(folder.entries() == 1);
}

TEST_CASE("the current folder and those above it are refused before anything "
          "is written") {
  test::temporary_folder folder;
  fs::create_directories(folder / "d/empty");
  const auto before = fs::current_path();
  fs::current_path(folder / "d/empty");
  for (const auto& target :
       {fs::path("."), fs::path(".."), folder / "d/empty/", folder / "d"}) {
    CAPTURE(target);
    CHECK(contains(error_of([&] { save(target, "new"); }),
                   "is the current folder or one above it"));
  }
  CHECK(fs::equivalent(fs::current_path(), folder / "d/empty"));
  fs::current_path(before);
  CHECK(fs::is_empty(folder / "d/empty"));
  CHECK(folder.entries() == 1);
}

TEST_CASE("a folder that users share is refused before anything is written, "
          "and one in it is not") {
  test::temporary_folder folder;
  const fs::path shared = folder / "shared";
  fs::create_directory(shared);
  fs::permissions(shared, fs::perms::all | fs::perms::sticky_bit);
  CHECK(contains(error_of([&] { save(shared, "new"); }), "is shared by users"));
  CHECK(fs::is_empty(shared));
  CHECK(folder.entries() == 1);
  save(shared / "own", "new");
  CHECK(fs::exists(shared / "own/a"));
}

TEST_CASE("a folder appears where a link leads that led nowhere") {
  test::temporary_folder folder;
  fs::create_directory(folder / "there");
  fs::create_symlink("there/new", folder / "second");
  fs::create_symlink(folder / "second", folder / "link");
  save(folder / "link", "new");
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(test::read_bytes(folder / "there/new/a") == "new");
  save((folder / "link").string() + "/", "newer");
  CHECK(test::read_bytes(folder / "link/a") == "newer");
  CHECK(folder.entries() == 3);
}

TEST_CASE("links to nowhere that cannot become a folder are refused before "
          "anything is written") {
  test::temporary_folder folder;
  fs::create_symlink("no/such/folder", folder / "far");
  fs::create_symlink("circle", folder / "circle");
  CHECK(contains(error_of([&] { atomic_directory made(folder / "far"); }),
                 "no/such/folder: cannot create it: No such file"));
  CHECK(contains(error_of([&] { atomic_directory made(folder / "circle"); }),
                 "circle: cannot follow it: Too many levels"));
  CHECK(folder.entries() == 2);
}

TEST_CASE("a folder that the user may not replace is refused before anything "
          "is written") {
  if (::geteuid() != 0)
    return test::skip_case("needs root");
  test::temporary_folder folder;
  constexpr uid_t user = 65534;
  const auto give = [&](const fs::path& path) {
    REQUIRE(::chown(path.c_str(), user, user) == 0);
  };
  const auto save_as_user = [&](const fs::path& target) {
    test::pipe_pair told;
    const auto child = test::in_child([&] {
      test::become_user(user);
      const auto message = error_of([&] { save(target, "new"); });
      (void)!::write(told.ends[1], message.data(), message.size());
    });
    CHECK(test::exit_code(child) == 0);
    std::string message(1000, ' ');
    message.resize(static_cast<std::size_t>(
      ::read(told.ends[0], message.data(), message.size())));
    return message;
  };
  give(folder.path());
  fs::create_directory(folder / "d");
  save(folder / "d", "old"); // which belong to root
  CHECK(contains(save_as_user(folder / "d"),
                 "may not be removed by this user: save into another folder"));
  // In a folder where each may remove but what is his own.
  REQUIRE(::chmod((folder / "d").c_str(), 01777) == 0);
  CHECK(
    contains(save_as_user(folder / "d"), "may not be removed by this user"));
  REQUIRE(::chmod(folder.path().c_str(), 01777) == 0);
  REQUIRE(::chown(folder.path().c_str(), 0, 0) == 0);
  REQUIRE(::chmod((folder / "d").c_str(), 0777) == 0);
  CHECK(contains(save_as_user(folder / "d"),
                 "d: may not be replaced by this user: save into another"));
  REQUIRE(::chmod(folder.path().c_str(), 0777) == 0);
  // Deep below, and where nothing can be seen.
  give(folder / "d");
  fs::create_directories(folder / "d/sub/deep");
  give(folder / "d/sub");
  CHECK(save_as_user(folder / "d") == "none");
  REQUIRE(::chown((folder / "d/sub/deep").c_str(), 0, 0) == 0);
  test::write_bytes(folder / "d/sub/deep/a", "mine");
  CHECK(
    contains(save_as_user(folder / "d"), "d/sub/deep/a: may not be removed"));
  REQUIRE(::chmod((folder / "d/sub/deep").c_str(), 0700) == 0);
  CHECK(contains(save_as_user(folder / "d"),
                 "d/sub/deep: cannot read it: Permission denied"));
  fs::remove_all(folder / "d/sub");
  REQUIRE(::chmod((folder / "d").c_str(), 0300) == 0);
  CHECK(contains(save_as_user(folder / "d"),
                 "d: cannot read it: Permission denied"));
  CHECK(folder.entries() == 1);
  REQUIRE(::chmod((folder / "d").c_str(), 0700) == 0);
  CHECK(save_as_user(folder / "d") == "none");
  CHECK(folder.entries() == 1);
}

TEST_CASE("the root folder is refused before anything is written") {
  CHECK(contains(error_of([] { atomic_directory made("/"); }),
                 "is the root folder"));
}

TEST_CASE("folders of processes that are gone are removed, others stay") {
  test::temporary_folder folder;
  const auto dead = std::to_string(test::number_of_the_dead());
  for (auto* name : {"d.troupe-tmp.1", "d.troupe-tmp.x", "d.troupe-tmp.",
                     "e.troupe-tmp.", "d.troupe-tmp.12x"})
    fs::create_directory(folder / name);
  fs::create_directory(folder / ("d.troupe-tmp." + dead));
  fs::create_directory(folder / ("d.troupe-tmp." + dead + ".7"));
  test::write_bytes(folder / ("d.troupe-tmp." + dead) / "a", "half");
  // As a process of another container has it.
  const auto held = folder / ("d.troupe-tmp." + dead + ".8");
  fs::create_directory(held);
  const int lock = ::open(held.c_str(), O_RDONLY | O_DIRECTORY);
  ::flock(lock, LOCK_EX);
  save(folder / "d", "new");
  CHECK(folder.entries() == 7);
  CHECK(fs::exists(held));
  CHECK_FALSE(fs::exists(folder / ("d.troupe-tmp." + dead)));
  ::close(lock);
  save(folder / "d", "new");
  CHECK_FALSE(fs::exists(held));
}

} // TEST_SUITE("base.atomic_directory")
