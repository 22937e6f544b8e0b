// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/trace/trace.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::dashboard {

/// Parts of a training step.
enum class step_phase : std::uint8_t { forward, backward, update };

/// Handles that a picture can draw as one: those of a layer on a device, apart
/// for each part of a step.
struct handle_group {
  std::string layer; ///< "fc_0"
  step_phase phase = step_phase::forward;
  std::uint32_t device = 0;
  std::vector<handle_id> handles; ///< ascending

  /// "fc_0", "fc_0 backward", "fc_0 update".
  std::string name() const;
};

/// Groups all handles. An op's layer is its name scope ("encoder/fc") if it has
/// one. Otherwise it is that of its outputs, or else of its inputs. A
/// variable's layer is the scope of the op that writes it in the forward pass,
/// or else of those that read it there; without one, it is its name up to the
/// first dot, as layers name their variables ("conv2d_3.w_0"). What writes
/// gradients is backward; what only reads them is an update, and belongs to the
/// layer of its parameter whatever its own scope.
std::vector<handle_group> group_handles(const trace::graph_info& graph);

} // namespace troupe::dashboard
