// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/wait_chain.hpp>
#include <troupe/dashboard/picture/board_state.hpp>
#include <troupe/dashboard/picture/live_picture.hpp>
#include <troupe/trace/trace.hpp>

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::dashboard {

/// Whether what is shown is a file.
enum class recording : std::uint8_t {
  none,  ///< a run
  whole, ///< a file, or several
  cut,   ///< one lacks its end: its run was killed, or still writes it
};

// What the dashboard answers, as docs/dashboard.md describes it. All are
// functions of a picture at rest.

/// What the run is.
/// @param ranks whose events the picture has
/// @param may_control whether whoever asks may
nlohmann::json run_answer(const trace::run_info& run,
                          const std::vector<trace::run_info>& ranks,
                          const board_state& state, recording file,
                          bool may_control);
/// Readiness messages of the steps that have ended, recorded or not.
std::uint64_t messages_of_steps(const live_picture& picture);
/// The graph, laid out and grouped. Takes some milliseconds per 1,000 handles;
/// made once per run.
nlohmann::json graph_answer(const live_picture& picture,
                            const board_state& state);
nlohmann::json series_answer(const live_picture& picture);
/// The collectives that are under way by what the run itself knows: more than
/// events tell, which are those of one process.
struct known_collectives {
  std::vector<actors::collective_wait> under_way = {};
  std::uint64_t clock_ns = 0; ///< the time, on the clock of `since_ns`
};
nlohmann::json collectives_answer(const live_picture& picture,
                                  std::uint64_t now_ns,
                                  const known_collectives& known = {});
/// @param most how many holders per device
nlohmann::json memory_answer(const live_picture& picture, std::size_t most);
/// Whether an actor of the application is no more. A file that is played knows
/// ends before their time.
bool has_ended(const recorded_actor& actor, const board_state& state);
/// The actors of the graph in the ranks that are shown, queues of their
/// streams, the application's actors, errors, and all processes.
nlohmann::json actors_answer(const live_picture& picture,
                             const std::vector<trace::run_info>& ranks,
                             const board_state& state);
nlohmann::json timeline_answer(const live_picture& picture);
nlohmann::json why_answer(const actors::wait_chain& chain);
/// The same while the run is paused between two steps.
/// @param chain what a handle waits for; empty if nothing was asked for: the
///   answer then has the op with which the next step begins
nlohmann::json paused_answer(const live_picture& picture,
                             actors::wait_chain chain);

/// The head of a frame.
nlohmann::json head_answer(const live_picture& picture,
                           const board_state& state);

/// Makes the frames of one picture: each has the slices and steps that are new
/// since the one before.
class frame_maker {
public:
  /// The most slices of a frame; older ones are left out.
  static constexpr std::size_t most_slices = 4'000;

  std::string next(const live_picture& picture, const board_state& state);

private:
  std::uint64_t slices_told_ = 0;
  std::uint64_t steps_told_ = 0;
};

/// As Prometheus reads it (text format 0.0.4). What is of one rank has its
/// label `rank`; what is of several ranks together has none.
/// @param ranks whose events the picture has, in the order of their workers;
///   empty: `run` alone
std::string prometheus_text(const live_picture& picture,
                            const trace::run_info& run,
                            const board_state& state,
                            const std::vector<trace::run_info>& ranks = {});

/// Why a handle waits, as far as the picture tells: for runs that are no more.
actors::wait_chain why_in(const live_picture& picture, handle_id id);
/// Why the newest step has not ended; empty if it has.
actors::wait_chain why_in(const live_picture& picture);
/// The op with which the step after the newest one begins, as a chain of one
/// link: the first one, by number, that needs no other op of its step. Empty if
/// there is none here.
actors::wait_chain next_step_in(const live_picture& picture);

} // namespace troupe::dashboard
