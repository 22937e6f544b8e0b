// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/wired_actor.hpp>

#include <atomic>
#include <memory>

namespace troupe::actors {

/// One version of a variable on one device. It has at most one generator, so
/// it counts nothing: when it hears that its value is ready it tells all ops
/// that read it, at once and in the sender's thread. A fed variable hears it
/// from the executor, a mirror of a variable elsewhere from another process.
class var_actor final : public wired_actor {
public:
  /// @param readers ops that read it here
  var_actor(caf::actor_config& cfg, graph_context& graph, handle_id id,
            std::string name, storage& value, std::size_t readers);

  void arrive(std::uint32_t in_edge, const readiness& r) override;
  std::uint32_t add_in_edge(stream_actor* producer, storage* value,
                            std::uint32_t distance) override;
  void mark_remote(std::uint32_t in_edge) override;
  std::string describe() const override;

private:
  bool has_in_edge(std::uint32_t) const override { return true; }
  bool is_remote(std::uint32_t) const override { return claimed_ != nullptr; }
  bool claim(std::uint32_t in_edge, std::uint32_t slot) override;
  void take_value(std::uint32_t in_edge, std::uint32_t slot,
                  const std::string& bytes) override;

  storage& value_;
  std::size_t readers_;
  // Per slot: the message from another process has come. Null if the generator
  // is in this one.
  std::unique_ptr<std::atomic<bool>[]> claimed_;
};

} // namespace troupe::actors
