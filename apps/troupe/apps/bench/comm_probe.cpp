// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/bench/comm_probe.hpp>

#include <troupe/base/clock.hpp>
#include <troupe/base/cores.hpp>
#include <troupe/base/error.hpp>
#include <troupe/comm/communicator.hpp>
#include <troupe/comm/engine/join.hpp>
#include <troupe/comm/shm/join.hpp>
#include <troupe/kernels/variable.hpp>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <exception>
#include <mutex>
#include <utility>

namespace troupe::apps {

namespace {

/// The end of a call.
class probe_end final : public completion {
public:
  void completed(std::exception_ptr failure) noexcept override {
    std::lock_guard guard{mutex_};
    failure_ = failure;
    has_ended_ = true;
    told_.notify_all();
  }
  /// Waits for it, and looks for work of the group meanwhile if that helps.
  void wait(comm::communicator& at, bool looks,
            const std::function<void()>& check) {
    constexpr std::chrono::milliseconds between_checks{100};
    std::unique_lock lock{mutex_};
    for (auto next = now_ns() + check_ns; looks && !has_ended_;) {
      lock.unlock();
      at.progress();
      if (now_ns() > next) {
        check();
        next = now_ns() + check_ns;
      }
      lock.lock();
    }
    while (!told_.wait_for(lock, between_checks, [this] { return has_ended_; }))
      check();
    if (failure_)
      std::rethrow_exception(failure_);
  }

private:
  static constexpr std::uint64_t check_ns = 100'000'000;

  std::mutex mutex_;
  std::condition_variable told_;
  bool has_ended_ = false;
  std::exception_ptr failure_;
};

std::unique_ptr<comm::communicator>
join_probe_group(const std::string& engine, const probe_place& at,
                 const std::function<void()>& check) {
  if (engine == "shm")
    return std::move(comm::join_shm_group({.path = at.folder + "/socket",
                                           .process = at.process,
                                           .processes = at.processes,
                                           .check = check})
                       .front());
  if (engine == "mpi") {
    comm::engine_group_options options;
    options.check = check;
    return std::move(comm::join_mpi_group(options).front());
  }
  comm::gloo_group_options options;
  options.check = check;
  options.store = comm::make_folder_store(at.folder);
  options.process = at.process;
  options.processes = at.processes;
  return std::move(comm::join_gloo_group(options).front());
}

/// Looks at one child. True if it has ended well.
bool child_has_ended(int id, bool waits) {
  int status = 0;
  if (::waitpid(id, &status, waits ? 0 : WNOHANG) != id)
    return false;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
    return true;
  throw error(errc::peer_failure, "another process of the measurement failed");
}

} // namespace

probe_engine find_engine(const std::string& name, bool is_launched,
                         std::size_t processes) {
  const auto not_built = [](const char* package) {
    return std::string{"not built in: "} + package
           + " was not installed when Troupe was configured";
  };
  if (name == "gloo" && !comm::gloo_support().is_built)
    return {name, not_built("libgloo-dev")};
  if (name == "mpi" && !comm::mpi_support().is_built)
    return {name, not_built("libopenmpi-dev")};
  if (name == "mpi" && !is_launched)
    return {name, "needs mpirun: mpirun -n " + std::to_string(processes)
                    + " --bind-to none troupe bench comm"};
  return {name, ""};
}

launched_place place_under_mpi() {
  const auto mpi = comm::mpi_support();
  return {mpi.is_usable, mpi.process, mpi.processes};
}

std::vector<double> measure_sums(const probe_engine& by, const probe_place& at,
                                 const probe_plan& plan,
                                 const std::function<void()>& check) {
  constexpr std::size_t bytes_of_round = std::size_t{32} << 20;
  const auto end = join_probe_group(by.name, at, check);
  // Through shared memory, and if each has a core.
  const bool looks = end->memory() && at.processes <= usable_cores();
  if (looks)
    end->begin_looking();
  arena own{make_host_memory_source()};
  std::vector<double> medians;
  for (const auto bytes : plan.bytes) {
    variable x;
    x.set(tensor::make(end->memory() ? *end->memory() : own,
                       {static_cast<std::int64_t>(bytes / sizeof(float))},
                       dtype::float32));
    std::ranges::fill(x.as_tensor().values<float>(), 0.0f);
    const auto calls = std::clamp<std::size_t>(bytes_of_round / bytes, 1, 200);
    std::vector<double> us;
    for (std::size_t round = 0; round <= plan.rounds; ++round) {
      const auto start = now_ns();
      for (std::size_t c = 0; c < calls; ++c) {
        const comm::rank_value value{"x", &x, &x};
        probe_end ended;
        if (end
              ->start({comm::collective_kind::all_reduce, 0, {&value, 1}},
                      ended)
              .state
            == launch_status::pending)
          ended.wait(*end, looks, check);
      }
      if (round > 0) // the first is a warm-up
        us.push_back(static_cast<double>(now_ns() - start) / ns_per_us
                     / static_cast<double>(calls));
    }
    std::ranges::nth_element(us, us.begin() + std::ssize(us) / 2);
    medians.push_back(us[us.size() / 2]);
  }
  if (looks)
    end->end_looking();
  return medians;
}

// -- processes ----------------------------------------------------------------

probe_children::probe_children(std::size_t processes,
                               const std::function<void(std::size_t)>& act) {
  std::fflush(nullptr);
  for (std::size_t p = 1; p < processes; ++p) {
    const auto id = ::fork();
    if (id < 0)
      throw error(errc::kernel_failure, "the system starts no more processes");
    if (id > 0) {
      ids_.push_back(id);
      continue;
    }
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    try {
      act(p);
      ::_exit(0);
    } catch (const std::exception& e) {
      std::fprintf(stderr, "troupe: process %zu: %s\n", p, e.what());
      ::_exit(1);
    }
  }
}

probe_children::~probe_children() {
  for (auto id : ids_)
    if (id != 0) {
      ::kill(id, SIGKILL);
      ::waitpid(id, nullptr, 0);
    }
}

void probe_children::check() {
  for (auto& id : ids_)
    if (id != 0 && child_has_ended(id, false))
      id = 0;
}

void probe_children::wait() {
  for (auto& id : ids_)
    if (id != 0 && child_has_ended(std::exchange(id, 0), true))
      continue;
}

} // namespace troupe::apps
