// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/paddle/parameter_file.hpp>
#include <troupe/graph/paddle/program_folder.hpp>

#include <support/files.hpp>
#include <support/killed_child.hpp>
#include <support/skip_case.hpp>

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::graph;
using test::contains;
using test::error_of;

TEST_SUITE("graph.program_folder") {

namespace {

const std::filesystem::path data =
  std::filesystem::path(TROUPE_TEST_DATA) / "paddle_programs";

/// Error of reading a folder whose program.json is `text`.
std::string reading(const std::string& text) {
  test::temporary_folder folder;
  for (const char* name : {"main.pdmodel", "startup.pdmodel"})
    std::filesystem::copy(data / "mlp" / name, folder / name);
  test::write_bytes(folder / "program.json", text);
  return error_of([&] { read_program_folder(folder.path()); });
}

} // namespace

TEST_CASE("a program folder has programs, loss, batch and feeds") {
  auto folder = read_program_folder(data / "mlp");
  CHECK(folder.main.main().ops.size() == 27);
  CHECK(folder.startup.main().ops.size() == 7);
  REQUIRE(folder.test);
  CHECK(folder.test->main().ops.size() == 10);
  CHECK(folder.info.net == "mlp");
  CHECK(folder.info.loss == "mean_0.tmp_0");
  CHECK(folder.info.batch == 16);
  REQUIRE(folder.info.feeds.size() == 2);
  const auto& image = folder.info.feeds.at("image");
  CHECK(image.dims == shape{16, 784});
  CHECK(image.type == dtype::float32);
  CHECK_FALSE(image.below);
  CHECK(folder.info.feeds.at("label").type == dtype::int64);
  CHECK(folder.info.feeds.at("label").below == 10);
}

TEST_CASE("test program and program.json may be missing") {
  test::temporary_folder folder;
  for (const char* name : {"main.pdmodel", "startup.pdmodel"})
    std::filesystem::copy(data / "mlp" / name, folder / name);
  auto found = read_program_folder(folder.path());
  CHECK_FALSE(found.test);
  CHECK(found.info.loss.empty());
  CHECK_FALSE(found.info.batch);
  std::filesystem::remove(folder / "startup.pdmodel");
  CHECK(contains(error_of([&] { read_program_folder(folder.path()); }),
                 "startup.pdmodel: No such file"));
}

TEST_CASE("a malformed program.json is refused by key") {
  CHECK(reading("{}") == "none");
  CHECK(reading(R"({"batch": null, "other": [1]})") == "none");
  CHECK(contains(reading("{"), "program.json: is not a JSON object"));
  CHECK(contains(reading("[1]"), "is not a JSON object"));
  CHECK(contains(reading(R"({"loss_var": 1})"), "'loss_var' is not a string"));
  CHECK(contains(reading(R"({"batch": 0})"), "'batch' is not a positive"));
  CHECK(contains(reading(R"({"batch": 1.5})"), "'batch' is not a positive"));
  CHECK(contains(reading(R"({"batch": 18446744073709551615})"), "'batch'"));
  CHECK(reading(R"({"batch": 4294967296})") == "none");
  CHECK(contains(reading(R"({"batch": 4294967297})"),
                 "program.json: 'batch' is 4294967297, but must be at most "
                 "4294967296"));
  CHECK(contains(reading(R"({"feeds": 1})"), "'feeds' is not an object"));
  CHECK(contains(reading(R"({"feeds": {"x": 1}})"), "feed 'x'"));
  CHECK(contains(reading(R"({"feeds": {"x": {"shape": 1}}})"), "no 'shape'"));
  CHECK(contains(reading(R"({"feeds": {"x": {"shape": [-1]}}})"), "'shape'"));
  CHECK(contains(reading(R"({"feeds": {"x": {"shape": [1,1,1,1,1,1,1,1,1]}}})"),
                 "at most 8 extents"));
  CHECK(
    contains(reading(R"({"feeds": {"x": {"shape": [1], "dtype": "float"}}})"),
             "feed 'x' has dtype 'float'"));
  CHECK(contains(
    reading(
      R"({"feeds": {"x": {"shape": [1], "dtype": "int64", "below": "y"}}})"),
    "'below'"));
  CHECK(contains(reading(std::string(100000, '[')), "is not a JSON object"));
}

TEST_CASE("a folder that is written is read back, with parameters") {
  arena memory(make_host_memory_source());
  test::temporary_folder folder;
  auto original = read_program_folder(data / "mlp");
  scope values;
  load_parameters(original.main, data / "mlp/params0.pdiparams", values,
                  memory);
  write_program_folder(original, folder / "out", &values);
  CHECK(folder.entries() == 1);
  auto again = read_program_folder(folder / "out");
  CHECK(again.main.main().ops.size() == 27);
  CHECK(again.test.has_value());
  CHECK(again.info.loss == original.info.loss);
  CHECK(again.info.batch == original.info.batch);
  CHECK(again.info.feeds.at("image").dims == shape{16, 784});
  CHECK(again.info.feeds.at("label").below == 10);
  CHECK(test::read_bytes(folder / "out/params.pdiparams")
        == test::read_bytes(data / "mlp/params0.pdiparams"));
}

TEST_CASE("writing over a folder leaves no file of the earlier program") {
  test::temporary_folder folder;
  auto original = read_program_folder(data / "mlp");
  test::write_bytes(folder / "params.pdiparams", "old");
  test::write_bytes(folder / "notes.txt", "mine");
  write_program_folder(original, folder.path());
  CHECK(std::filesystem::exists(folder / "test.pdmodel"));
  CHECK_FALSE(std::filesystem::exists(folder / "params.pdiparams"));
  CHECK(test::read_bytes(folder / "notes.txt") == "mine");
  original.test.reset();
  write_program_folder(original, folder.path());
  CHECK_FALSE(std::filesystem::exists(folder / "test.pdmodel"));
}

TEST_CASE("a folder that is written over is never of two programs") {
  test::temporary_folder folder;
  const auto old = read_program_folder(data / "mlp");
  auto other = old;
  other.main.main().ops.pop_back();
  other.test.reset();
  const auto ops = old.main.main().ops.size();
  bool is_old = false, is_new = false;
  const auto calls = test::kill_at_each_call(
    [&] {
      if (!std::filesystem::exists(folder / "out/test.pdmodel"))
        write_program_folder(old, folder / "out");
    },
    [&] { write_program_folder(other, folder / "out"); },
    [&] {
      const auto read = read_program_folder(folder / "out");
      CHECK(read.main.main().ops.size() == (read.test ? ops : ops - 1));
      (read.test ? is_old : is_new) = true;
    });
  if (calls == 0)
    return test::skip_case("needs to trace a child process");
  CHECK(is_old);
  CHECK(is_new);
}

TEST_CASE("a folder under the name of a file is refused before anything is "
          "written") {
  const auto folder = read_program_folder(data / "mlp");
  for (const auto* name : {"main.pdmodel", "startup.pdmodel", "test.pdmodel",
                           "program.json", "params.pdiparams"}) {
    CAPTURE(name);
    test::temporary_folder out;
    require_program_folder_place(out / "d");
    CHECK(out.entries() == 0);
    std::filesystem::create_directories(out / "d" / name);
    const auto refused =
      error_of([&] { require_program_folder_place(out / "d"); });
    CHECK(contains(refused, std::string{name} + ": is a folder where a file"));
    CHECK(error_of([&] { write_program_folder(folder, out / "d"); })
          == refused);
    CHECK(out.entries() == 1);
  }
}

TEST_CASE("a folder that cannot be written leaves nothing") {
  test::temporary_folder folder;
  auto original = read_program_folder(data / "mlp");
  {
    test::file_size_limit limit(5000);
    CHECK(contains(
      error_of([&] { write_program_folder(original, folder / "out"); }),
      "io_failure"));
  }
  scope empty;
  CHECK(contains(
    error_of([&] { write_program_folder(original, folder / "out", &empty); }),
    "it has no value"));
  CHECK(folder.entries() == 0);
}

} // TEST_SUITE("graph.program_folder")
