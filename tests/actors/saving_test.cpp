// SPDX-License-Identifier: Apache-2.0

// The parameters of an executor in files.

#include <troupe/actors/executor.hpp>
#include <troupe/graph/layers.hpp>
#include <troupe/graph/optimizer.hpp>
#include <troupe/graph/paddle/parameter_file.hpp>

#include <actors/small_nets.hpp>
#include <support/caught.hpp>
#include <support/files.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("actors.saving") {

namespace {

namespace fs = std::filesystem;
using graph::merge_strategy;

struct saved_run {
  temporary_folder folder;
  fs::path file = folder / "params.pdiparams";
  small_net net = make_mlp();
  executor_options options;

  explicit saved_run(merge_strategy strategy = merge_strategy::all_reduce) {
    options.devices = parse_devices("cpu:2");
    options.strategy = strategy;
    options.parameters = net.parameters();
  }
  executor_options with_other_values(const char* devices = "cpu:2") const {
    auto made = options;
    made.devices = parse_devices(devices);
    made.parameters = net.parameters(2);
    return made;
  }
  std::vector<double> losses(executor& exe, std::uint64_t from) const {
    std::vector<double> found;
    for (auto i = from; i < from + 3; ++i)
      found.push_back(exe.run(net.batch(i, 6)).loss);
    return found;
  }
};

/// A network with one layer, so large.
struct one_layer : graph::network {
  explicit one_layer(std::int64_t width) {
    auto x = data("x", {-1, 4});
    optimizer::sgd({.learning_rate = 0.1f})
      .minimize(layers::mean(layers::fc(x, width)));
  }
  std::shared_ptr<scope> parameters() const {
    auto values = std::make_shared<scope>();
    run_startup(startup, *values);
    return values;
  }
};

} // namespace

TEST_CASE("an executor goes on from what another one has saved, whatever the "
          "strategy") {
  for (const auto strategy :
       {merge_strategy::all_reduce, merge_strategy::reduce,
        merge_strategy::replicate}) {
    CAPTURE(to_string(strategy));
    saved_run run{strategy};
    executor exe{run.net.main, run.options};
    run.losses(exe, 0);
    exe.save(run.file);
    const auto expected = run.losses(exe, 3);
    executor other{run.net.main, run.with_other_values()};
    CHECK(run.losses(other, 3) != expected);
    other.load(run.file);
    CHECK(run.losses(other, 3) == expected);
    // The first one goes back.
    exe.load(run.folder.path());
    CHECK(run.losses(exe, 3) == expected);
  }
}

TEST_CASE("a saved file is that of the parameter functions") {
  saved_run run;
  executor exe{run.net.main, run.options};
  run.losses(exe, 0);
  exe.save(run.file);
  arena memory{make_host_memory_source()};
  const auto read = std::make_shared<scope>();
  graph::load_parameters(run.net.main, run.file, *read, memory);
  auto options = run.options;
  options.parameters = read;
  const auto expected = run.losses(exe, 3);
  executor other{run.net.main, options};
  CHECK(run.losses(other, 3) == expected);
  other.save(run.folder / "again");
  graph::save_parameters(run.net.main, *read, run.file);
  CHECK(read_bytes(run.folder / "again") == read_bytes(run.file));
}

TEST_CASE("a file of another program, a damaged one or none changes nothing") {
  const temporary_folder folder;
  const one_layer four{4}, five{5};
  executor_options options;
  options.devices = parse_devices("cpu:2");
  options.parameters = five.parameters();
  executor{five.main, options}.save(folder / "five");
  auto bytes = read_bytes(folder / "five");
  options.parameters = four.parameters();
  executor exe{four.main, options};
  const auto before = values_of(*options.parameters);
  const auto refused = [&](const char* name) {
    const auto e = caught([&] { exe.load(folder / name); });
    CHECK(values_of(*options.parameters) == before);
    return e;
  };
  const auto shape = refused("five");
  CHECK(shape.code() == errc::shape_mismatch);
  CHECK(says(shape, "has shape [5], the program declares [4]"));
  CHECK(refused("nowhere").code() == errc::not_found);
  exe.save(folder / "four");
  bytes = read_bytes(folder / "four");
  write_bytes(folder / "short", bytes.substr(0, bytes.size() - 1));
  CHECK(refused("short").code() == errc::bad_file);
  write_bytes(folder / "long", bytes + "x");
  CHECK(refused("long").code() == errc::bad_file);
  exe.load(folder / "four");
}

TEST_CASE("parameters cannot be saved or loaded while a step runs") {
  saved_run run;
  executor exe{run.net.main, run.options};
  exe.save(run.file);
  const auto step = exe.submit(run.net.batch(0, 6));
  CHECK(caught([&] { exe.save(run.file); }).code() == errc::invalid_argument);
  CHECK(caught([&] { exe.load(run.file); }).code() == errc::invalid_argument);
  exe.wait(step);
  exe.load(run.file);
  CHECK(caught([&] { exe.save(run.folder / "no" / "where"); }).code()
        == errc::io_failure);
}

TEST_CASE("loaded parameters reach other executors on the same devices, and "
          "those on more devices say that theirs are gone") {
  saved_run run;
  run.options.lowering.share_parameters = false;
  executor exe{run.net.main, run.options};
  exe.save(run.file);
  const auto expected = run.losses(exe, 0);
  executor same{run.net.main, run.options};
  auto one_device = run.options;
  one_device.devices = parse_devices("cpu:1");
  const auto& test = run.net.evaluation;
  executor tester{test, one_device};
  exe.load(run.file);
  CHECK(run.losses(same, 0) == expected);
  tester.run(run.net.batch(0, 6));
  // One on one device does not know the second one.
  executor on_two{test, run.options};
  on_two.run(run.net.batch(0, 6));
  executor small{test, one_device};
  small.save(run.folder / "test");
  small.load(run.folder / "test");
  const auto gone = caught([&] { on_two.run(run.net.batch(0, 6)); });
  CHECK(gone.code() == errc::invalid_argument);
  CHECK(says(gone, "cpu:0"));
}

TEST_CASE("a load begins a new update") {
  saved_run run;
  run.options.accumulate = 2;
  executor exe{run.net.main, run.options};
  exe.save(run.file);
  CHECK_FALSE(exe.run(run.net.batch(0, 6)).updates);
  exe.load(run.file);
  const auto first = exe.run(run.net.batch(1, 6));
  CHECK_FALSE(first.updates);
  exe.run(run.net.batch(2, 6));
  const auto after = exe.run(run.net.batch(3, 6)).loss;
  auto again = run.with_other_values();
  executor other{run.net.main, again};
  other.load(run.file);
  other.run(run.net.batch(1, 6));
  other.run(run.net.batch(2, 6));
  CHECK(other.run(run.net.batch(3, 6)).loss == after);
}

} // TEST_SUITE("actors.saving")
