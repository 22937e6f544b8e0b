// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/bench/task_engine.hpp>
#include <troupe/base/threads.hpp>

#include <omp.h>

namespace troupe::apps {

namespace {

class openmp_engine final : public task_engine {
public:
  openmp_engine(const task_graph& tasks, task_work& work, int threads)
    : tasks_(tasks), work_(work), threads_(threads), made_(tasks.tasks()) {
    require_threads(static_cast<std::size_t>(threads - 1));
  }

  void run_pass() override {
    const auto* predecessors = tasks_.predecessors.data();
    const auto* first = tasks_.first.data();
    [[maybe_unused]] auto* made = made_.data(); // used in depend clauses
    auto& work = work_;
    const auto count = static_cast<std::uint32_t>(tasks_.tasks());
#pragma omp parallel num_threads(threads_)
#pragma omp single
    for (std::uint32_t t = 0; t < count; ++t) {
      // clang-format off
#pragma omp task firstprivate(t) shared(work)                                  \
  depend(iterator(std::uint32_t i = first[t] : first[t + 1]),                  \
         in : made[predecessors[i]]) depend(out : made[t])
      // clang-format on
      work.run(t);
    }
  }

private:
  const task_graph& tasks_;
  task_work& work_;
  int threads_;
  std::vector<char> made_; // represents the tasks' outputs
};

} // namespace

std::unique_ptr<task_engine> make_openmp_engine(const task_graph& tasks,
                                                task_work& work, int threads) {
  return std::make_unique<openmp_engine>(tasks, work, threads);
}

} // namespace troupe::apps
