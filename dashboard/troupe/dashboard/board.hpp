// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/trace/trace.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// A training run in the browser, while it runs.
namespace troupe::dashboard {

/// Where a board listens, and who may look; see docs/dashboard.md.
struct board_options {
  /// A host and a port: "127.0.0.1:8080", "[::1]:0", ":8080", "8080". Port 0:
  /// the system chooses one.
  std::string address = "127.0.0.1:0";
  /// A file with a secret for scripts that look, and from which sessions are
  /// derived: pages may still look when the process is started again. Made if
  /// it is missing. Empty: none.
  std::filesystem::path token_file = {};
  /// PEM files for TLS. Needed for addresses off loopback.
  std::filesystem::path certificate = {};
  std::filesystem::path key = {};
};

/// Throws error(invalid_argument), as the constructor of `board` does, if the
/// options contradict each other or would let strangers in. Listens nowhere and
/// reads no file. Any thread.
void require_safe(const board_options& options);

/// What a training loop knows of a step that has ended.
struct step_report {
  step_id step = 0;                    ///< its number in the executor
  double loss = 0;                     ///< NaN counts as a value: it is marked
  std::optional<double> samples_per_s; ///< of this step, 0: it took no time
                                       ///< that can be measured; what is shown
                                       ///< is the mean over ten steps
  std::optional<double> learning_rate;
};

/// A dashboard of message flow for browsers: a server, and threads that follow
/// a run. It costs little while nobody looks: only steps are recorded then.
///
/// Thread rule: made and destroyed by one thread; the rest any thread.
class board {
public:
  /// Listens. Throws error(invalid_argument) if the options contradict each
  /// other or would let strangers in, and error(io_failure) if the address
  /// cannot be had.
  explicit board(const board_options& options);
  ~board(); ///< closes all connections
  board(const board&) = delete;
  board& operator=(const board&) = delete;

  /// Ends what `show` began, unless the board shows another run by now. Any
  /// thread.
  class shown_run {
  public:
    /// The board must outlive it.
    /// @param number of what the board has shown
    shown_run(board& on, std::uint64_t number) : on_(on), number_(number) {}
    ~shown_run();
    shown_run(const shown_run&) = delete;
    shown_run& operator=(const shown_run&) = delete;

  private:
    board& on_;
    std::uint64_t number_;
  };

  /// Shows a run until the result is destroyed, which must be before the
  /// executor is (`executor_options::attach` does that). What was shown last
  /// stays, as a run that has ended.
  /// @param command what is run, in words
  std::unique_ptr<shown_run> show(executor& run, const std::string& command);
  /// Shows the file of a run, or those of all its ranks.
  /// @param recorded at least one, on one clock (`trace::merge_clocks`)
  void show(std::vector<trace::process_trace> recorded);
  /// Adds to the curves of the run that is shown.
  void tell(const step_report& step);
  /// Shows why the run has failed, such as the message of the error that a step
  /// threw. Without it, the op that failed first is named. Nothing if no run is
  /// shown.
  void fail(const std::string& why);
  /// Shows a line that must not be missed, such as why a step does not go on
  /// (`step_watchdog`). It stays for a minute. Nothing if no run is shown.
  void warn(const std::string& what);

  /// Opens the page, once: whoever follows it first may look.
  const std::string& view_link() const noexcept;
  /// The same for someone, or a script, who may also pause the run and slow it
  /// down.
  const std::string& control_link() const noexcept;

private:
  class hub;
  std::unique_ptr<hub> hub_;
};

} // namespace troupe::dashboard
