// SPDX-License-Identifier: Apache-2.0
// How branches and loops fail. Tests in tests/paddle check what they compute.
#include <troupe/actors/plain_executor.hpp>

#include <support/caught.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe {

using test::caught;
using test::says;

TEST_SUITE("actors.control_flow") {

namespace {

using names = std::vector<std::string>;

graph::op_desc make_op(const std::string& type, const names& in,
                       const names& out) {
  graph::op_desc op;
  op.type = type;
  op.set_input("X", in);
  op.set_output("Out", out);
  return op;
}

/// flag, x -> conditional_block { y = inner(x) }
graph::program branch(const std::string& inner) {
  graph::program p;
  for (auto& [name, type] : {std::pair{"flag", dtype::boolean},
                             {"x", dtype::float32},
                             {"y", dtype::float32}})
    p.main().add_var({.name = name, .type = type, .dims = {-1}});
  graph::op_desc op;
  op.type = "conditional_block";
  op.set_input("Cond", {"flag"});
  op.set_input("Input", {"x"});
  op.set_output("Out", {"y"});
  op.attributes.set("sub_block", block_ref{1});
  op.attributes.set("is_scalar_condition", true);
  p.main().ops.push_back(op);
  graph::block body;
  body.index = 1;
  body.parent = 0;
  body.ops.push_back(make_op(inner, {"x"}, {"y"}));
  p.blocks.push_back(body);
  return p;
}

arena& memory() {
  static arena made{make_host_memory_source()};
  return made;
}

feed_map feeds(std::vector<bool> flag) {
  feed_map fed;
  fed["x"] = tensor::make(memory(), {static_cast<std::int64_t>(flag.size())},
                          dtype::float32);
  for (auto& v : fed["x"].values<float>())
    v = -2;
  fed["flag"] = tensor::make(memory(), {static_cast<std::int64_t>(flag.size())},
                             dtype::boolean);
  std::copy(flag.begin(), flag.end(), fed["flag"].data<bool>());
  return fed;
}

const names y{"y"};

/// flag, x -> op with a block { kept = relu(x) }; y = x + kept. `kept` is
/// persistable.
graph::program update(const std::string& type, const names& written) {
  auto p = branch("relu");
  auto& main = p.main();
  main.add_var({.name = "kept", .dims = {1}, .persistable = true});
  main.add_var({.name = "also_kept", .dims = {1}, .persistable = true});
  auto& op = main.ops.front();
  op.type = type;
  op.set_output("Out", written);
  if (type == "while") {
    op.set_input("Condition", {"flag"});
    op.set_input("X", {"x"});
  }
  p.blocks[1].ops.clear();
  for (auto& name : written)
    p.blocks[1].ops.push_back(make_op("relu", {"x"}, {name}));
  auto add = make_op("elementwise_add", {"x"}, y);
  add.set_input("Y", {"kept"});
  main.ops.push_back(add);
  return p;
}

/// A scope in which `kept` is 5.
std::shared_ptr<scope> five() {
  auto made = std::make_shared<scope>();
  auto value = tensor::make(memory(), {1}, dtype::float32);
  value.data<float>()[0] = 5;
  made->var("kept").set(value);
  return made;
}

} // namespace

TEST_CASE("a branch that is not taken writes nothing") {
  executor_options options;
  options.fetches = y;
  executor exe{branch("relu"), options};
  CHECK(exe.run(feeds({true}), y).merged("y").values<float>()[0] == 0);
  CHECK_FALSE(exe.run(feeds({false}), y).merged("y"));
}

TEST_CASE("a block that does not run keeps persistable values on all devices") {
  for (auto strategy :
       {graph::merge_strategy::all_reduce, graph::merge_strategy::reduce,
        graph::merge_strategy::replicate, graph::merge_strategy::none})
    for (auto* type : {"conditional_block", "while"})
      for (int devices : {1, 2, 3}) {
        CAPTURE(to_string(strategy));
        CAPTURE(std::string{type});
        CAPTURE(devices);
        executor_options options;
        options.devices = parse_devices("cpu:" + std::to_string(devices));
        options.strategy = strategy;
        options.parameters = five();
        options.fetches = y;
        executor exe{update(type, {"kept", "also_kept"}), options};
        const std::vector<bool> no(static_cast<std::size_t>(devices), false);
        const auto sums = exe.run(feeds(no), y).merged("y");
        for (auto sum : sums.values<float>())
          CHECK(sum == 5 - 2);
      }
}

TEST_CASE("a value written by a branch is kept until the branch runs again") {
  for (int devices : {1, 2}) {
    CAPTURE(devices);
    executor_options options;
    options.devices = parse_devices("cpu:" + std::to_string(devices));
    options.parameters = five();
    options.fetches = y;
    executor exe{update("conditional_block", {"kept"}), options};
    const std::vector<bool> no(static_cast<std::size_t>(devices), false);
    const std::vector<bool> yes(no.size(), true);
    const auto is_everywhere = [&](float sum, const std::vector<bool>& flags) {
      const auto sums = exe.run(feeds(flags), y).merged("y");
      const auto values = sums.values<float>();
      return values.size() == flags.size()
             && std::ranges::count(values, sum) == devices;
    };
    CHECK(is_everywhere(5 - 2, no));
    CHECK(is_everywhere(0 - 2, yes));
    CHECK(is_everywhere(0 - 2, no));
  }
}

TEST_CASE("an error lists ops in a sub-block that have no kernel") {
  CHECK(says(caught([] { executor{branch("no_such_op")}; }), "no_such_op"));
  CHECK(
    says(caught([] { plain_executor{branch("no_such_op")}; }), "no_such_op"));
}

TEST_CASE("an error in a sub-block says which op of which block it is in") {
  auto p = branch("reshape2");
  p.blocks[1].ops[0].attributes.set("shape", std::vector{7});
  p.blocks[1].ops[0].attributes.set("op_callstack",
                                    std::vector<std::string>{"net.py:7"});
  executor exe{p};
  exe.run(feeds({false}));
  const auto e = caught([&] { exe.run(feeds({true})); });
  CHECK(e.code() == errc::shape_mismatch);
  CHECK(e.where().op == "reshape2#0 of block 1");
  CHECK(e.where().op_type == "reshape2");
  CHECK(e.where().call_stack == names{"net.py:7"});
  CHECK(e.where().device == "cpu:0");
  CHECK(e.where().step == 1);
  CHECK_NOTHROW(exe.run(feeds({false})));
}

TEST_CASE("a condition of several elements is refused") {
  executor exe{branch("relu")};
  const auto e = caught([&] { exe.run(feeds({true, true})); });
  CHECK(e.code() == errc::shape_mismatch);
  CHECK(says(e, "Cond [2]"));
}

TEST_CASE("the error for an undeclared variable names it") {
  auto p = branch("relu");
  p.blocks[1].ops.push_back(make_op("relu", {"nowhere"}, {"y"}));
  CHECK(says(caught([&] {
               executor exe{p};
               exe.run(feeds({true}));
             }),
             "nowhere"));
}

TEST_CASE("a conditional_block without a sub-block is refused") {
  auto p = branch("relu");
  p.main().ops.front().attributes.erase("sub_block");
  CHECK(caught([&] { executor{p}; }).code() == errc::graph_invalid);
}

/// x -> while true { x = relu(x) }, or an empty block
graph::program endless(bool empty) {
  auto p = branch("relu");
  auto& op = p.main().ops.front();
  op.type = "while";
  op.inputs = {{"X", {"x"}}, {"Condition", {"flag"}}};
  op.outputs = {{"Out", {"y"}}};
  op.attributes.set("is_test", true);
  if (empty)
    p.blocks[1].ops.clear();
  return p;
}

TEST_CASE("an endless loop ends when its step is cancelled") {
  for (const bool empty : {false, true}) {
    executor exe{endless(empty)};
    exe.submit(feeds({true}));
    exe.cancel();
    CHECK(caught([&] { exe.wait(0); }).code() == errc::cancelled);
    exe.submit(feeds({true})); // ends when the executor is destroyed
  }
}

/// Calls a function of the test within a step.
class calling_kernel final : public kernel {
public:
  explicit calling_kernel(const std::function<void()>& act) : act_(act) {}
  void run(kernel_context&) override { act_(); }

private:
  const std::function<void()>& act_;
};

/// Kernels with an op "call" that calls `act`, which outlives them.
std::shared_ptr<const kernel_table>
kernels_calling(const std::function<void()>& act) {
  auto kernels = std::make_shared<kernel_table>(cpu_kernels());
  kernels->add("call", device_kind::cpu, [&act](const attribute_map&) {
    return std::make_unique<calling_kernel>(act);
  });
  return kernels;
}

graph::program endless_calls() {
  auto p = endless(true);
  p.blocks[1].ops.push_back(make_op("call", {"x"}, {}));
  return p;
}

TEST_CASE("a running loop stops when its step is cancelled") {
  executor* running = nullptr;
  const std::function<void()> cancel = [&] { running->cancel(); };
  executor_options options;
  options.kernels = kernels_calling(cancel);
  executor exe{endless_calls(), options};
  running = &exe;
  CHECK(caught([&] { exe.run(feeds({true})); }).code() == errc::cancelled);
}

TEST_CASE("a plain executor ends a loop when the stop flag is set") {
  std::atomic<bool> stop{false};
  const std::function<void()> set_stop = [&] { stop = true; };
  plain_executor_options options;
  options.stop = &stop;
  options.kernels = kernels_calling(set_stop);
  plain_executor exe{endless_calls(), options};
  CHECK(caught([&] { exe.run(feeds({true})); }).code() == errc::cancelled);
}

TEST_CASE("a step of a program without ops ends") {
  executor exe{graph::program{}};
  exe.run();
  CHECK(exe.wait(exe.submit()).step == 1);
  CHECK(exe.run_async().get().step == 2);
  CHECK(exe.stats().steps == 3);
}

} // TEST_SUITE("actors.control_flow")

} // namespace troupe
