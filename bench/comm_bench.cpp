// SPDX-License-Identifier: Apache-2.0
// Measures collectives between the devices of one process against plain loops
// over the same tensors, turn by turn, so that whatever else the machine does
// meets both alike.
#include <troupe/base/cores.hpp>
#include <troupe/comm/collective.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using namespace troupe;
using comm::collective_kind;

// Two pinned threads that run halves of a piece of work together; the calling
// thread is one of them.
class thread_pair {
public:
  thread_pair() {
    pin_this_thread(0);
    other_ = std::thread([this] { serve(); });
  }
  ~thread_pair() {
    work_ = nullptr;
    sync_.arrive_and_wait();
    other_.join();
  }
  thread_pair(const thread_pair&) = delete;
  thread_pair& operator=(const thread_pair&) = delete;

  void run(const std::function<void(std::size_t)>& work) {
    work_ = &work;
    sync_.arrive_and_wait();
    work(0);
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
  const std::function<void(std::size_t)>* work_ = nullptr;
  std::thread other_;
};

__attribute__((target_clones("avx512f", "avx2", "default"))) void
add_in_place(float* a, const float* b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    a[i] += b[i];
}

struct bench_case {
  collective_kind kind = collective_kind::all_reduce;
  const char* form = "copy"; ///< copy, share (both in place), out_of_place
  std::size_t bytes = 0;     ///< of one rank's tensor, the whole one
  std::size_t devices = 2;
};

struct measurement {
  double ms = 0;
  double baseline_ms = 0;
  double ratio = 0; ///< median over the turns of baseline time / time
};

// The tensors of one case and the two things that are timed on them.
class contest {
public:
  contest(const bench_case& what, thread_pair& threads)
    : what_(what), threads_(threads), elements_(what.bytes / sizeof(float)) {
    auto slices = what.kind == collective_kind::all_gather;
    auto scatters = what.kind == collective_kind::reduce_scatter;
    auto part = elements_ / what.devices;
    for (std::size_t r = 0; r < what.devices; ++r) {
      inputs_.push_back(make(slices ? part : elements_));
      fresh_.push_back(in_place() ? inputs_[r]
                                  : make(scatters ? part : elements_));
    }
    collective_ = comm::make_local_collective(
      what.devices, {.kind = what.kind,
                     .share_results = std::string_view(what.form) == "share",
                     .max_parts = 2});
    collective_->bind(inputs_, fresh_);
    parts_ = collective_->parts();
    run_parts();
  }

  std::size_t parts() const { return parts_; }

  void run_collective() {
    outputs_ = fresh_; // as kernels would have written them this step
    collective_->bind(inputs_, outputs_);
    run_parts();
    collective_->finish();
  }

  void run_baseline() {
    auto sums = what_.kind != collective_kind::broadcast
                && what_.kind != collective_kind::all_gather;
    auto& tensors = sums ? inputs_ : fresh_;
    auto* a = tensors[0].data<float>();
    auto* b = tensors[1].data<float>();
    in_parts(elements_, [=](std::size_t first, std::size_t count) {
      if (sums)
        add_in_place(a + first, b + first, count);
      else
        std::memcpy(a + first, b + first, count * sizeof(float));
    });
  }

private:
  bool in_place() const {
    return std::string_view(what_.form) != "out_of_place";
  }

  tensor make(std::size_t elements) {
    auto value = tensor::make(memory_, {static_cast<std::int64_t>(elements)},
                              dtype::float32);
    std::fill_n(value.data<float>(), elements, 0.0f);
    return value;
  }

  void run_parts() {
    if (parts_ == 1)
      collective_->run_part(0);
    else
      threads_.run([this](std::size_t part) { collective_->run_part(part); });
  }

  void in_parts(std::size_t count,
                const std::function<void(std::size_t, std::size_t)>& work) {
    if (parts_ == 1)
      work(0, count);
    else
      threads_.run([&](std::size_t half) {
        work(half * (count / 2), half ? count - count / 2 : count / 2);
      });
  }

  bench_case what_;
  thread_pair& threads_;
  std::size_t elements_;
  arena memory_{make_host_memory_source()};
  std::vector<tensor> inputs_, fresh_, outputs_;
  std::unique_ptr<comm::collective> collective_;
  std::size_t parts_ = 1;
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

void print(const bench_case& what, std::size_t threads, const measurement& m,
           bool json) {
  auto kind = std::string(comm::to_string(what.kind));
  auto gb_per_s = static_cast<double>(what.bytes) / m.ms * 1e-6;
  auto* format =
    json ? "{\"collective\":\"%s\",\"form\":\"%s\",\"bytes\":%zu,\"devices\":"
           "%zu,\"threads\":%zu,\"ms\":%.6f,\"gb_per_s\":%.3f,"
           "\"baseline_ms\":%.6f,\"ratio\":%.3f}\n"
         : "%-15s %-13s %10zu B  %zu devices  %zu threads %10.5f ms %8.2f GB/s"
           "  baseline %10.5f ms  ratio %.3f\n";
  std::printf(format, kind.c_str(), what.form, what.bytes, what.devices,
              threads, m.ms, gb_per_s, m.baseline_ms, m.ratio);
  std::fflush(stdout);
}

std::vector<bench_case> all_cases(std::size_t largest) {
  std::vector<bench_case> cases;
  for (auto* form : {"copy", "share", "out_of_place"})
    for (auto bytes = std::size_t{4} << 10; bytes <= largest; bytes *= 4)
      cases.push_back({collective_kind::all_reduce, form, bytes, 2});
  for (auto devices : {3, 4, 8})
    cases.push_back({collective_kind::all_reduce, "copy", largest,
                     static_cast<std::size_t>(devices)});
  for (auto kind : {collective_kind::reduce, collective_kind::broadcast})
    for (auto* form : {"copy", "out_of_place"})
      cases.push_back({kind, form, largest, 2});
  for (auto kind :
       {collective_kind::all_gather, collective_kind::reduce_scatter})
    cases.push_back({kind, "out_of_place", largest, 2});
  return cases;
}

} // namespace

int main(int argc, char** argv) {
  bool json = false;
  std::size_t rounds = 31, largest = std::size_t{64} << 20;
  CLI::App app{"Collectives between two devices of one process, float32 sums.\n"
               "The baseline is an in-place sum a[i] += b[i] of the same "
               "tensors (broadcast and all_gather: a memcpy) by as many "
               "threads. gb_per_s is bytes of one rank's tensor per time.\n"
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
    print(what, c.parts(), measure(c, what.bytes, rounds), json);
  }
}
