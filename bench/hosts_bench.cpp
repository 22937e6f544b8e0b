// SPDX-License-Identifier: Apache-2.0
// Measures all_reduce over Gloo between processes of several hosts: flat, where
// each rank's value is sent on its own, and by host, where the values of a host
// are added first. Both take turns. This is one of the processes; bench/hosts
// starts all of them, with network namespaces as hosts.
#include <troupe/base/error.hpp>
#include <troupe/comm/communicator.hpp>
#include <troupe/comm/engine/join.hpp>
#include <troupe/comm/shm/process_memory.hpp>
#include <troupe/kernels/tensor.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace troupe;

struct bench_options {
  std::size_t process = 0, processes = 4, hosts = 2;
  std::string folder, address, interface;
  std::size_t bytes = std::size_t{64} << 20;
  int rounds = 7;
};

double now_ms() {
  return std::chrono::duration<double, std::milli>(
           std::chrono::steady_clock::now().time_since_epoch())
    .count();
}

double median(std::vector<double> values) {
  const auto middle =
    values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

class call_end final : public completion {
public:
  void completed(std::exception_ptr failure) noexcept override {
    failure_ = failure;
    is_set_ = true;
    is_set_.notify_one();
  }
  void wait() {
    is_set_.wait(false);
    if (failure_)
      std::rethrow_exception(failure_);
  }

private:
  std::exception_ptr failure_;
  std::atomic<bool> is_set_{false};
};

/// Processes of a host have numbers that follow each other.
std::unique_ptr<comm::communicator>
join(const bench_options& o, const std::string& name,
     std::shared_ptr<comm::process_memory> memory) {
  comm::gloo_group_options group;
  group.store = comm::make_folder_store(o.folder + "/" + name);
  group.process = o.process;
  group.processes = o.processes;
  group.address = o.address;
  if (memory)
    group.hosts = comm::host_group_options{o.process * o.hosts / o.processes,
                                           o.folder + "/socket", memory};
  return std::move(comm::join_gloo_group(group).front());
}

void all_reduce(comm::communicator& on, variable& x) {
  const comm::rank_value value{"x", &x, &x};
  call_end end;
  if (on.start({comm::collective_kind::all_reduce, 0, {&value, 1}}, end).state
      == launch_status::pending)
    end.wait();
}

/// Bytes that the interface has sent.
double sent_bytes(const std::string& interface) {
  std::ifstream file{"/sys/class/net/" + interface + "/statistics/tx_bytes"};
  double bytes = 0;
  file >> bytes;
  return bytes;
}

void run(const bench_options& o) {
  const auto memory = std::make_shared<comm::process_memory>();
  struct contender {
    const char* name;
    std::unique_ptr<comm::communicator> end;
    std::vector<double> ms = {}, bytes = {};
  };
  std::vector<contender> all;
  all.push_back({"flat", join(o, "flat", nullptr)});
  all.push_back({"by host", join(o, "by_host", memory)});
  const auto elements = static_cast<std::int64_t>(o.bytes / sizeof(float));
  variable x, small;
  x.set(tensor::make(memory->memory(), {elements}, dtype::float32));
  small.set(tensor::make(memory->memory(), {1}, dtype::float32));
  std::ranges::fill(x.as_tensor().values<float>(), 0.f);
  small.as_tensor().values<float>()[0] = 0;
  for (int round = -1; round < o.rounds; ++round) // the first is for practice
    for (auto& c : all) {
      all_reduce(*c.end, small); // all begin together
      const auto bytes = sent_bytes(o.interface);
      const auto begin = now_ms();
      all_reduce(*c.end, x);
      all_reduce(*c.end, small); // all have ended
      if (round < 0)
        continue;
      c.ms.push_back(now_ms() - begin);
      c.bytes.push_back(sent_bytes(o.interface) - bytes);
    }
  if (o.process == 0)
    for (auto& c : all)
      std::printf("%-8s %8.1f ms %10.1f MiB\n", c.name, median(c.ms),
                  median(c.bytes) / (1 << 20));
}

} // namespace

int main(int argc, char** argv) {
  bench_options options;
  CLI::App app{"one process of bench/hosts"};
  app.add_option("--process", options.process);
  app.add_option("--processes", options.processes);
  app.add_option("--hosts", options.hosts);
  app.add_option("--folder", options.folder, "where the processes meet");
  app.add_option("--address", options.address, "of this host");
  app.add_option("--interface", options.interface,
                 "whose bytes process 0 counts");
  app.add_option("--bytes", options.bytes, "of each rank's value");
  app.add_option("--rounds", options.rounds);
  CLI11_PARSE(app, argc, argv);
  try {
    run(options);
    return 0;
  } catch (const troupe::error& e) {
    std::fprintf(stderr, "hosts_bench: %s\n", e.what());
    return 1;
  }
}
