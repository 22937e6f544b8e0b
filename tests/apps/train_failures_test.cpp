// SPDX-License-Identifier: Apache-2.0
//
// Input that `troupe train` refuses, and what it says and leaves when it fails.
#include "apps/command_runner.hpp"

#include <support/files.hpp>
#include <troupe/kernels/io/npz.hpp>
#include <troupe/kernels/memory/arena.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("apps.train_failures") {

namespace {

namespace fs = std::filesystem;

const std::string digits = TROUPE_DATA "/digits";

/// Writes feeds for `mlp`: two steps of four samples.
struct mlp_feeds {
  arena memory{make_host_memory_source()};
  temporary_folder folder;
  std::string file = folder / "f.npz";
  tensor image = tensor::make(memory, {2, 4, 784}, dtype::float32);
  tensor label = tensor::make(memory, {2, 4, 1}, dtype::int64);

  mlp_feeds() {
    std::ranges::fill(image.values<float>(), 0.5f);
    std::ranges::fill(label.values<std::int64_t>(), 3);
  }
  command_result train(const named_tensors& arrays,
                       const std::vector<std::string>& more = {}) {
    write_npz(file, arrays);
    return run_troupe(std::vector<std::string>{"train", "mlp", "--feeds", file}
                      + more);
  }
};

} // namespace

TEST_CASE_FIXTURE(mlp_feeds, "a training whose loss is lost says where") {
  std::ranges::fill(image.values<float>(), NAN);
  const auto result = train({{"image", image}, {"label", label}});
  CHECK(result.code == 0);
  CHECK(contains(result.err, "warning: the loss of step 0 is not finite, the "
                             "first of 2 such steps; --check-nan names"));
}

TEST_CASE_FIXTURE(mlp_feeds, "a variable that is fetched twice counts once") {
  const auto out = (folder / "out.npz").string();
  CHECK(train({{"image", image}, {"label", label}},
              {"--fetch", "fc_0.b_0,fc_0.b_0", "--fetch-out", out})
          .code
        == 0);
  CHECK(read_npz(out, memory).at("fc_0.b_0").dims() == shape{2, 512});
}

TEST_CASE_FIXTURE(mlp_feeds, "feeds of another shape, dtype or range name "
                             "the feed") {
  CHECK(train({{"image", image}, {"label", label}}).code == 0);
  CHECK(fails_with(train({{"image", image}}), 1, {file, "label"}));
  CHECK(fails_with(
    train({{"image", tensor::make(memory, {2, 4, 785}, dtype::float32)},
           {"label", label}}),
    1, {"image", "[4, 785]", "784"}));
  CHECK(fails_with(
    train({{"image", tensor::make(memory, {2, 4, 784}, dtype::float64)},
           {"label", label}}),
    1, {"image", "float64"}));
  label.values<std::int64_t>()[5] = 10;
  CHECK(fails_with(train({{"image", image}, {"label", label}}), 1,
                   {file, "label [1, 1, 0] is 10, outside [0, 10)"}));
}

TEST_CASE_FIXTURE(mlp_feeds, "a NaN is named where it arises if it is looked "
                             "for") {
  image.values<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  const named_tensors arrays{{"image", image}, {"label", label}};
  CHECK(train(arrays).code == 0);
  CHECK(fails_with(train(arrays, {"--check-nan"}), 1, {"mul", "step 0"}));
}

TEST_CASE("broken data files are named") {
  const temporary_folder folder;
  for (const auto& entry : fs::directory_iterator(digits))
    fs::copy(entry.path(), folder.path());
  const std::string labels = folder / "train-labels-idx1-ubyte";
  const auto train = [&] {
    return run_troupe(
      {"train", "digits", "--data", folder.path(), "--steps", "1"});
  };
  CHECK(train().code == 0);
  std::string bytes = read_bytes(labels);
  bytes[8 + 17] = 12;
  write_bytes(labels, bytes);
  CHECK(fails_with(train(), 1, {labels, "[17, 0] is 12, outside [0, 10)"}));
  write_bytes(labels, bytes.substr(0, 100));
  CHECK(fails_with(train(), 1, {labels}));
  write_bytes(labels, bytes + "more");
  CHECK(fails_with(train(), 1, {labels}));
  fs::remove(labels);
  CHECK(fails_with(train(), 1, {labels}));
}

TEST_CASE("a folder that cannot be written stops before training") {
  const temporary_folder folder;
  write_bytes(folder / "file", "x");
  const auto result = run_troupe({"train", "mlp", "--synthetic", "--steps", "1",
                                  "--save", folder / "file" / "saved"});
  CHECK(fails_with(result, 1, {"saved"}));
  CHECK_FALSE(contains(result.err, "actors"));
  CHECK(folder.entries() == 1);
}

TEST_CASE("a disk that fills up leaves nothing behind") {
  const temporary_folder folder;
  command_result result;
  {
    const file_size_limit limit(100'000);
    result = run_troupe({"train", "mlp", "--synthetic", "--steps", "1",
                         "--save", folder / "saved"});
  }
  CHECK(result.code == 1);
  CHECK(lines_of(result.err).back().starts_with("troupe: "));
  CHECK(folder.entries() == 0);
}

TEST_CASE("what fails behind the saving says where the model is") {
  const temporary_folder folder;
  const std::string saved = folder / "saved";
  command_result result;
  {
    const file_size_limit limit(2'000'000);
    result = run_troupe({"train", "digits", "--synthetic", "--steps", "40",
                         "--devices", "cpu:1", "--save", saved, "--fetch",
                         "fc_0.w_0", "--fetch-out", folder / "f.npz"});
  }
  CHECK(fails_with(result, 1,
                   {"f.npz", "; the trained program is saved in " + saved}));
  CHECK(fs::exists(folder / "saved/params.pdiparams"));
}

TEST_CASE("a held-out test without memory says where the model is") {
  const temporary_folder folder;
  const auto fails = [&](int mib) {
    const std::string saved = folder / std::to_string(mib);
    const auto result =
      run_troupe({"train", "digits", "--data", digits, "--steps", "1",
                  "--batch", "1", "--devices", "cpu:1", "--save", saved,
                  "--memory-limit", std::to_string(mib) + "MiB"});
    if (!fs::exists(saved))
      return false;
    CHECK(fails_with(
      result, 1,
      {"no memory for ", "; the trained program is saved in " + saved}));
    return true;
  };
  int mib = 1;
  while (mib < 100 && !fails(mib))
    ++mib;
  CHECK(mib < 100);
}

TEST_CASE("a trace that finds no room fails the command, not the training") {
  const temporary_folder folder;
  const std::string script = folder / "limited", errors = folder / "err",
                    metrics = folder / "m.jsonl", trace = folder / "t.trt";
  write_bytes(script, "ulimit -f 128\nexec " TROUPE_COMMAND
                      " train mlp --synthetic --steps 100 --devices cpu:1 "
                      "--trace "
                        + trace + " --metrics " + metrics);
  const int status =
    std::system(("sh " + script + " > /dev/null 2> " + errors).c_str());
  CHECK(WEXITSTATUS(status) == 1);
  CHECK(contains(read_bytes(errors), "troupe: the trace ends early: "));
  CHECK(std::ranges::count(read_bytes(metrics), '\n') == 100);
}

TEST_CASE("metrics that find no room end neither training nor saving") {
  const temporary_folder folder;
  const auto result =
    run_troupe({"train", "mlp", "--synthetic", "--steps", "3", "--devices",
                "cpu:1", "--metrics", "/dev/full", "--save", folder / "saved"});
  CHECK(fails_with(result, 1, {"/dev/full: cannot write: No space left"}));
  CHECK(contains(result.err, "warning: /dev/full"));
  CHECK(fs::exists(folder / "saved/params.pdiparams"));
}

TEST_CASE("a batch that no machine has memory for is one line at once") {
  const auto result = run_troupe({"train", "mlp", "--synthetic", "--steps", "1",
                                  "--batch", "50000000", "--devices", "cpu:1"});
  CHECK(fails_with(
    result, 1,
    {"no memory for 156800000000 bytes", "the limit is", "variable image"}));
}

TEST_CASE("--memory-limit holds for feeds, parameters and steps") {
  const auto run = [](const std::string& limit) {
    return run_troupe({"train", "mlp", "--synthetic", "--steps", "2",
                       "--devices", "cpu:2", "--memory-limit", limit});
  };
  for (auto* limit : {"1000", "3MB", "7MB"})
    CHECK(fails_with(run(limit), 1, {"no memory for"}));
  CHECK(run("1GiB").code == 0);
  for (const std::string size :
       {"0", "0MB", "-1", "-1GiB", "2.5MB", "3XB", "much", "1GiB more", "2EiB",
        "99999999999999999999", "KiB", "MB", "b", "-", "+"})
    CHECK(fails_with(
      run(size), 2,
      {"--memory-limit: must be a whole number of bytes, KiB, MiB, GiB, TiB, "
       "PiB or EiB from 1 to 2^60 bytes, such as 2500MiB, not "
       + size + " (see"}));
  for (auto* size :
       {"1073741824", "1 gib", "1GB", "1048576k", "1Gi", "2PiB", "1EiB"})
    CHECK(run(size).code == 0);
}

} // TEST_SUITE("apps.train_failures")
