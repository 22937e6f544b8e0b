// SPDX-License-Identifier: Apache-2.0
#include <support/files.hpp>
#include <troupe/training/snapshots/snapshot_writer.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("training.snapshots.snapshot_writer") {

namespace {

struct host {
  arena memory{make_host_memory_source()};

  tensor value(float of) {
    auto made = tensor::make(memory, {3}, dtype::float32);
    for (auto& v : made.values<float>())
      v = of;
    return made;
  }
  snapshot taken_after(std::uint64_t steps) {
    snapshot s;
    s.identity = {"0123456789abcdef", 7, 32, 47};
    s.position = {steps, 1.25, 64};
    s.devices = {2, 2, graph::merge_strategy::reduce, true};
    s.values.emplace("w", value(static_cast<float>(steps)));
    return s;
  }
};

void ignore(const std::string&) {}

} // namespace

TEST_CASE_FIXTURE(host, "what was written is read again") {
  const temporary_folder at;
  const snapshot_folder first{at.path(), 0, 2}, second{at.path(), 1, 2};
  auto own = taken_after(9);
  own.values.clear();
  own.values.emplace("state", value(3));
  own.of_device[3].emplace("a:b@c", value(4));
  second.write(own, 2);
  CHECK_FALSE(first.newest(memory, ignore)); // the first rank's is missing
  first.write(taken_after(9), 2);
  const auto found = first.newest(memory, ignore);
  REQUIRE(found);
  CHECK(found->identity.program == "0123456789abcdef");
  CHECK(found->identity.seed == 7);
  CHECK(found->identity.batch == 32);
  CHECK(found->identity.steps_per_epoch == 47);
  CHECK(found->position.steps == 9);
  CHECK(found->position.epoch_loss == 1.25);
  CHECK(found->position.epoch_samples == 64);
  CHECK(found->devices.per_rank == 2);
  CHECK(found->devices.ranks == 2);
  CHECK(found->devices.strategy == graph::merge_strategy::reduce);
  CHECK(found->devices.sync_batch_norm);
  CHECK(found->values.size() == 2);
  CHECK(found->values.at("w").values<float>()[2] == 9);
  CHECK(found->values.at("state").values<float>()[0] == 3);
  CHECK(found->of_device.at(3).at("a:b@c").values<float>()[0] == 4);
}

TEST_CASE_FIXTURE(host, "files are kept until newer snapshots are complete") {
  const temporary_folder at;
  const snapshot_folder first{at.path(), 0, 2}, second{at.path(), 1, 2};
  first.write(taken_after(1), 1);
  second.write(taken_after(1), 1);
  first.write(taken_after(2), 1);
  CHECK(first.newest(memory, ignore)->position.steps == 1);
  second.write(taken_after(2), 1);
  first.write(taken_after(3), 1);
  CHECK(first.newest(memory, ignore)->position.steps == 2);
  second.write(taken_after(3), 1);
  first.write(taken_after(4), 1);
  CHECK(at.entries() == 3); // both of step 3, one of step 4
}

TEST_CASE_FIXTURE(host,
                  "snapshots of another number of ranks go away in turn") {
  const temporary_folder at;
  snapshot_folder{at.path(), 0, 2}.write(taken_after(1), 2);
  snapshot_folder{at.path(), 1, 2}.write(taken_after(1), 2);
  const snapshot_folder one{at.path(), 0, 1};
  CHECK(one.newest(memory, ignore)->position.steps == 1);
  one.write(taken_after(2), 2);
  CHECK(at.entries() == 3);
  one.write(taken_after(3), 2);
  CHECK(at.entries() == 2);
}

TEST_CASE_FIXTURE(host,
                  "other files in the folder are neither read nor removed") {
  const temporary_folder at;
  write_bytes(at / "step-1.rank-0-of-1.npz.old", "x");
  write_bytes(at / "step-2.rank-3-of-2.npz", "x");
  write_bytes(at / "notes.txt", "x");
  const snapshot_folder folder{at.path(), 0, 1};
  CHECK_FALSE(folder.has_any());
  folder.write(taken_after(3), 1);
  folder.write(taken_after(4), 1);
  CHECK(at.entries() == 4);
}

TEST_CASE_FIXTURE(host, "an archive that is no snapshot is reported by name") {
  const temporary_folder at;
  const snapshot_folder folder{at.path(), 0, 1};
  folder.write(taken_after(1), 2);
  write_npz(at / "step-5.rank-0-of-1.npz", {{"w", value(1)}});
  std::vector<std::string> damaged;
  const auto found = folder.newest(
    memory, [&](const std::string& why) { damaged.push_back(why); });
  REQUIRE(found);
  CHECK(found->position.steps == 1);
  REQUIRE(damaged.size() == 1);
  CHECK(contains(damaged[0], "step-5.rank-0-of-1.npz"));
  CHECK(contains(damaged[0], "no snapshot"));
}

TEST_CASE_FIXTURE(host, "a failed write is reported, and later ones go on") {
  const temporary_folder at;
  const auto inner = at.path() / "inner";
  snapshot_folder folder{inner, 0, 1};
  folder.require_writable();
  std::filesystem::remove(inner);
  snapshot_writer writer{folder, 2};
  writer.write(taken_after(1));
  const auto failure = writer.take_failure();
  REQUIRE(failure);
  CHECK(contains(*failure, "inner"));
  CHECK_FALSE(writer.take_failure());
  folder.require_writable();
  writer.write(taken_after(2));
  CHECK_FALSE(writer.take_failure());
  CHECK(folder.newest(memory, ignore)->position.steps == 2);
}

} // TEST_SUITE("training.snapshots.snapshot_writer")
