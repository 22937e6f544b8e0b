// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/module.hpp>

#include <support/caught.hpp>
#include <support/files.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("base.module") {

namespace {

/// A file beside this program, while it exists.
class file_beside {
public:
  explicit file_beside(const std::string& name)
    : path_(std::filesystem::read_symlink("/proc/self/exe").parent_path()
            / name) {
    std::ofstream{path_} << "no library";
  }
  ~file_beside() { std::filesystem::remove(path_); }
  file_beside(const file_beside&) = delete;
  file_beside& operator=(const file_beside&) = delete;

  std::string path() const { return path_.string(); }

private:
  std::filesystem::path path_;
};

} // namespace

TEST_CASE("a module that is not there is named") {
  CHECK_FALSE(has_module("troupe_none"));
  const auto e = caught([] { function_of_module("troupe_none", "f"); });
  CHECK(e.code() == errc::not_found);
  CHECK(says(e, "troupe_none.so"));
}

TEST_CASE("a module that cannot be loaded is named with its path") {
  const auto name = "troupe_bad_" + std::to_string(::getpid());
  const file_beside bad(name + ".so");
  CHECK(has_module(name));
  const auto e = caught([&] { function_of_module(name, "f"); });
  CHECK(e.code() == errc::io_failure);
  CHECK(says(e, bad.path()));
}

} // TEST_SUITE("base.module")
