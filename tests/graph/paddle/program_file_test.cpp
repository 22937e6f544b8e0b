// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/paddle/program_file.hpp>

#include <graph/paddle/wire.hpp>
#include <support/files.hpp>

#include <doctest/doctest.h>

#include <map>
#include <random>

using namespace troupe;
using namespace troupe::graph;
using test::contains;
using test::error_of;
using test::field;
using test::program_of;

TEST_SUITE("graph.program_file") {

namespace {

const std::filesystem::path data =
  std::filesystem::path(TROUPE_TEST_DATA) / "paddle_programs";

std::map<std::string, int> count_ops(const program& p) {
  std::map<std::string, int> counts;
  for (const auto& op : p.main().ops)
    ++counts[op.type];
  return counts;
}

std::string parsing(const std::string& bytes) {
  return error_of([&] { parse_program(bytes, "p"); });
}

/// Parses, and if that works writes and parses again.
void parse_and_write(const std::string& bytes) {
  auto again = serialize_program(parse_program(bytes, "p"));
  REQUIRE(serialize_program(parse_program(again, "p")) == again);
}

} // namespace

TEST_CASE("a program that Paddle wrote has its variables") {
  auto p = read_program(data / "mlp/main.pdmodel");
  REQUIRE(p.blocks.size() == 1);
  CHECK(p.version == 2006002);
  CHECK(p.main().parent == -1);
  CHECK(p.main().vars.size() == 36);
  const auto& weight = p.main().var("fc_0.w_0");
  CHECK(weight.kind == var_kind::dense);
  CHECK(weight.type == dtype::float32);
  CHECK(weight.dims == shape{784, 48});
  CHECK(weight.persistable);
  CHECK(weight.is_parameter);
  CHECK_FALSE(weight.stop_gradient);
  const auto& image = p.main().var("image");
  CHECK(image.dims == shape{-1, 784});
  CHECK_FALSE(image.persistable);
  CHECK(image.need_check_feed);
  CHECK(p.main().var("label").type == dtype::int64);
  CHECK(p.main().var("learning_rate_0").dims == shape{});
}

TEST_CASE("a program that Paddle wrote has its ops") {
  auto p = read_program(data / "mlp/main.pdmodel");
  CHECK(count_ops(p)
        == std::map<std::string, int>{{"elementwise_add", 3},
                                      {"elementwise_add_grad", 3},
                                      {"fill_constant", 1},
                                      {"mul", 3},
                                      {"mul_grad", 3},
                                      {"reduce_mean", 1},
                                      {"reduce_mean_grad", 1},
                                      {"relu", 2},
                                      {"relu_grad", 2},
                                      {"sgd", 6},
                                      {"softmax_with_cross_entropy", 1},
                                      {"softmax_with_cross_entropy_grad", 1}});
  const auto& op = p.main().ops.front();
  CHECK(op.type == "mul");
  CHECK(op.only_input("X") == "image");
  CHECK(op.only_input("Y") == "fc_0.w_0");
  CHECK(op.only_output("Out") == "fc_0.tmp_0");
  CHECK(op.role() == role_forward);
  CHECK_FALSE(op.call_stack().empty());
  CHECK(find_loss(p) == "mean_0.tmp_0");
  CHECK(feed_names(p) == std::vector<std::string>{"image", "label"});
  CHECK(read_program(data / "mlp/test.pdmodel").main().ops.size() == 10);
  CHECK(read_program(data / "word2vec_sparse/main.pdmodel").main().ops.size()
        == 39);
}

TEST_CASE("attributes have the values and types that Paddle stored") {
  auto p = read_program(data / "mlp/startup.pdmodel");
  const auto& op = p.main().ops.front();
  REQUIRE(op.type == "uniform_random");
  const auto& attributes = op.attributes;
  CHECK(*attributes.find("seed") == attribute(std::int32_t{7}));
  CHECK(*attributes.find("shape")
        == attribute(std::vector<std::int64_t>{784, 48}));
  CHECK(*attributes.find("with_quant_attr") == attribute(false));
  CHECK(*attributes.find("op_device") == attribute(std::string()));
  CHECK(attributes.get_float("max", 0) == doctest::Approx(0.0849208));
  CHECK(attributes.get_float("min", 0) == -attributes.get_float("max", 0));
  auto words = read_program(data / "word2vec_sparse/main.pdmodel");
  const auto& lookup = words.main().ops.front();
  CHECK(lookup.type == "lookup_table_v2");
  CHECK(lookup.attributes.get_bool("is_sparse", false));
  CHECK(*lookup.attributes.find("padding_idx") == attribute(std::int64_t{-1}));
}

TEST_CASE("a round trip changes nothing but the order of attributes") {
  for (const char* name : {"mlp/main", "mlp/startup", "mlp/test"}) {
    INFO(name);
    auto bytes = test::read_bytes(data / (std::string(name) + ".pdmodel"));
    auto once = serialize_program(parse_program(bytes, name));
    CHECK(once.size() == bytes.size());
    CHECK(serialize_program(parse_program(once, name)) == once);
  }
  // Paddle stores some attributes of this one twice.
  auto bytes = test::read_bytes(data / "word2vec_sparse/main.pdmodel");
  auto once = serialize_program(parse_program(bytes, "words"));
  CHECK(once.size() < bytes.size());
  CHECK(serialize_program(parse_program(once, "words")) == once);
}

TEST_CASE("what is not known survives a round trip") {
  auto scalar =
    field(1, "s") + field(2, 16) + field(20, field(1, 3) + field(3, 5));
  auto future = field(1, "f") + field(2, 99) + field(77, "later");
  auto op = field(3, "no_such_op") + field(4, scalar) + field(4, future)
            + field(5, 1) + field(31, "op");
  auto reader = field(2, field(1, 15) + field(5, field(1, field(2, 3))))
                + field(7, field(1, "a") + field(2, 0) + field(3, 4));
  auto complex =
    field(2, field(1, 7) + field(3, field(1, field(1, 23) + field(2, 6))));
  auto contents = field(3, field(1, "c") + complex + field(3, 0))
                  + field(3, field(1, "r") + reader + field(9, 1))
                  + field(3, field(1, "z") + field(2, field(1, 42)))
                  + field(4, op) + field(50, "block");
  auto bytes = program_of(contents) + field(4, field(1, 3)) + field(60, "end");
  auto p = parse_program(bytes, "p");
  CHECK(p.main().var("c").dims == shape{6});
  CHECK(static_cast<int>(p.main().var("z").kind) == 42);
  CHECK(p.main().ops[0].attributes.size() == 0);
  auto written = serialize_program(p);
  CHECK(written.size() == bytes.size());
  for (const auto& part : {scalar, future, field(31, "op"), field(50, "block"),
                           field(60, "end"), field(9, 1), complex}) {
    INFO(part);
    CHECK(contains(written, part));
  }
}

TEST_CASE("scalars are read as numbers and written as scalars") {
  auto scalars = [](const char* name, std::initializer_list<std::string> all) {
    auto list = field(1, name) + field(2, 17);
    for (const auto& each : all)
      list += field(21, each);
    return list;
  };
  auto integer = [](int value) { return field(1, 2) + field(3, value); };
  auto integers = scalars("values", {integer(5), integer(-1)});
  auto truths = scalars("truths", {field(1, 1) + field(2, 1)});
  auto mixed = scalars("mixed", {integer(5), field(1, 1) + field(2, 1)});
  auto op = field(3, "set_value") + field(4, integers) + field(4, truths)
            + field(4, mixed);
  auto bytes = program_of(field(4, op)) + field(4, field(1, 3));
  auto p = parse_program(bytes, "p");
  const auto& attributes = p.main().ops[0].attributes;
  CHECK(attributes.get_ints("values", {}) == std::vector<std::int64_t>{5, -1});
  CHECK(*attributes.find("truths") == attribute(std::vector<bool>{true}));
  CHECK_FALSE(attributes.has("mixed"));
  auto written = serialize_program(p);
  CHECK(written.size() == bytes.size());
  for (const auto& part : {integers, truths, mixed})
    CHECK(contains(written, part));
  p.main().ops[0].attributes.set("values", std::vector<std::int64_t>{7});
  CHECK(contains(serialize_program(p), scalars("values", {integer(7)})));
}

TEST_CASE("every attribute type survives a round trip") {
  program p;
  p.version = 7;
  p.blocks.resize(3);
  p.blocks[1].index = 1;
  p.blocks[1].parent = 0;
  p.blocks[2].index = 2;
  p.blocks[2].parent = 1;
  p.blocks[2].forward_block = 1;
  op_desc op;
  op.type = "all";
  op.set_input("X", {"a", "a", "b"});
  op.set_output("Out", {});
  op.attributes = {{"int", std::int32_t{-3}},
                   {"float", 0.1f},
                   {"string", std::string("a\0\xff", 3)},
                   {"ints", std::vector<std::int32_t>{1, -1}},
                   {"floats", std::vector<float>{1.5f}},
                   {"strings", std::vector<std::string>{"", "x"}},
                   {"bool", true},
                   {"bools", std::vector<bool>{true, false}},
                   {"block", block_ref{2}},
                   {"long", std::int64_t{-1} << 40},
                   {"blocks", std::vector<block_ref>{{1}, {2}}},
                   {"longs", std::vector<std::int64_t>{1ll << 60}},
                   {"double", 0.1},
                   {"doubles", std::vector<double>{}}};
  p.main().ops.push_back(op);
  for (auto kind : {var_kind::dense, var_kind::selected_rows,
                    var_kind::tensor_array, var_kind::raw}) {
    var_desc var;
    var.name = "v" + std::to_string(static_cast<int>(kind));
    var.kind = kind;
    if (kind != var_kind::raw) {
      var.type = dtype::bfloat16;
      var.dims = shape{-1, 0, 5};
    }
    var.lod_level = kind == var_kind::dense ? 2 : 0;
    var.persistable = var.stop_gradient = true;
    p.main().add_var(var);
  }
  auto q = parse_program(serialize_program(p), "p");
  CHECK(q.version == 7);
  REQUIRE(q.blocks.size() == 3);
  CHECK(q.blocks[2].parent == 1);
  CHECK(q.blocks[2].forward_block == 1);
  CHECK(q.main().ops[0].inputs == op.inputs);
  CHECK(q.main().ops[0].outputs == op.outputs);
  CHECK(q.main().ops[0].attributes == op.attributes);
  for (const auto& [name, var] : p.main().vars) {
    INFO(name);
    const auto& found = q.main().var(name);
    CHECK(found.kind == var.kind);
    CHECK(found.type == var.type);
    CHECK(found.dims == var.dims);
    CHECK(found.lod_level == var.lod_level);
    CHECK(found.persistable);
    CHECK(found.stop_gradient);
    CHECK(found.extra.empty());
  }
}

TEST_CASE("lists may be packed") {
  auto ints = field(1, "a") + field(2, 3) + field(6, std::string("\1\2\3"));
  auto dims = field(2, std::string("\4\5"));
  auto p =
    parse_program(program_of(field(3, test::var("v", dims))
                             + field(4, field(3, "op") + field(4, ints))),
                  "p");
  CHECK(p.main().var("v").dims == shape{4, 5});
  CHECK(*p.main().ops[0].attributes.find("a")
        == attribute(std::vector<std::int32_t>{1, 2, 3}));
}

TEST_CASE("of attributes that occur twice the last one counts") {
  auto attr = [](std::int64_t value) {
    return field(4, field(1, "a") + field(2, 0) + field(3, value));
  };
  auto p = parse_program(
    program_of(field(4, field(3, "op") + attr(1) + attr(2))), "p");
  CHECK(p.main().ops[0].attributes.get_int("a", 0) == 2);
}

TEST_CASE("bad programs are refused in one line that says where") {
  using test::block;
  using test::var;
  CHECK(parsing("") == "bad_file: p: not a Paddle program: it has no block");
  CHECK(contains(parsing("hello, world"), "p: not a Paddle program"));
  CHECK(contains(
    parsing(program_of(field(3, var("v", "")) + field(3, var("v", "")))),
    "p: block 0: variable 'v' occurs twice"));
  CHECK(contains(parsing(program_of(field(3, var("", "")))), "has no name"));
  CHECK(contains(parsing(program_of(field(3, field(1, "v")))),
                 "variable 'v': has no type"));
  auto huge = field(2, std::int64_t{1} << 40);
  CHECK(contains(parsing(program_of(field(3, var("v", huge + huge)))),
                 "variable 'v': shape [1099511627776, 1099511627776] is too"));
  std::string nine;
  for (int i = 0; i < 9; ++i)
    nine += field(2, 1);
  CHECK(contains(parsing(program_of(field(3, var("v", nine)))), "has 9 axes"));
  CHECK(
    contains(parsing(program_of(field(4, ""))), "block 0, op 0: has no type"));
  auto slot = field(1, field(1, "X"));
  CHECK(contains(parsing(program_of(field(4, field(3, "mul") + slot + slot))),
                 "block 0, op 0 ('mul'): slot 'X' occurs twice"));
  CHECK(contains(parsing(program_of(field(4, field(3, "mul") + field(4, "")))),
                 "an attribute has no name or type"));
  auto to_block = field(1, "b") + field(2, 8) + field(12, 1);
  CHECK(contains(
    parsing(program_of(field(4, field(3, "while") + field(4, to_block)))),
    "('while'): attribute 'b' refers to a block that is not there"));
}

TEST_CASE("blocks form a tree") {
  using test::block;
  auto two = [](std::int64_t index, std::int64_t parent,
                const std::string& more = "") {
    return parsing(field(1, block(0, -1))
                   + field(1, block(index, parent, more)));
  };
  CHECK(two(1, 0) == "none");
  CHECK(two(1, -1) == "none");
  CHECK(contains(two(2, 0), "p: block 1: has index 2"));
  CHECK(contains(two(1, 1), "block 1: parent 1 is not a block before it"));
  CHECK(contains(two(1, 2), "parent 2"));
  CHECK(contains(two(1, -2), "parent -2"));
  CHECK(contains(two(1, 0, field(5, 2)), "forward block 2 is not there"));
  CHECK(contains(parsing(field(1, field(1, 0))), "parent 0"));
}

TEST_CASE("blocks that run themselves are refused") {
  using test::block;
  const auto running = [](std::int64_t inner) {
    const auto attribute =
      field(1, "sub_block") + field(2, 8) + field(12, inner);
    return field(4, field(3, "while") + field(4, attribute));
  };
  CHECK(contains(parsing(field(1, block(0, -1, running(0)))),
                 "p: op while of block 0 runs block 0, which it is itself a "
                 "part of"));
  CHECK(contains(parsing(field(1, block(0, -1, running(1)))
                         + field(1, block(1, 0, running(1)))),
                 "op while of block 1 runs block 1"));
}

TEST_CASE("an op of more than 256 slots is refused") {
  std::string slots;
  for (int i = 0; i < 257; ++i)
    slots += field(1, field(1, "S" + std::to_string(i)));
  CHECK(contains(parsing(program_of(field(4, slots + field(3, "sum")))),
                 "has 257 slots, at most 256 are supported"));
}

TEST_CASE("a program cut off anywhere is an error or a shorter program") {
  auto bytes = test::read_bytes(data / "mlp/startup.pdmodel");
  int refused = 0;
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    auto part = bytes.substr(0, length);
    refused += error_of([&] { parse_program(part, "p"); }) != "none";
    REQUIRE(test::survives([&] { parse_and_write(part); }));
  }
  CHECK(refused > 3000);
}

TEST_CASE("flipped bits are an error or another program, never a crash") {
  std::mt19937 random(8);
  for (const char* name : {"mlp/startup.pdmodel", "mlp/test.pdmodel"}) {
    auto bytes = test::read_bytes(data / name);
    for (int i = 0; i < 1500; ++i) {
      auto changed = bytes;
      for (auto flips = random() % 3 + 1; flips > 0; --flips)
        changed[random() % changed.size()] ^= 1 << random() % 8;
      REQUIRE(test::survives([&] { parse_and_write(changed); }));
    }
  }
}

TEST_CASE("files are named in errors and written whole or not at all") {
  test::temporary_folder folder;
  auto p = read_program(data / "mlp/main.pdmodel");
  write_program(p, folder / "a");
  CHECK(folder.entries() == 1);
  CHECK(test::read_bytes(folder / "a") == serialize_program(p));
  {
    test::file_size_limit limit(1000);
    CHECK(contains(error_of([&] { write_program(p, folder / "b"); }),
                   "io_failure"));
  }
  CHECK(folder.entries() == 1);
  CHECK(contains(error_of([&] { read_program(folder / "b"); }), "not_found"));
  test::write_bytes(folder / "c", "garbage");
  CHECK(contains(error_of([&] { read_program(folder / "c"); }),
                 (folder / "c").string() + ": not a Paddle program"));
}

} // TEST_SUITE("graph.program_file")
