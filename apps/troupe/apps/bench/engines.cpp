// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/bench/task_engine.hpp>

namespace troupe::apps {

std::vector<engine_entry> task_engines() {
  return {
    {"troupe", "op and variable actors; an edge is a counter",
     make_troupe_engine},
    {"troupe_messages", "the same, but each edge is a CAF message",
     make_troupe_message_engine},
    {"caf", "a behaviour-based CAF actor per task", make_caf_engine},
    {"ready_queue", "atomic counters and a shared queue of ready ops",
     make_ready_queue_engine},
    {"ready_variables", "a master and a pool share a queue of ready variables",
     make_ready_variables_engine},
    {"onetbb", "oneTBB's flow graph", onetbb_engine()},
    {"onetbb_light", "the same with nodes of the policy lightweight",
     onetbb_lightweight_engine()},
    {"openmp", "OpenMP tasks with depend clauses", make_openmp_engine},
  };
}

} // namespace troupe::apps
