// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/paddle/parameter_file.hpp>
#include <troupe/graph/paddle/program_file.hpp>
#include <troupe/graph/paddle/tensor_record.hpp>

#include <graph/paddle/wire.hpp>
#include <support/files.hpp>
#include <support/veiled_device.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

using namespace troupe;
using namespace troupe::graph;
using test::contains;
using test::error_of;

TEST_SUITE("graph.parameter_file") {

namespace {

const std::filesystem::path data =
  std::filesystem::path(TROUPE_TEST_DATA) / "paddle_programs";

struct sums {
  double plain = 0;
  double absolute = 0;
};

sums sums_of(const scope& values, const std::string& name) {
  sums result;
  for (float x : values.find(name)->as_tensor().values<float>()) {
    result.plain += x;
    result.absolute += std::abs(x);
  }
  return result;
}

/// A program with one stored variable "w" of that declaration.
program program_with(dtype type, const shape& dims,
                     var_kind kind = var_kind::dense) {
  program p;
  var_desc var;
  var.name = "w";
  var.kind = kind;
  var.type = type;
  var.dims = dims;
  var.persistable = true;
  p.main().add_var(var);
  return p;
}

struct fixture {
  arena memory{make_host_memory_source()};
  test::temporary_folder folder;
  scope values;

  tensor ramp(const shape& dims, dtype type = dtype::float32) {
    auto ramp = tensor::make(memory, dims, dtype::int64);
    for (std::int64_t i = 0; i < ramp.numel(); ++i)
      ramp.data<std::int64_t>()[i] = i;
    return cast(ramp, type, memory);
  }
  std::string loading(const program& p, const std::filesystem::path& path) {
    return error_of([&] { load_parameters(p, path, values, memory); });
  }
};

} // namespace

TEST_CASE_FIXTURE(fixture, "parameters that Paddle saved have its values") {
  auto p = read_program(data / "mlp/main.pdmodel");
  CHECK(stored_names(p)
        == std::vector<std::string>{"fc_0.b_0", "fc_0.w_0", "fc_1.b_0",
                                    "fc_1.w_0", "fc_2.b_0", "fc_2.w_0",
                                    "learning_rate_0"});
  load_parameters(p, data / "mlp/params0.pdiparams", values, memory);
  CHECK(values.names() == stored_names(p));
  CHECK(values.find("fc_0.w_0")->as_tensor().dims() == shape{784, 48});
  CHECK(sums_of(values, "fc_0.w_0").plain
        == doctest::Approx(2.8987705670297146).epsilon(1e-9));
  CHECK(sums_of(values, "fc_0.w_0").absolute
        == doctest::Approx(1597.850912693888).epsilon(1e-9));
  CHECK(sums_of(values, "fc_2.w_0").plain
        == doctest::Approx(-0.3473016321659088).epsilon(1e-9));
  CHECK(sums_of(values, "fc_1.b_0").absolute == 0);
  CHECK(*values.find("learning_rate_0")->as_tensor().data<float>() == 0.1f);
  auto words = read_program(data / "word2vec_sparse/main.pdmodel");
  load_parameters(words, data / "word2vec_sparse/params0.pdiparams", values,
                  memory);
  CHECK(sums_of(values, "shared_w").absolute
        == doctest::Approx(136.7386976480484).epsilon(1e-9));
}

TEST_CASE_FIXTURE(fixture, "a file per variable holds the same as one file") {
  auto p = read_program(data / "mlp/main.pdmodel");
  load_parameters(p, data / "mlp/params0_separate", values, memory);
  save_parameters(p, values, folder / "combined");
  CHECK(test::read_bytes(folder / "combined")
        == test::read_bytes(data / "mlp/params0.pdiparams"));
  save_parameters(p, values, folder / "separate", parameter_layout::separate);
  for (const auto& name : stored_names(p)) {
    INFO(name);
    CHECK(test::read_bytes(folder / ("separate/" + name))
          == test::read_bytes(data / "mlp/params0_separate" / name));
  }
  CHECK(folder.entries() == 2);
}

TEST_CASE_FIXTURE(fixture, "a folder with a combined file is read from it") {
  auto p = program_with(dtype::float32, {2});
  values.var("w").set(ramp({2}));
  save_parameters(p, values, folder / combined_file_name);
  scope again;
  load_parameters(p, folder.path(), again, memory);
  CHECK(again.find("w")->as_tensor().data<float>()[1] == 1.0f);
}

TEST_CASE_FIXTURE(fixture, "values in a device's memory are stored") {
  const std::shared_ptr<device> on = std::make_shared<test::veiled_device>();
  values.add_device(on);
  auto p = program_with(dtype::float32, {2});
  values.var("w").set(ramp({2}));
  save_parameters(p, values, folder / "host");
  values.bring_to("w", *on);
  save_parameters(p, values, folder / "device");
  CHECK(test::read_bytes(folder / "device")
        == test::read_bytes(folder / "host"));
  selected_rows rows{{0, 1}, 4, on->to_device(ramp({2, 2}))};
  auto sparse = program_with(dtype::float32, {4, 2}, var_kind::selected_rows);
  values.var("w").set(rows);
  save_parameters(sparse, values, folder / "rows");
  scope again;
  load_parameters(sparse, folder / "rows", again, memory);
  CHECK(again.find("w")->as_rows().values.data<float>()[3] == 3.0f);
}

TEST_CASE_FIXTURE(fixture, "every dtype survives a round trip") {
  for (auto type : {dtype::float32, dtype::float64, dtype::float16,
                    dtype::bfloat16, dtype::int8, dtype::uint8, dtype::int16,
                    dtype::int32, dtype::int64, dtype::boolean}) {
    INFO(std::string(to_string(type)));
    auto p = program_with(type, {-1, 2});
    values.var("w").set(ramp({3, 2}, type));
    save_parameters(p, values, folder / "a");
    scope again;
    load_parameters(p, folder / "a", again, memory);
    const auto& before = values.find("w")->as_tensor();
    const auto& after = again.find("w")->as_tensor();
    CHECK(after.type() == type);
    CHECK(after.dims() == shape{3, 2});
    CHECK(std::memcmp(before.raw(), after.raw(), before.bytes()) == 0);
  }
}

TEST_CASE_FIXTURE(fixture, "empty tensors and names with slashes are stored") {
  auto p = program_with(dtype::float32, {0, 4});
  auto var = p.main().var("w");
  var.name = "block/w";
  p.main().add_var(var);
  values.var("w").set(ramp({0, 4}));
  values.var("block/w").set(ramp({0, 4}));
  save_parameters(p, values, folder / "d", parameter_layout::separate);
  CHECK(std::filesystem::exists(folder / "d/block/w"));
  scope again;
  load_parameters(p, folder / "d", again, memory);
  CHECK(again.find("block/w")->as_tensor().dims() == shape{0, 4});
}

TEST_CASE_FIXTURE(fixture, "names that lead out of the folder are refused") {
  for (std::string name : {"../w", "/w", "a/../../w", "w/", ".", "a/./b"}) {
    INFO(name);
    program p;
    var_desc var;
    var.name = name;
    var.persistable = true;
    p.main().add_var(var);
    values.var(name).set(ramp({}));
    CHECK(contains(error_of([&] {
                     save_parameters(p, values, folder / "d",
                                     parameter_layout::separate);
                   }),
                   "cannot be the name of a file"));
    CHECK(contains(loading(p, folder.path()), "cannot be the name of a file"));
  }
  CHECK(folder.entries() == 0);
}

TEST_CASE_FIXTURE(fixture, "selected rows survive a round trip") {
  auto p = program_with(dtype::float32, {10, 2}, var_kind::selected_rows);
  values.var("w").set(selected_rows{{7, 0, 7}, 10, ramp({3, 2})});
  save_parameters(p, values, folder / "a");
  CHECK(std::filesystem::file_size(folder / "a")
        == 4 + 8 + 3 * 8 + 8 + 4 + 4 + 6 + 24);
  scope again;
  load_parameters(p, folder / "a", again, memory);
  const auto& rows = again.find("w")->as_rows();
  CHECK(rows.rows == std::vector<std::int64_t>{7, 0, 7});
  CHECK(rows.height == 10);
  CHECK(rows.values.dims() == shape{3, 2});
  CHECK(rows.values.data<float>()[5] == 5.0f);
  auto bytes = test::read_bytes(folder / "a");
  bytes[12] = 10; // first row
  test::write_bytes(folder / "a", bytes);
  CHECK(contains(loading(p, folder / "a"), "row 10 is outside of height 10"));
  auto dense = program_with(dtype::float32, {10, 2});
  CHECK(
    contains(error_of([&] { save_parameters(dense, values, folder / "b"); }),
             "declares another kind of value"));
}

TEST_CASE_FIXTURE(fixture, "a record's prefix is as published") {
  {
    atomic_file file(folder / "a");
    write_tensor_record(file, ramp({10, 784}), "w");
    file.commit();
  }
  auto bytes = test::read_bytes(folder / "a");
  CHECK(bytes.size() == 27 + 31360);
  CHECK(bytes.substr(0, 27)
        == std::string("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x07\0\0\0\x08\x05\x10"
                       "\x0A\x10\x90\x06",
                       27));
}

TEST_CASE_FIXTURE(fixture, "levels of detail survive a round trip") {
  const lod levels{{0, 1, 3}, {0, 2, 2, 5}};
  {
    atomic_file file(folder / "a");
    auto value = ramp({5});
    value.set_levels(make_lod(levels, 5));
    write_tensor_record(file, value, "w");
    file.commit();
  }
  input_file file(folder / "a");
  const auto value = read_tensor_record(file, "w", memory);
  REQUIRE(value.levels());
  CHECK(*value.levels() == levels);
  CHECK(file.remaining() == 0);
}

// Written by the op `save` of Paddle 2.6.2.
TEST_CASE_FIXTURE(fixture, "records of Paddle come back byte for byte") {
  const std::filesystem::path records =
    std::filesystem::path(TROUPE_TEST_DATA) / "paddle_records";
  {
    input_file with_levels(records / "lod");
    const auto value = read_tensor_record(with_levels, "b", memory);
    CHECK(value.dims() == shape{2, 2});
    REQUIRE(value.levels());
    CHECK(*value.levels() == lod{{0, 1, 2}});
    atomic_file copy(folder / "lod");
    write_tensor_record(copy, value, "b");
    copy.commit();
  }
  input_file of_rows(records / "rows");
  const auto rows = read_rows_record(of_rows, "c", memory);
  CHECK(rows.rows == std::vector<std::int64_t>{1, 7});
  CHECK(rows.height == 10);
  CHECK(rows.values.dims() == shape{2, 2});
  atomic_file copy(folder / "rows");
  write_rows_record(copy, rows, "c");
  copy.commit();
  for (const char* name : {"lod", "rows"})
    CHECK(test::read_bytes(folder / name) == test::read_bytes(records / name));
}

TEST_CASE_FIXTURE(fixture, "levels of detail that do not fit are refused") {
  {
    atomic_file file(folder / "a");
    auto value = ramp({5});
    value.set_levels(std::make_shared<const lod>(lod{{0, 2, 4}}));
    write_tensor_record(file, value, "w");
    file.commit();
  }
  input_file file(folder / "a");
  CHECK(contains(error_of([&] { read_tensor_record(file, "w", memory); }),
                 "end with 4 instead of 5"));
}

TEST_CASE_FIXTURE(fixture, "mismatches name file, variable and both values") {
  values.var("w").set(ramp({2, 3}));
  save_parameters(program_with(dtype::float32, {2, 3}), values, folder / "a");
  CHECK(loading(program_with(dtype::float32, {2, 4}), folder / "a")
        == "shape_mismatch: " + (folder / "a").string()
             + ": variable 'w' has shape [2, 3], the program declares [2, 4]");
  CHECK(contains(loading(program_with(dtype::float32, {2, 3, 1}), folder / "a"),
                 "declares [2, 3, 1]"));
  CHECK(contains(loading(program_with(dtype::int32, {2, 3}), folder / "a"),
                 "dtype_mismatch"));
  CHECK(contains(loading(program_with(dtype::int32, {2, 3}), folder / "a"),
                 "variable 'w' is float32, the program declares int32"));
}

TEST_CASE_FIXTURE(fixture, "files too short or too long give byte counts") {
  auto p = read_program(data / "mlp/main.pdmodel");
  auto bytes = test::read_bytes(data / "mlp/params0.pdiparams");
  test::write_bytes(folder / "a", bytes + "xyz");
  CHECK(contains(loading(p, folder / "a"),
                 "has 158492 bytes, of which 3 lie behind the last of the "
                 "program's 7 variables"));
  test::write_bytes(folder / "a", bytes.substr(0, bytes.size() - 1));
  CHECK(contains(loading(p, folder / "a"),
                 "too short: variable 'learning_rate_0' needs 4 bytes at byte "
                 "158485 but only 3 remain"));
  test::write_bytes(folder / "a", "");
  CHECK(contains(loading(p, folder / "a"), "too short: variable 'fc_0.b_0'"));
  CHECK(contains(loading(p, folder / "no"), "not_found"));
  CHECK(contains(loading(p, folder.path()), "fc_0.b_0: No such file"));
  CHECK(values.names().empty());
}

TEST_CASE_FIXTURE(fixture, "what cannot be stored leaves nothing behind") {
  auto p = program_with(dtype::float32, {1000});
  auto save = [&](parameter_layout layout) {
    return error_of([&] { save_parameters(p, values, folder / "a", layout); });
  };
  CHECK(contains(save(parameter_layout::combined), "'w': it has no value"));
  CHECK(contains(save(parameter_layout::separate), "not_found"));
  values.var("w").set(tensor());
  CHECK(contains(save(parameter_layout::combined), "not a plain tensor"));
  values.var("w").set(ramp({1000}));
  test::file_size_limit limit(2000);
  CHECK(contains(save(parameter_layout::combined), "io_failure"));
  CHECK(contains(save(parameter_layout::separate), "io_failure"));
  CHECK(folder.entries() == 0);
}

TEST_CASE_FIXTURE(fixture, "a failed save leaves the earlier file as it was") {
  auto p = program_with(dtype::float32, {1000});
  values.var("w").set(ramp({1000}));
  save_parameters(p, values, folder / "a");
  auto before = test::read_bytes(folder / "a");
  {
    test::file_size_limit limit(2000);
    CHECK(error_of([&] { save_parameters(p, values, folder / "a"); })
          != "none");
  }
  CHECK(test::read_bytes(folder / "a") == before);
  CHECK(folder.entries() == 1);
}

TEST_CASE_FIXTURE(fixture, "a parameter file cut off anywhere is refused") {
  auto p = program_with(dtype::float32, {2, 3});
  values.var("w").set(ramp({2, 3}));
  save_parameters(p, values, folder / "a");
  auto bytes = test::read_bytes(folder / "a");
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    INFO(length);
    test::write_bytes(folder / "b", bytes.substr(0, length));
    CHECK(contains(loading(p, folder / "b"), "bad_file"));
  }
}

TEST_CASE_FIXTURE(fixture, "memory is taken only for data that is there") {
  auto desc = test::field(1, 5) + test::field(2, std::int64_t{1} << 30);
  std::string head(20, '\0'); // versions, no levels, length of `desc`
  head[16] = static_cast<char>(desc.size());
  test::write_bytes(folder / "a", head + desc + "data");
  CHECK(contains(loading(program_with(dtype::float32, {-1}), folder / "a"),
                 "needs 4294967296 bytes at byte "));
  CHECK(memory.peak_bytes() == 0);
}

TEST_CASE_FIXTURE(fixture, "flipped bits take no memory and crash nothing") {
  std::mt19937 random(9);
  for (auto kind : {var_kind::dense, var_kind::selected_rows}) {
    auto p = program_with(dtype::float32, {10, 3}, kind);
    if (kind == var_kind::dense)
      values.var("w").set(ramp({10, 3}));
    else
      values.var("w").set(selected_rows{{1, 9}, 10, ramp({2, 3})});
    save_parameters(p, values, folder / "a");
    auto bytes = test::read_bytes(folder / "a");
    for (int i = 0; i < 2000; ++i) {
      auto changed = bytes;
      for (auto flips = random() % 3 + 1; flips > 0; --flips)
        changed[random() % std::min<std::size_t>(60, changed.size())] ^=
          1 << random() % 8;
      test::write_bytes(folder / "b", changed);
      REQUIRE(test::survives(
        [&] { load_parameters(p, folder / "b", values, memory); }));
    }
  }
  CHECK(memory.peak_bytes() < 16384);
}

} // TEST_SUITE("graph.parameter_file")
