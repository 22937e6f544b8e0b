// SPDX-License-Identifier: Apache-2.0
// Measures collectives between the devices of one process against plain loops
// over the same tensors. They take turns, so that other load on the machine
// affects both equally.
#include <troupe/base/cores.hpp>
#include <troupe/comm/communicator.hpp>
#include <troupe/comm/local/group_merge.hpp>
#include <troupe/kernels/device.hpp>
#include <troupe/kernels/part_runner.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using namespace troupe;
using comm::collective_kind;

// Two pinned threads that share a piece of work in two parts. The calling
// thread is one of them.
class thread_pair final : public part_runner {
public:
  thread_pair() {
    pin_this_thread(0);
    other_ = std::thread([this] { serve(); });
  }
  ~thread_pair() override {
    work_ = nullptr;
    sync_.arrive_and_wait();
    other_.join();
  }
  thread_pair(const thread_pair&) = delete;
  thread_pair& operator=(const thread_pair&) = delete;

  void run(std::size_t parts, const part_function& part) override {
    if (parts == 1)
      return part(0);
    work_ = &part;
    sync_.arrive_and_wait();
    part(0);
    sync_.arrive_and_wait();
  }

private:
  void serve() {
    pin_this_thread(1);
    for (;;) {
      sync_.arrive_and_wait();
      if (!work_)
        return;
      (*work_)(1);
      sync_.arrive_and_wait();
    }
  }

  std::barrier<> sync_{2};
  const part_function* work_ = nullptr;
  std::thread other_;
};

__attribute__((target_clones("avx512f", "avx2", "default"))) void
add_in_place(float* a, const float* b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    a[i] += b[i];
}

struct bench_case {
  collective_kind kind = collective_kind::all_reduce;
  bool by_ranks = false; ///< one call per rank instead of a joint call
  std::size_t bytes = 0; ///< size of one rank's tensor
  std::size_t devices = 2;
};

struct measurement {
  double ms = 0;
  double baseline_ms = 0;
  double ratio = 0; ///< median over the turns of baseline time / time
};

struct nobody final : completion {
  void completed(std::exception_ptr) noexcept override {}
};

// The tensors of one case, and the collective and the plain loop that are
// measured on them.
class contest {
public:
  contest(const bench_case& what, thread_pair& threads)
    : what_(what), threads_(threads), elements_(what.bytes / sizeof(float)),
      values_(what.devices), vars_(what.devices) {
    for (std::size_t r = 0; r < what.devices; ++r) {
      on_.push_back(
        devices_.emplace_back(make_cpu_device(static_cast<int>(r))).get());
      inputs_.push_back(make_input(r));
      std::fill_n(inputs_[r].data<float>(), elements_, 0.0f);
      values_[r] = {"x", &vars_[r], &vars_[r]};
    }
    const comm::local_group_options options{&threads, 2};
    joint_ = std::make_unique<comm::local::group_merge>(on_, options);
    ranks_ = comm::make_local_group(on_, options);
  }

  void run_collective() {
    // Kernels that write new values do the same: the memory of the last result
    // is then no longer shared.
    for (auto& v : vars_)
      v.clear();
    inputs_[0] = {};
    inputs_[0] = make_input(0);
    for (std::size_t r = 0; r < what_.devices; ++r)
      vars_[r].set(inputs_[r]);
    if (!what_.by_ranks)
      return joint_->run(what_.kind, 0, values_);
    for (std::size_t r = 0; r < what_.devices; ++r)
      ranks_[r]->start({what_.kind, 0, {&values_[r], 1}}, nobody_);
  }

  void run_baseline() {
    auto* a = inputs_[0].data<float>();
    auto* b = inputs_[1].data<float>();
    const auto half = elements_ / 2;
    threads_.run(what_.bytes < two_parts ? 1 : 2, [&](std::size_t part) {
      if (what_.bytes < two_parts)
        add_in_place(a, b, elements_);
      else
        add_in_place(a + part * half, b + part * half,
                     part ? elements_ - half : half);
    });
  }

private:
  // Smaller sums are computed in one part.
  static constexpr std::size_t two_parts = std::size_t{256} << 10;

  tensor make_input(std::size_t rank) {
    return tensor::make(devices_[rank]->memory(),
                        {static_cast<std::int64_t>(elements_)}, dtype::float32);
  }

  nobody nobody_;
  bench_case what_;
  thread_pair& threads_;
  std::size_t elements_;
  std::vector<std::unique_ptr<device>> devices_;
  std::vector<device*> on_;
  std::vector<tensor> inputs_;
  std::vector<comm::rank_value> values_;
  std::vector<variable> vars_;
  std::unique_ptr<comm::local::group_merge> joint_;
  std::vector<std::unique_ptr<comm::communicator>> ranks_;
};

double milliseconds(std::size_t repetitions, const std::function<void()>& run) {
  auto start = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < repetitions; ++i)
    run();
  std::chrono::duration<double, std::milli> taken =
    std::chrono::steady_clock::now() - start;
  return taken.count() / static_cast<double>(repetitions);
}

double median(std::vector<double> values) {
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

measurement measure(contest& c, std::size_t bytes, std::size_t rounds) {
  auto repetitions = std::max<std::size_t>(1, (std::size_t{4} << 20) / bytes);
  std::vector<double> ours, baseline, ratios;
  for (std::size_t i = 0; i < rounds; ++i) {
    ours.push_back(milliseconds(repetitions, [&] { c.run_collective(); }));
    baseline.push_back(milliseconds(repetitions, [&] { c.run_baseline(); }));
    ratios.push_back(baseline.back() / ours.back());
  }
  return {median(ours), median(baseline), median(ratios)};
}

void print(const bench_case& what, const measurement& m, bool json) {
  auto kind = std::string(comm::to_string(what.kind));
  auto gb_per_s = static_cast<double>(what.bytes) / m.ms * 1e-6;
  auto* format =
    json ? "{\"collective\":\"%s\",\"form\":\"%s\",\"bytes\":%zu,\"devices\":"
           "%zu,\"ms\":%.6f,\"gb_per_s\":%.3f,"
           "\"baseline_ms\":%.6f,\"ratio\":%.3f}\n"
         : "%-12s %-6s %10zu B  %zu devices %10.5f ms %8.2f GB/s"
           "  baseline %10.5f ms  ratio %.3f\n";
  std::printf(format, kind.c_str(), what.by_ranks ? "ranks" : "joint",
              what.bytes, what.devices, m.ms, gb_per_s, m.baseline_ms, m.ratio);
  std::fflush(stdout);
}

std::vector<bench_case> all_cases(std::size_t largest) {
  std::vector<bench_case> cases;
  for (bool by_ranks : {false, true})
    for (auto bytes = std::size_t{4} << 10; bytes <= largest; bytes *= 4)
      cases.push_back({collective_kind::all_reduce, by_ranks, bytes, 2});
  for (auto devices : {3, 4, 8})
    cases.push_back({collective_kind::all_reduce, false, largest,
                     static_cast<std::size_t>(devices)});
  cases.push_back({collective_kind::reduce, false, largest, 2});
  return cases;
}

} // namespace

int main(int argc, char** argv) {
  bool json = false;
  std::size_t rounds = 31, largest = std::size_t{64} << 20;
  CLI::App app{"Collectives between devices of one process, float32 sums: all "
               "devices at once (joint), or one call of each rank (ranks).\n"
               "The baseline is an in-place sum a[i] += b[i] of the tensors of "
               "two devices by as many threads. gb_per_s is bytes of one "
               "rank's tensor per time.\n"
               "Example: comm_bench --json --rounds 51"};
  app.add_flag("--json", json, "one JSON object per line");
  app.add_option("--rounds", rounds, "turns of which the median is taken")
    ->check(CLI::PositiveNumber);
  app.add_option("--bytes", largest, "largest tensor")
    ->check(CLI::Range(std::size_t{4096}, std::size_t{1} << 32));
  CLI11_PARSE(app, argc, argv);
  thread_pair threads;
  for (auto& what : all_cases(largest)) {
    contest c{what, threads};
    measure(c, what.bytes, 3); // warm-up
    print(what, measure(c, what.bytes, rounds), json);
  }
}
