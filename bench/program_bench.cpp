// SPDX-License-Identifier: Apache-2.0
// Measures the stages from a program file to a checked graph: parsing, building
// the graph over several devices, proving it free of data races. It reads
// program folders, and chains of layers of growing length. Times are processor
// times, so that other programs do not count.
#include <troupe/base/files/atomic_file.hpp>
#include <troupe/graph/paddle/program_file.hpp>
#include <troupe/graph/ssa/hazard_checker.hpp>
#include <troupe/graph/ssa_builder.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include <time.h>
#include <unistd.h>

namespace {

using namespace troupe;
namespace fs = std::filesystem;

std::uint64_t cpu_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000
         + static_cast<std::uint64_t>(now.tv_nsec);
}

/// Nanoseconds of the stages in one run.
struct stage_times {
  std::uint64_t parse = 0;
  std::uint64_t build = 0;
  std::uint64_t check = 0;

  std::uint64_t total() const { return parse + build + check; }
};

struct measurement {
  std::size_t ops = 0;     ///< in the program
  std::size_t handles = 0; ///< in the graph
  stage_times times;       ///< of the median run
};

struct options {
  std::vector<std::string> folders;
  std::size_t devices = 2;
  std::size_t rounds = 15;
  std::string strategy = "all_reduce";
  std::size_t longest = 50'000;
  bool json = false;
};

measurement read_once(const fs::path& file, const graph::build_options& build) {
  const auto start = cpu_ns();
  const graph::program p = graph::read_program(file);
  const auto parsed = cpu_ns();
  const graph::ssa_graph g = graph::build_ssa_graph(p, build);
  const auto built = cpu_ns();
  graph::check_hazards(g, 2);
  const auto checked = cpu_ns();
  return {p.main().ops.size(),
          g.size(),
          {parsed - start, built - parsed, checked - built}};
}

measurement measure(const fs::path& file, const options& wanted) {
  graph::build_options build;
  build.strategy = graph::parse_merge_strategy(wanted.strategy);
  build.devices.clear();
  for (std::size_t i = 0; i < wanted.devices; ++i)
    build.devices.push_back({device_kind::cpu, static_cast<int>(i)});
  std::vector<measurement> runs;
  for (std::size_t i = 0; i < wanted.rounds; ++i)
    runs.push_back(read_once(file, build));
  const auto middle = runs.begin() + static_cast<long>(runs.size() / 2);
  std::nth_element(runs.begin(), middle, runs.end(), [](auto& a, auto& b) {
    return a.times.total() < b.times.total();
  });
  return *middle;
}

void print(const std::string& name, const measurement& m, bool json) {
  const auto ms = [](std::uint64_t ns) {
    return static_cast<double>(ns) / 1e6;
  };
  std::printf(
    json ? "{\"program\":\"%s\",\"ops\":%zu,\"handles\":%zu,\"parse_ms\":%.3f,"
           "\"build_ms\":%.3f,\"check_ms\":%.3f,\"ms\":%.3f,\"ns_per_op\":%.0f}"
           "\n"
         : "%-24s %6zu ops %8zu handles  parse %8.3f  build %8.3f  check "
           "%8.3f  all %8.3f ms  %6.0f ns/op\n",
    name.c_str(), m.ops, m.handles, ms(m.times.parse), ms(m.times.build),
    ms(m.times.check), ms(m.times.total()),
    static_cast<double>(m.times.total()) / static_cast<double>(m.ops));
  std::fflush(stdout);
}

// A net of `layers` layers y = relu(x w) as Paddle writes it: forward, backward
// and update ops, with the attributes that all of Paddle's ops have.

class chain_writer {
public:
  graph::program write(std::size_t layers) {
    declare("x0", {-1, 64});
    for (std::size_t i = 0; i < layers; ++i)
      add_forward(std::to_string(i), std::to_string(i + 1));
    const auto last = std::to_string(layers);
    declare("loss", {});
    add("mean", {{"X", {"x" + last}}}, {{"Out", {"loss"}}},
        graph::role_forward | graph::role_loss);
    declare("loss@GRAD", {});
    add("fill_constant", {}, {{"Out", {"loss@GRAD"}}},
        graph::role_backward | graph::role_loss);
    declare("x" + last + "@GRAD", {-1, 64});
    add("mean_grad", {{"X", {"x" + last}}, {"Out@GRAD", {"loss@GRAD"}}},
        {{"X@GRAD", {"x" + last + "@GRAD"}}}, graph::role_backward);
    for (std::size_t i = layers; i-- > 0;)
      add_backward(std::to_string(i), std::to_string(i + 1));
    declare("rate", {1}, true);
    for (std::size_t i = 0; i < layers; ++i)
      add_update("w" + std::to_string(i));
    return std::move(program_);
  }

private:
  void declare(const std::string& name, const shape& dims,
               bool persistable = false) {
    program_.main().add_var(
      {.name = name, .dims = dims, .persistable = persistable});
  }

  graph::op_desc& add(std::string type, std::vector<op_slot> inputs,
                      std::vector<op_slot> outputs, std::int32_t role) {
    auto& op = program_.main().ops.emplace_back();
    op.type = std::move(type);
    op.inputs = std::move(inputs);
    op.outputs = std::move(outputs);
    op.attributes = {
      {"op_role", role},
      {"op_role_var", std::vector<std::string>{}},
      {"op_namescope", std::string{"/"}},
      {"op_callstack",
       std::vector<std::string>{"  File \"train.py\", line 12, in <module>",
                                "    h = fluid.layers.fc(h, 64)"}},
      {"op_device", std::string{}},
      {"with_quant_attr", false}};
    return op;
  }

  void add_forward(const std::string& from, const std::string& to) {
    declare("w" + from, {64, 64}, true);
    declare("h" + from, {-1, 64});
    declare("x" + to, {-1, 64});
    add("mul", {{"X", {"x" + from}}, {"Y", {"w" + from}}},
        {{"Out", {"h" + from}}}, graph::role_forward);
    add("relu", {{"X", {"h" + from}}}, {{"Out", {"x" + to}}},
        graph::role_forward);
  }

  void add_backward(const std::string& from, const std::string& to) {
    const std::string grad = "@GRAD", w = "w" + from;
    declare("h" + from + grad, {-1, 64});
    declare("x" + from + grad, {-1, 64});
    declare(w + grad, {64, 64});
    add("relu_grad", {{"Out", {"x" + to}}, {"Out@GRAD", {"x" + to + grad}}},
        {{"X@GRAD", {"h" + from + grad}}}, graph::role_backward);
    add("mul_grad",
        {{"X", {"x" + from}}, {"Y", {w}}, {"Out@GRAD", {"h" + from + grad}}},
        {{"X@GRAD", {"x" + from + grad}}, {"Y@GRAD", {w + grad}}},
        graph::role_backward)
      .attributes.set("op_role_var", std::vector{w, w + grad});
  }

  void add_update(const std::string& w) {
    add("sgd",
        {{"Param", {w}}, {"Grad", {w + "@GRAD"}}, {"LearningRate", {"rate"}}},
        {{"ParamOut", {w}}}, graph::role_optimize)
      .attributes.set("op_role_var", std::vector{w, w + "@GRAD"});
  }

  graph::program program_;
};

/// A temporary folder of the benchmark.
class scratch_folder {
public:
  scratch_folder()
    : path_(fs::temp_directory_path()
            / ("troupe_program_bench." + std::to_string(::getpid()))) {
    fs::create_directories(path_);
  }
  ~scratch_folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;
  const fs::path& path() const { return path_; }

private:
  fs::path path_;
};

void run(const options& wanted) {
  for (const std::string& folder : wanted.folders)
    print(fs::path(folder).filename().string(),
          measure(fs::path(folder) / "main.pdmodel", wanted), wanted.json);
  const scratch_folder scratch;
  constexpr std::size_t ops_per_layer = 5;
  for (std::size_t ops = 500; ops <= wanted.longest; ops *= 10) {
    const fs::path file = scratch.path() / "main.pdmodel";
    graph::write_program(chain_writer().write(ops / ops_per_layer), file);
    print("chain", measure(file, wanted), wanted.json);
  }
}

} // namespace

int main(int argc, char** argv) {
  options wanted;
  CLI::App app{"Time from opening a program file to a checked graph, for "
               "program folders and for synthetic chains of 500 to 50,000 "
               "ops.\nExample: program_bench --devices 2 saved"};
  app.add_option("folders", wanted.folders, "program folders");
  app.add_option("--devices", wanted.devices, "devices of the graph")
    ->check(CLI::PositiveNumber);
  app.add_option("--strategy", wanted.strategy, "all_reduce, reduce, ...");
  app.add_option("--rounds", wanted.rounds, "runs of which the median counts")
    ->check(CLI::PositiveNumber);
  app.add_option("--longest", wanted.longest, "ops of the longest chain");
  app.add_flag("--json", wanted.json, "one JSON object per line");
  CLI11_PARSE(app, argc, argv);
  try {
    run(wanted);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "program_bench: %s\n", e.what());
    return 1;
  }
}
