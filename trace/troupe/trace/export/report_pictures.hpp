// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/trace/export/report_numbers.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace troupe::trace {

// Pictures of a report, as SVG elements. Colours come from classes, so that the
// page's style chooses them.

/// `text` as text of a page or an attribute's value.
std::string html_text(std::string_view text);
/// "12.3 ms", with a unit that fits.
std::string shown_time(std::uint64_t ns);
/// "3.2 MiB".
std::string shown_bytes(std::uint64_t bytes);

/// A square in the colour that a type of op has in `timeline_picture`.
std::string color_key(const report_numbers& numbers, std::string_view type);
/// The times of all steps.
std::string steps_picture(const report_numbers& numbers);
/// What ran in the step of median length. Requires that there is one.
std::string timeline_picture(const report_numbers& numbers,
                             const graph_info& graph);
/// Memory over time.
///
/// @param most bytes of the device
std::string memory_picture(const std::vector<memory_point>& curve,
                           std::uint64_t most, std::uint64_t end);

} // namespace troupe::trace
