// SPDX-License-Identifier: Apache-2.0
// Measures all_reduce between two processes of a host: Troupe's shared memory,
// Gloo, and MPI if mpirun starts the program; the last two also through
// Troupe's groups (troupe_gloo, troupe_mpi). All take turns, so that other load
// on the machine affects them equally. The collective of two devices of one
// process, on the same two cores, has turns of its own.
//
// A process of shm and MPI is bound to a core. One of Gloo is not: its thread
// polls, and would keep the calling thread from a core that both are bound to.
// A group over MPI exists only during its turns, because it polls, too.
#include "rivals.hpp"

#include <troupe/base/cores.hpp>
#include <troupe/base/error.hpp>
#include <troupe/comm/communicator.hpp>
#include <troupe/comm/engine/join.hpp>
#include <troupe/comm/shm/join.hpp>
#include <troupe/kernels/device.hpp>
#include <troupe/kernels/part_runner.hpp>

#include <CLI/CLI.hpp>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace {

using namespace troupe;

double now_us() {
  return std::chrono::duration<double, std::micro>(
           std::chrono::steady_clock::now().time_since_epoch())
    .count();
}

double median(std::vector<double> values) {
  const auto middle =
    values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

class flag final : public completion {
public:
  void completed(std::exception_ptr) noexcept override {
    is_set_ = true;
    is_set_.notify_one();
  }
  bool is_set() const { return is_set_; }
  /// Sleeps until it is set.
  void wait() const { is_set_.wait(false); }

private:
  std::atomic<bool> is_set_{false};
};

/// One process's side of all contenders.
class contenders {
public:
  contenders(std::size_t rank, const std::string& folder)
    : rank_(rank), mpi_(connect_mpi()), gloo_(connect_gloo(rank, folder)),
      shm_(std::move(
        comm::join_shm_group(
          {.path = folder + "/socket", .process = rank, .processes = 2})
          .front())) {
    shm_->begin_looking();
    if (!gloo_)
      return;
    comm::gloo_group_options options;
    std::filesystem::create_directory(folder + "/troupe");
    options.store = comm::make_folder_store(folder + "/troupe");
    options.process = rank;
    options.processes = 2;
    troupe_gloo_ = std::move(comm::join_gloo_group(options).front());
  }

  std::vector<std::string> names() const {
    std::vector<std::string> all{"shm"};
    if (gloo_)
      all.insert(all.end(), {"gloo", "troupe_gloo"});
    if (mpi_)
      all.insert(all.end(), {"mpi", "troupe_mpi"});
    return all;
  }

  void make_values(std::size_t count) {
    x_.set(
      tensor::make(*shm_->memory(), {std::int64_t(count)}, dtype::float32));
    std::fill_n(x_.as_tensor().data<float>(), count, 0.0f);
    own_.set(tensor::make(own_memory_, {std::int64_t(count)}, dtype::float32));
    std::fill_n(own_.as_tensor().data<float>(), count, 0.0f);
  }

  void run(const std::string& name) {
    if (name == "shm")
      return all_reduce(x_);
    if (name == "troupe_gloo")
      return all_reduce(*troupe_gloo_);
    if (name == "troupe_mpi")
      return all_reduce(*troupe_mpi_);
    (name == "gloo" ? *gloo_ : *mpi_)
      .all_reduce(own_.as_tensor().data<float>(),
                  std::size_t(own_.as_tensor().numel()));
  }

  /// Both processes pass it at the same time, on the cores that the contender
  /// is to use.
  void prepare(const std::string& name) {
    if (name == "gloo" || name == "troupe_gloo")
      core_.reset();
    else if (!core_)
      core_.emplace(rank_);
    troupe_mpi_.reset();
    if (name == "troupe_mpi")
      troupe_mpi_ = std::move(comm::join_mpi_group({}).front());
    variable one;
    one.set(tensor::make(*shm_->memory(), {1}, dtype::float32));
    one.as_tensor().data<float>()[0] = 0;
    all_reduce(one);
  }

private:
  void all_reduce(variable& x) {
    const comm::rank_value value{"x", &x, &x};
    flag done;
    if (shm_->start({comm::collective_kind::all_reduce, 0, {&value, 1}}, done)
          .state
        == launch_status::pending)
      while (!done.is_set())
        shm_->progress();
  }

  /// Through an engine's group.
  void all_reduce(comm::communicator& by) {
    const comm::rank_value value{"x", &own_, &own_};
    flag done;
    if (by.start({comm::collective_kind::all_reduce, 0, {&value, 1}}, done)
          .state
        == launch_status::pending)
      done.wait();
  }

  std::size_t rank_;
  std::optional<stay_on_core> core_;
  std::unique_ptr<rival> mpi_;
  std::unique_ptr<rival> gloo_;
  std::unique_ptr<comm::communicator> shm_, troupe_gloo_, troupe_mpi_;
  arena own_memory_{make_host_memory_source()};
  variable x_, own_;
};

/// Two devices of this process, whose ranks two threads serve.
class one_process {
public:
  one_process() : sync_(2) {
    for (int d : {0, 1})
      on_.push_back(devices_.emplace_back(make_cpu_device(d)).get());
    other_ = std::thread([this] { serve(); });
    ranks_ = comm::make_local_group(on_, {&helper_, 2});
  }
  ~one_process() {
    ends_ = true;
    sync_.arrive_and_wait();
    other_.join();
  }

  void make_values(std::size_t count) {
    for (std::size_t r : {0, 1}) {
      x_[r].set(
        tensor::make(on_[r]->memory(), {std::int64_t(count)}, dtype::float32));
      std::fill_n(x_[r].as_tensor().data<float>(), count, 0.0f);
    }
    count_ = count;
  }

  void run() {
    // As kernels do in each step: the result of the last step is not shared.
    for (std::size_t r : {0, 1}) {
      x_[r].clear();
      x_[r].set(
        tensor::make(on_[r]->memory(), {std::int64_t(count_)}, dtype::float32));
    }
    flag done;
    for (std::size_t r : {0, 1}) {
      const comm::rank_value value{"x", &x_[r], &x_[r]};
      values_[r] = value;
      ranks_[r]->start({comm::collective_kind::all_reduce, 0, {&values_[r], 1}},
                       done);
    }
  }

private:
  struct pair final : part_runner {
    one_process* of;
    explicit pair(one_process* p) : of(p) {}
    void run(std::size_t parts, const part_function& part) override {
      if (parts == 1)
        return part(0);
      of->part_ = &part;
      of->sync_.arrive_and_wait();
      part(0);
      of->sync_.arrive_and_wait();
    }
  };

  void serve() {
    pin_this_thread(1);
    for (;;) {
      sync_.arrive_and_wait();
      if (ends_)
        return;
      (*part_)(1);
      sync_.arrive_and_wait();
    }
  }

  std::barrier<> sync_;
  std::atomic<bool> ends_{false};
  const part_function* part_ = nullptr;
  pair helper_{this};
  std::vector<std::unique_ptr<device>> devices_;
  std::vector<device*> on_;
  variable x_[2];
  comm::rank_value values_[2];
  std::size_t count_ = 0;
  std::vector<std::unique_ptr<comm::communicator>> ranks_;
  std::thread other_;
};

struct plan {
  std::size_t rounds = 21;
  std::size_t least = 1 << 10;
  std::size_t most = 64 << 20;
  std::vector<std::string> sides;
  bool json = false;

  std::vector<std::size_t> sizes() const {
    std::vector<std::size_t> all;
    for (auto bytes = least; bytes < most; bytes *= 8)
      all.push_back(bytes);
    all.push_back(most);
    return all;
  }
  static std::size_t repetitions(std::size_t bytes) {
    return std::clamp<std::size_t>((std::size_t{32} << 20) / bytes, 2, 200);
  }
};

void print(const plan& p, const std::string& name, std::size_t bytes,
           std::vector<double> us) {
  const auto middle = median(us);
  std::printf(p.json ? "{\"all_reduce\":\"%s\",\"bytes\":%zu,\"us\":%.3f,"
                       "\"gb_per_s\":%.3f}\n"
                     : "%-12s %10zu B %12.2f us %8.2f GB/s\n",
              name.c_str(), bytes, middle,
              static_cast<double>(bytes) / middle * 1e-3);
  std::fflush(stdout);
}

/// The time of a library alone divided by that through Troupe.
void print_ratios(const std::vector<std::string>& names,
                  const std::vector<std::vector<double>>& us) {
  for (std::size_t i = 0; i < names.size(); ++i)
    for (std::size_t k = 0; k < names.size(); ++k)
      if (names[k] == "troupe_" + names[i])
        std::printf("%-12s ratio %.3f\n", names[k].c_str(),
                    median(us[i]) / median(us[k]));
}

/// Both processes run this in step.
void contest(contenders& all, const plan& p, bool prints) {
  for (const auto bytes : p.sizes()) {
    all.make_values(bytes / sizeof(float));
    auto names = all.names();
    std::erase_if(names, [&p](const std::string& name) {
      return !p.sides.empty() && std::ranges::count(p.sides, name) == 0;
    });
    std::vector<std::vector<double>> us(names.size());
    for (std::size_t round = 0; round < p.rounds + 1; ++round)
      for (std::size_t i = 0; i < names.size(); ++i) {
        all.prepare(names[i]);
        const auto start = now_us();
        const auto repetitions = plan::repetitions(bytes);
        for (std::size_t k = 0; k < repetitions; ++k)
          all.run(names[i]);
        if (round > 0) // the first is a warm-up
          us[i].push_back((now_us() - start)
                          / static_cast<double>(repetitions));
      }
    if (prints)
      for (std::size_t i = 0; i < names.size(); ++i)
        print(p, names[i], bytes, us[i]);
    if (prints && !p.json)
      print_ratios(names, us);
  }
}

void measure_one_process(const plan& p) {
  if (!p.sides.empty() && std::ranges::count(p.sides, "process") == 0)
    return;
  const stay_on_core here{0};
  one_process both;
  for (const auto bytes : p.sizes()) {
    both.make_values(bytes / sizeof(float));
    std::vector<double> us;
    const auto repetitions = plan::repetitions(bytes);
    for (std::size_t round = 0; round < p.rounds + 1; ++round) {
      const auto start = now_us();
      for (std::size_t k = 0; k < repetitions; ++k)
        both.run();
      if (round > 0)
        us.push_back((now_us() - start) / static_cast<double>(repetitions));
    }
    print(p, "process", bytes, us);
  }
}

/// Process `rank` of the two.
void take_part(std::size_t rank, const std::string& folder, const plan& p) {
  contenders all{rank, folder};
  contest(all, p, rank == 0);
}

/// Where the two processes meet; process 0 removes it.
class meeting_folder {
public:
  meeting_folder(pid_t id, bool is_own)
    : path_(std::filesystem::temp_directory_path()
            / ("troupe-bench-" + std::to_string(id))),
      is_own_(is_own) {
    std::filesystem::create_directory(path_);
  }
  ~meeting_folder() {
    std::error_code ignored;
    if (is_own_)
      std::filesystem::remove_all(path_, ignored);
  }
  meeting_folder(const meeting_folder&) = delete;
  meeting_folder& operator=(const meeting_folder&) = delete;
  std::string path() const { return path_; }

private:
  std::filesystem::path path_;
  bool is_own_;
};

void run_under_mpirun(const plan& p) {
  // The parent is the same for both.
  const meeting_folder at{::getppid(), mpi_rank() == 0};
  take_part(mpi_rank(), at.path(), p);
  if (mpi_rank() == 0)
    measure_one_process(p);
}

void run(const plan& p) {
  if (is_under_mpirun())
    return run_under_mpirun(p);
  const meeting_folder at{::getpid(), true};
  const auto child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    try {
      take_part(1, at.path(), p);
      ::_exit(0);
    } catch (const std::exception& e) {
      std::fprintf(stderr, "process_bench: process 1: %s\n", e.what());
      ::kill(::getppid(), SIGTERM); // it would wait for ever
      ::_exit(1);
    }
  }
  take_part(0, at.path(), p);
  ::waitpid(child, nullptr, 0);
  measure_one_process(p);
}

} // namespace

int main(int argc, char** argv) {
  plan p;
  CLI::App app{"all_reduce of float32 between two processes of this host: "
               "shm (Troupe's shared memory), gloo over loopback and, under "
               "mpirun, mpi, both alone and through Troupe (troupe_gloo, "
               "troupe_mpi); then process: two devices of one process. Times "
               "are medians of turns, GB/s the bytes of one tensor per time, "
               "ratio is the library's time per Troupe's.\n"
               "Example: mpirun -n 2 --bind-to none process_bench"};
  app.add_option("--rounds", p.rounds, "turns")->check(CLI::PositiveNumber);
  const auto size = CLI::Range(std::size_t{4}, std::size_t{1} << 32);
  app.add_option("--least", p.least, "smallest tensor, in bytes")->check(size);
  app.add_option("--most", p.most, "largest tensor, in bytes")->check(size);
  app
    .add_option("--sides", p.sides,
                "only these: shm, gloo, troupe_gloo, mpi, "
                "troupe_mpi, process")
    ->delimiter(',')
    ->check(CLI::IsMember(
      {"shm", "gloo", "troupe_gloo", "mpi", "troupe_mpi", "process"}));
  app.add_flag("--json", p.json, "one JSON object per line");
  CLI11_PARSE(app, argc, argv);
  try {
    run(p);
  } catch (const error& e) {
    std::fprintf(stderr, "process_bench: %s\n", e.what());
    return 1;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "process_bench: not enough memory\n");
    return 1;
  }
}
