// SPDX-License-Identifier: Apache-2.0
//
// The output of the command has no control characters, whatever its input.
#include "apps/command_runner.hpp"

#include <troupe/kernels/io/npz.hpp>

#include <support/files.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

using namespace troupe::test;

TEST_SUITE("apps.one_line") {
namespace {

using words = std::vector<std::string>;

/// True if `text` has no control characters except line ends.
bool is_plain(const std::string& text) {
  return std::ranges::none_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return c != '\n' && (byte < 0x20 || byte >= 0x7f);
  });
}

} // namespace

TEST_CASE("a failure is one line whatever it quotes") {
  const std::string odd = "1\nx\r\x1b[31m\x7f\xff", shown = "1\\x0ax\\x0d";
  for (const words& command :
       {words{"train", "mlp", "--synthetic", odd},
        {"train", odd, "--synthetic"},
        {"train", "./" + odd, "--synthetic"},
        {"train", "mlp", "--synthetic", "--steps", odd},
        {"train", "mlp", "--synthetic", "--memory-limit", odd},
        {"train", "mlp", "--synthetic", "--precision", odd},
        {"train", "mlp", "--synthetic", "--strategy", odd},
        {"train", "mlp", "--synthetic", "--devices", odd},
        {"train", "mlp", "--synthetic", "--loss", odd},
        {"train", "mlp", "--synthetic", "--params", odd},
        {"train", "mlp", "--data", odd},
        {"train", "mlp", "--feeds", odd},
        {"train", "mlp", "--synthetic", "--metrics", "/no/" + odd},
        {"train", "mlp", "--synthetic", "--fetch", odd, "--fetch-out", "x"},
        {"graph", "mlp", "--format", odd},
        {"inspect", odd},
        {"inspect", odd + ".npz"},
        {"bench", odd},
        {"bench", "tasks", "--engine", odd},
        {"bench", "tasks", "--pattern", odd},
        {"bench", "latency", "--gap-us", odd},
        {"bench", "schedule", "mlp", "--delay", odd},
        {odd}}) {
    CAPTURE(command);
    const auto result = run_troupe(command);
    CHECK((result.code == 1 || result.code == 2));
    CHECK(result.out.empty());
    CHECK(lines_of(result.err).size() == 1);
    CHECK(is_plain(result.err));
    CHECK(contains(result.err, shown));
  }
}

TEST_CASE("the name of a file of arrays is printed in one line") {
  const temporary_folder folder;
  const std::string file = folder / "\n\x1b.npz";
  troupe::arena memory(troupe::make_host_memory_source());
  troupe::write_npz(
    file, {{"a", troupe::tensor::make(memory, {1}, troupe::dtype::float32)}});
  const auto text = run_troupe({"inspect", file});
  CHECK(text.code == 0);
  CHECK(is_plain(text.out));
  CHECK(contains(text.out, "/\\x0a\\x1b.npz\n"));
}

TEST_CASE("names of a program are printed without control characters") {
  const temporary_folder folder;
  const std::string program = folder / "p\x1b\xff";
  REQUIRE(run_troupe({"train", "mlp", "--synthetic", "--steps", "1",
                      "--devices", "cpu:1", "--save", program})
            .code
          == 0);
  for (const std::string name :
       {"main.pdmodel", "startup.pdmodel", "test.pdmodel"}) {
    const auto file = program + "/" + name;
    write_bytes(file, replaced(read_bytes(file), "fc_0.w_0",
                               "fc\n0\x1bw\xff"
                               "0"));
  }
  for (const words& command :
       {words{"inspect", program},
        {"graph", program, "--wiring"},
        {"graph", program, "--format", "dot"},
        {"bench", "schedule", program, "--repeat", "1", "--sample-ms", "1"},
        {"bench", "train", program, "--steps", "1", "--devices", "cpu:1"},
        {"train", program, "--synthetic", "--steps", "1", "--devices",
         "cpu:1"}}) {
    CAPTURE(command);
    const auto result = run_troupe(command);
    CHECK(result.code == 0);
    CHECK(is_plain(result.out));
    CHECK(is_plain(result.err));
  }
  const auto unnamed = run_troupe({"train", program, "--synthetic", "--steps",
                                   "1", "--devices", "cpu:1", "--fetch",
                                   "fc\n0\x1bw\xff"
                                   "0",
                                   "--fetch-out", folder / "f.npz"});
  CHECK(fails_with(unnamed, 1,
                   {"f.npz: cannot store array 'fc\\x0a0\\x1bw\\xff0'"}));
  CHECK(lines_of(unnamed.err).size() == 1); // nothing was trained
  for (const words& command :
       {words{"bench", "schedule", program, "--repeat", "1", "--sample-ms", "1",
              "--json"},
        {"bench", "steps", program, "--repeat", "1", "--sample-ms", "1",
         "--json"},
        {"bench", "train", program, "--steps", "1", "--json"},
        {"inspect", program, "--json"},
        {"graph", program},
        {"graph", program, "--wiring", "--json"}}) {
    CAPTURE(command);
    const auto result = run_troupe(command);
    CHECK(result.code == 0);
    for (const auto& line : lines_of(result.out))
      CHECK(nlohmann::json::accept(line));
  }
}
} // TEST_SUITE("apps.one_line")
