// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/bench/task_graph.hpp>
#include <troupe/apps/bench/task_work.hpp>

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace troupe::apps {

/// Heap and time that it takes to describe tasks to an engine.
struct description_cost {
  double bytes = 0;
  double ns = 0;
};

/// Something that runs task graphs: Troupe itself, or what it is compared
/// with. All run the same tasks behind the same dependencies.
class task_engine {
public:
  virtual ~task_engine() = default;

  /// Runs every task once and returns when all are done.
  virtual void run_pass() = 0;
  /// Messages, or what the engine has instead, of a pass; 0: not counted.
  virtual std::uint64_t messages() const { return 0; }
  /// What the description of the tasks took, which is the user's and no part
  /// of the engine; nothing: there is none.
  virtual description_cost description() const { return {}; }
};

/// Makes an engine for a graph; both arguments outlive it. `threads` workers.
using engine_factory = std::unique_ptr<task_engine> (*)(const task_graph&,
                                                        task_work&,
                                                        int threads);

struct engine_entry {
  std::string_view name;
  std::string_view what; ///< for people
  engine_factory make;   ///< null: its library is not in this build
};

/// All engines, those without their library too.
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
/// Atomic counters; ready ops but the first go to a shared queue (Paddle's
/// FastThreadedSSAGraphExecutor).
std::unique_ptr<task_engine> make_ready_queue_engine(const task_graph&,
                                                     task_work&, int threads);
/// A master takes ready variables from a shared queue and hands ready ops to a
/// pool (Paddle's ThreadedSSAGraphExecutor).
std::unique_ptr<task_engine>
make_ready_variables_engine(const task_graph&, task_work&, int threads);
/// OpenMP tasks with depend clauses, made anew in each pass.
std::unique_ptr<task_engine> make_openmp_engine(const task_graph&, task_work&,
                                                int threads);
/// Continue nodes of oneTBB's flow graph; null without oneTBB.
engine_factory onetbb_engine();
/// The same with the policy `lightweight`: what a node makes ready runs in it,
/// without a task of its own. A long chain nests as deep.
engine_factory onetbb_lightweight_engine();

} // namespace troupe::apps
