// SPDX-License-Identifier: Apache-2.0
#include <troupe/trace/export/report_pictures.hpp>

#include <troupe/base/quoted_name.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <tuple>
#include <utility>

namespace troupe::trace {

namespace {

constexpr double picture_width = 1000;
constexpr double label_width = 110; ///< of the names of tracks
constexpr double row_height = 22;
/// More would make the page slow. The longest slices are shown.
constexpr std::size_t most_slices = 5000;
constexpr std::size_t most_bars = 300;
/// Colours of the style. The types that take most time get one each, others
/// share the last one.
constexpr std::size_t colors = 8;

template <class... Value>
std::string formatted(const char* format, Value... values) {
  std::array<char, 256> text{};
  std::snprintf(text.data(), text.size(), format, values...);
  return text.data();
}

std::string shown_number(double value, const char* unit) {
  return formatted(value < 10    ? "%.2f %s"
                   : value < 100 ? "%.1f %s"
                                 : "%.0f %s",
                   value, unit);
}

std::string open_svg(double height, const std::string& label) {
  return formatted("<svg viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"",
                   picture_width, height)
         + html_text(label) + "\">\n";
}

std::string rectangle(double x, double y, double width, double height,
                      const std::string& css_class, const std::string& title) {
  return formatted("<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" "
                   "height=\"%.2f\" class=\"",
                   x, y, std::max(width, 0.4), height)
         + css_class + "\"><title>" + html_text(title) + "</title></rect>\n";
}

std::string label(double x, double y, std::string_view css_class,
                  std::string_view text) {
  return formatted("<text x=\"%.2f\" y=\"%.2f\" class=\"", x, y)
         + std::string{css_class} + "\">" + html_text(text) + "</text>\n";
}

/// Begins of names, as wide as their place.
std::string fitting(const std::string& name, double width) {
  constexpr double letter = 6.2;
  const auto letters =
    static_cast<std::size_t>(std::max(width - 4, 0.0) / letter);
  if (letters < 3)
    return "";
  return name.size() <= letters ? name : name.substr(0, letters - 1) + "…";
}

std::string color_class(const report_numbers& numbers, std::string_view type) {
  const auto& types = numbers.summary.types;
  const auto found = std::ranges::find(types, type, &type_time::type);
  const auto place = static_cast<std::size_t>(found - types.begin());
  return "c" + std::to_string(std::min(place, colors - 1));
}

std::string title_of(const slice& s, const graph_info& graph) {
  return std::string{to_string(s.kind)} + " " + graph.handles[s.op].name
         + ", step " + std::to_string(s.step) + ", "
         + shown_time(s.end - s.begin);
}

/// A row of the picture: of a process, a track.
using row_key = std::tuple<std::size_t, track_kind, std::uint32_t>;
using row_numbers = std::map<row_key, double>;

row_key row_of(const process_slice& s) {
  return {s.process, s.track.kind, s.track.number};
}

row_numbers rows_of(const std::vector<process_slice>& slices) {
  row_numbers rows;
  for (auto& s : slices)
    rows[row_of(s)] = 0;
  double next = 0;
  for (auto& [track, row] : rows)
    row = next++;
  return rows;
}

std::string slice_picture(const slice& s, double row,
                          const report_numbers& numbers,
                          const graph_info& graph) {
  const auto& shown = numbers.median_interval;
  const auto scale = (picture_width - label_width)
                     / static_cast<double>(shown.end - shown.begin);
  const auto begin = std::max(s.begin, shown.begin);
  const auto end = std::min(s.end, shown.end);
  const auto x = label_width + static_cast<double>(begin - shown.begin) * scale;
  const auto width = static_cast<double>(end - begin) * scale;
  // Merges lie within runs, and helps may.
  const bool is_inner = s.kind == slice_kind::merge;
  const auto y = row * row_height + (is_inner ? 13.0 : 1.0);
  const auto& type = graph.handles[s.op].type;
  auto color = color_class(numbers, type);
  if (s.step != numbers.median_step->step)
    color += " faint";
  auto text = rectangle(x, y, width, is_inner ? 7 : row_height - 2, color,
                        title_of(s, graph));
  if (const auto name = fitting(type, width); !is_inner && !name.empty())
    text += label(x + 3, y + 14, "name", name);
  return text;
}

/// Of many slices, the longest ones in their order.
std::vector<process_slice> longest_of(std::vector<process_slice> slices) {
  if (slices.size() <= most_slices)
    return slices;
  std::vector<std::uint64_t> lengths;
  for (auto& s : slices)
    lengths.push_back(s.end - s.begin);
  const auto limit = lengths.begin() + most_slices;
  std::ranges::nth_element(lengths, limit, std::ranges::greater{});
  std::erase_if(slices, [least = *limit](const slice& s) {
    return s.end - s.begin <= least;
  });
  return slices;
}

} // namespace

std::string html_text(std::string_view text) {
  std::string escaped;
  for (const char c : one_line(text))
    switch (c) {
    case '&': escaped += "&amp;"; break;
    case '<': escaped += "&lt;"; break;
    case '>': escaped += "&gt;"; break;
    case '"': escaped += "&quot;"; break;
    case '\'': escaped += "&#39;"; break;
    default: escaped += c;
    }
  return escaped;
}

std::string shown_time(std::uint64_t ns) {
  const auto value = static_cast<double>(ns);
  if (value < 1e3)
    return std::to_string(ns) + " ns";
  if (value < 1e6)
    return shown_number(value / 1e3, "µs");
  return value < 1e9 ? shown_number(value / 1e6, "ms")
                     : shown_number(value / 1e9, "s");
}

std::string shown_bytes(std::uint64_t bytes) {
  constexpr std::array<const char*, 5> units{"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < units.size(); ++unit)
    value /= 1024;
  return unit == 0 ? std::to_string(bytes) + " B"
                   : shown_number(value, units[unit]);
}

std::string color_key(const report_numbers& numbers, std::string_view type) {
  return "<svg class=\"key\" viewBox=\"0 0 10 10\" aria-hidden=\"true\"><rect "
         "width=\"10\" height=\"10\" class=\""
         + color_class(numbers, type) + "\"/></svg> ";
}

std::string steps_picture(const report_numbers& numbers) {
  constexpr double height = 160;
  const auto steps = numbers.all.steps();
  const auto per_bar = (steps.size() + most_bars - 1) / most_bars;
  const auto bars = (steps.size() + per_bar - 1) / per_bar;
  const auto longest = std::ranges::max(steps, {}, &step_times::ns).ns();
  const auto width = picture_width / static_cast<double>(bars);
  auto text = open_svg(height, "times of the steps");
  for (std::size_t bar = 0; bar < bars; ++bar) {
    const auto first =
      steps.begin() + static_cast<std::ptrdiff_t>(bar * per_bar);
    const auto last =
      first
      + std::min<std::ptrdiff_t>(std::ssize(steps) - (first - steps.begin()),
                                 static_cast<std::ptrdiff_t>(per_bar));
    const auto& slowest =
      *std::max_element(first, last, [](const auto& a, const auto& b) {
        return a.ns() < b.ns();
      });
    const auto tall =
      (height - 4) * static_cast<double>(slowest.ns())
      / static_cast<double>(std::max<std::uint64_t>(longest, 1));
    text += rectangle(
      static_cast<double>(bar) * width, height - tall, width * 0.85, tall, "c0",
      "step " + std::to_string(slowest.step) + ": " + shown_time(slowest.ns()));
  }
  return text + "</svg>\n";
}

std::string timeline_picture(const report_numbers& numbers,
                             const graph_info& graph) {
  const auto shown = longest_of(numbers.in_median_step);
  const auto rows = rows_of(shown);
  auto text =
    open_svg(row_height * static_cast<double>(rows.size()) + 2,
             "what ran in step " + std::to_string(numbers.median_step->step));
  const bool is_job = numbers.all.processes() > 1;
  for (auto& [key, row] : rows) {
    const auto& [process, kind, number] = key;
    text += label(0, row * row_height + 15, "row",
                  (is_job ? std::to_string(process) + ": " : std::string{})
                    + to_string(track_id{kind, number}));
  }
  for (auto& s : shown)
    text += slice_picture(s, rows.at(row_of(s)), numbers, graph);
  return text + "</svg>\n";
}

std::string memory_picture(const std::vector<memory_point>& curve,
                           std::uint64_t most, std::uint64_t end) {
  constexpr double height = 120;
  const auto x_scale =
    picture_width / static_cast<double>(std::max<std::uint64_t>(end, 1));
  const auto y_scale =
    (height - 4) / static_cast<double>(std::max<std::uint64_t>(most, 1));
  auto text = open_svg(height, "memory of temporaries over time")
              + "<polyline class=\"line\" points=\"";
  for (auto& p : curve)
    text += formatted("%.1f,%.1f ", static_cast<double>(p.time) * x_scale,
                      height - 2 - static_cast<double>(p.bytes) * y_scale);
  return text + "\"/>\n</svg>\n";
}

} // namespace troupe::trace
