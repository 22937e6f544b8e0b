// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/trace/trace.hpp>

#include <nlohmann/json.hpp>

#include <span>
#include <string>

namespace troupe::apps {

/// The call stacks of busy workers, for `troupe trace summary`; empty if there
/// are none. Long names of functions are cut.
std::string stacks_text(std::span<const trace::process_trace> parts);
/// The same of one process, whole.
nlohmann::ordered_json stacks_json(const trace::process_trace& part);

} // namespace troupe::apps
