// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/bench/task_graph.hpp>
#include <troupe/apps/bench/task_work.hpp>

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace troupe::apps {

/// Heap and time for describing the tasks to an engine.
struct description_cost {
  double bytes = 0;
  double ns = 0;
};

/// Runs task graphs: Troupe, or a library that it is compared with. All engines
/// run the same tasks with the same dependencies.
class task_engine {
public:
  virtual ~task_engine() = default;

  /// Runs every task once and returns when all are done.
  virtual void run_pass() = 0;
  /// Messages of a pass, or what corresponds to them; 0: not counted.
  virtual std::uint64_t messages() const { return 0; }
  /// Cost of the description of the tasks, if there is one. It belongs to the
  /// user, not to the engine.
  virtual description_cost description() const { return {}; }
};

/// Makes an engine with `threads` workers. Graph and work must outlive it.
using engine_factory = std::unique_ptr<task_engine> (*)(const task_graph&,
                                                        task_work&,
                                                        int threads);

struct engine_entry {
  std::string_view name;
  std::string_view what; ///< a description to print
  engine_factory make;   ///< null: this build lacks its library
};

/// All engines, including those whose library this build lacks.
std::vector<engine_entry> task_engines();

// One per file; `engines.cpp` lists them.

/// Op and variable actors of a real executor, edges as counters.
std::unique_ptr<task_engine> make_troupe_engine(const task_graph&, task_work&,
                                                int threads);
/// The same with a CAF message along every edge.
std::unique_ptr<task_engine>
make_troupe_message_engine(const task_graph&, task_work&, int threads);
/// A plain behaviour-based CAF actor per task on CAF's own scheduler.
std::unique_ptr<task_engine> make_caf_engine(const task_graph&, task_work&,
                                             int threads);
/// Atomic counters. The first ready op runs on the same thread, further ones go
/// to a shared queue (Paddle's FastThreadedSSAGraphExecutor).
std::unique_ptr<task_engine> make_ready_queue_engine(const task_graph&,
                                                     task_work&, int threads);
/// A master thread takes ready variables from a shared queue and passes ready
/// ops to a pool (Paddle's ThreadedSSAGraphExecutor).
std::unique_ptr<task_engine>
make_ready_variables_engine(const task_graph&, task_work&, int threads);
/// OpenMP tasks with depend clauses, made anew in each pass.
std::unique_ptr<task_engine> make_openmp_engine(const task_graph&, task_work&,
                                                int threads);
/// Continue nodes of oneTBB's flow graph; null without oneTBB.
engine_factory onetbb_engine();
/// The same with the policy `lightweight`: a node runs its successors in place,
/// without a task for each. A long chain nests as deep as it is long.
engine_factory onetbb_lightweight_engine();

} // namespace troupe::apps
