// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/engine/ready_op.hpp>
#include <troupe/actors/engine/step_state.hpp>
#include <troupe/actors/executor.hpp>
#include <troupe/kernels/scope.hpp>
#include <troupe/kernels/step_recording.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe::actors {

class actor_graph;
class stream_actor;

/// Records a step of a device once, and lets later ones be one launch of what
/// was recorded (kernels/step_recording.hpp), if they have feeds of the same
/// shapes and the same fetches.
///
/// The graph's actors make the recording: they run a step in which streams
/// record. Nothing is computed by that; the step itself is then the first
/// launch. A recorded step is one message to the actor of the device's compute
/// stream, which copies feeds, and parameters that others have replaced, to
/// where the recording reads them, launches it, and copies what is fetched. The
/// graph's other actors get no message; `actor_graph::start` knows that they
/// were left out.
///
/// Steps of both ways never overlap.
///
/// Thread rule: the executor's thread, unless noted otherwise.
class captured_steps {
public:
  /// How a step runs.
  enum class way : std::uint8_t {
    by_actors,
    recorded, ///< by actors that record, then launched
    launched,
  };

  struct parts {
    actor_graph* graph = nullptr;
    device* on = nullptr;
    scope* parameters = nullptr; ///< of the device
    recorder* trace = nullptr;
    std::vector<std::string> feeds; ///< of the program
  };

  /// Why no step of such an executor can be captured; empty if steps can be. A
  /// device that records nothing has no reason: nobody would expect it.
  static std::string obstacle(const executor_options& options,
                              const graph::ssa_graph& g);

  /// Everything that `p` points to must outlive the object. Steps must have
  /// ended when it is destroyed.
  explicit captured_steps(parts p);
  ~captured_steps();

  /// How the next step runs. If it is not the way of the step before, that one
  /// and all earlier ones must end first, and then `change_to` be called.
  way choose(const feed_map& feeds, std::span<const std::string> fetches);
  bool is_change(way next) const noexcept {
    return next != present_ || is_stale_;
  }
  void change_to(way next);

  ///@{
  /// The course of a recording, while no other step runs: `begin` after the
  /// feeds are in place; then the actors run the step, whose end calls
  /// `step_recorded` on any thread; `end` when they are idle. Both return false
  /// if the step cannot be captured: it then runs by actors, and so do all
  /// later ones. `end` throws error(cancelled) if the step was cancelled.
  bool begin(const step_state& step);
  bool is_recording() const noexcept {
    return records_.load(std::memory_order_acquire);
  }
  void step_recorded() noexcept;
  void wait_until_recorded() const { records_.wait(true); }
  bool end(step_state& step);
  ///@}

  /// Finds parameters that others have replaced, while no step runs. Returns
  /// false if one has another shape: the step then runs by actors.
  bool look_at_parameters();
  /// Lets the step be launched. Its end is the graph's `step_ended`.
  void launch(step_state& step);
  /// Called when a step has failed: the recording is not used further.
  void step_failed() noexcept;

  /// Number of steps that were launched.
  std::uint64_t launched() const noexcept { return launched_; }
  /// Number of recordings that actors made.
  std::uint64_t recordings() const noexcept { return recordings_; }
  /// Why steps are not captured, in words; empty: they are, or none has tried.
  const std::string& reason() const noexcept { return reason_; }

private:
  class launched_step;
  /// What a recording is for.
  struct form {
    struct feed {
      std::string name;
      shape dims;
      dtype type;
    };
    std::vector<feed> feeds;
    std::vector<std::string> fetches;

    bool is_of(const feed_map& fed, std::span<const std::string> fetched) const;
    void set(const feed_map& fed, std::span<const std::string> fetched);
  };
  /// A value that the recording reads and writes where it lies.
  struct parameter {
    std::string name;
    variable* place;
    tensor value;
  };
  /// A fed value that it reads. Its place depends on the step.
  struct fed_value {
    std::string name;
    tensor value;
  };

  void drop() noexcept;
  bool refuse(std::string why);
  variable* place_of(const fed_value& fed, const step_state& step) const;
  void keep_parameters();
  void keep_feeds(const step_state& step);
  std::vector<step_recording::value_copy> put_back_parameters();
  void find_sources(step_state& step);
  void copy_replaced();

  parts parts_;
  stream_actor& origin_;
  arena host_{make_host_memory_source()};
  std::vector<std::unique_ptr<launched_step>> steps_; // by slot
  std::vector<parameter> parameters_;
  form latest_;            // of the last step that ran by actors
  std::uint32_t same_ = 0; // how many such steps in a row
  way present_ = way::by_actors;
  bool is_stale_ = false; // the recording is to be dropped
  std::string reason_;
  std::uint64_t launched_ = 0;
  std::uint64_t recordings_ = 0;

  // Set while a recording is made: released by the thread that ends its step,
  // acquired by the executor's.
  std::atomic<bool> records_{false};

  // The recording, and what belongs to it. Constant while steps are launched.
  form form_;
  std::vector<fed_value> feeds_;
  std::vector<tensor> sources_;      // by fetch; without memory: not fetched
  std::vector<parameter*> replaced_; // by others, since the last step
  std::unique_ptr<step_recording> recording_; // null: none
};

} // namespace troupe::actors
