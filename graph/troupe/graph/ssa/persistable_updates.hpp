// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/ssa_graph.hpp>

#include <cstddef>
#include <map>
#include <set>
#include <string_view>

namespace troupe::graph {

/// The persistable variables that a step updates, by name, and the devices on
/// which it does.
std::map<std::string_view, std::set<std::size_t>>
updating_devices(const ssa_graph& g);

/// The persistable variables that ops of the forward and backward pass write.
/// They are statistics of a device's own samples, such as the mean of a batch
/// norm, so their values differ between devices.
std::set<std::string_view> device_statistics(const ssa_graph& g);

} // namespace troupe::graph
