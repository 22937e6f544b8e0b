// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/results/loss_curve.hpp>

#include <troupe/base/quoted_name.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

namespace troupe::apps {

namespace {

constexpr double width = 720, height = 420;
constexpr double left = 64, right = 24, top = 48, bottom = 56;
constexpr std::size_t columns = 600;

using point = std::pair<double, double>;

struct range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void include(double value) {
    if (!std::isfinite(value))
      return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return low > high; }
};

std::string number(double value, const char* format = "%.2f") {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

/// Escapes text for XML. `one_line` replaces control characters, which XML does
/// not allow.
std::string escape(const std::string& text) {
  std::string out;
  for (char c : one_line(text)) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else
      out += c;
  }
  return out;
}

/// The smallest number of the form 1, 2 or 5 times a power of ten that divides
/// `span` into at most `most` pieces.
double tick_distance(double span, int most) {
  const double power = std::pow(10.0, std::floor(std::log10(span / most)));
  for (double factor : {1.0, 2.0, 5.0})
    if (span / (factor * power) <= most)
      return factor * power;
  return 10 * power;
}

/// Maps steps and losses to positions on the page.
struct plot_area {
  double last_step;
  double low, high;

  double x(double step) const {
    return left + (width - left - right) * step / last_step;
  }
  double y(double loss) const {
    return height - bottom
           - (height - top - bottom) * (loss - low) / (high - low);
  }
};

plot_area make_area(const loss_history& history) {
  range losses;
  for (double loss : history.steps)
    losses.include(loss);
  if (losses.empty())
    losses = {0, 1};
  if (losses.low > 0 && losses.low < 0.5 * losses.high)
    losses.low = 0;
  const double span = std::max(losses.high - losses.low, 1e-6);
  const double tick = tick_distance(span, 6);
  return {std::max<double>(1, static_cast<double>(history.steps.size())),
          std::floor(losses.low / tick) * tick,
          std::max(std::ceil(losses.high / tick), losses.low / tick + 1)
            * tick};
}

std::string text_at(double x, double y, const char* anchor,
                    const std::string& text, const char* more = "") {
  return "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" text-anchor=\""
         + anchor + "\" " + more + ">" + escape(text) + "</text>\n";
}

std::string line(double x1, double y1, double x2, double y2,
                 const char* colour) {
  return "<line x1=\"" + number(x1) + "\" y1=\"" + number(y1) + "\" x2=\""
         + number(x2) + "\" y2=\"" + number(y2) + "\" stroke=\"" + colour
         + "\"/>\n";
}

std::string draw_axes(const plot_area& area) {
  std::string out;
  const double loss_tick = tick_distance(area.high - area.low, 6);
  for (double loss = area.low; loss <= area.high + loss_tick / 2;
       loss += loss_tick) {
    out += line(left, area.y(loss), width - right, area.y(loss), "#e4e4e4");
    out += text_at(left - 8, area.y(loss) + 4, "end", number(loss, "%.4g"));
  }
  const double step_tick = std::max(1.0, tick_distance(area.last_step, 8));
  for (double step = 0; step <= area.last_step; step += step_tick) {
    out += line(area.x(step), height - bottom, area.x(step),
                height - bottom + 5, "#555");
    out += text_at(area.x(step), height - bottom + 20, "middle",
                   number(step, "%.0f"));
  }
  out += line(left, height - bottom, width - right, height - bottom, "#555");
  out += text_at((left + width - right) / 2, height - 14, "middle", "step");
  out += text_at(18, (top + height - bottom) / 2, "middle", "loss",
                 "transform=\"rotate(-90 18 206)\"");
  return out;
}

/// Keeps at most two points per column: its lowest and its highest loss.
std::vector<point> thin(const std::vector<double>& losses) {
  std::vector<point> points;
  const std::size_t stride =
    std::max<std::size_t>(1, losses.size() * 2 / columns);
  for (std::size_t begin = 0; begin < losses.size(); begin += stride) {
    const auto first = losses.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto last =
      first
      + static_cast<std::ptrdiff_t>(std::min(stride, losses.size() - begin));
    auto [low, high] = std::minmax_element(first, last);
    if (low > high)
      std::swap(low, high);
    for (auto at : {low, high})
      points.emplace_back(static_cast<double>(at - losses.begin()) + 1, *at);
    if (low == high)
      points.pop_back();
  }
  return points;
}

std::string draw_line(const plot_area& area, const std::vector<point>& points,
                      const char* style) {
  std::string path;
  bool pen_up = true;
  for (auto [step, loss] : points) {
    if (std::isfinite(loss))
      path += (pen_up ? "M" : "L") + number(area.x(step)) + " "
              + number(area.y(loss)) + " ";
    pen_up = !std::isfinite(loss);
  }
  return "<path d=\"" + path + "\" fill=\"none\" " + style + "/>\n";
}

/// A line of one point would be invisible.
std::string draw_lone_point(const plot_area& area,
                            const std::vector<double>& losses) {
  if (losses.size() != 1 || !std::isfinite(losses[0]))
    return "";
  return "<circle cx=\"" + number(area.x(1)) + "\" cy=\""
         + number(area.y(losses[0])) + "\" r=\"3\" fill=\"#7fb1dd\"/>\n";
}

std::string draw_epochs(const plot_area& area, const loss_history& history) {
  std::vector<point> means;
  std::string dots;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < history.epochs.size(); ++i) {
    const double middle =
      static_cast<double>(begin + history.epoch_ends[i]) / 2;
    begin = history.epoch_ends[i];
    means.emplace_back(middle, history.epochs[i]);
    if (std::isfinite(history.epochs[i]) && history.epochs.size() <= 60)
      dots += "<circle cx=\"" + number(area.x(middle)) + "\" cy=\""
              + number(area.y(history.epochs[i]))
              + "\" r=\"3\" fill=\"#0b559f\"/>\n";
  }
  return draw_line(area, means, "stroke=\"#0b559f\" stroke-width=\"2\"") + dots;
}

std::string draw_legend() {
  const double x = width - right - 150;
  return line(x, 34, x + 18, 34, "#7fb1dd")
         + text_at(x + 24, 38, "start", "step") + "<line x1=\"" + number(x + 62)
         + "\" y1=\"34\" x2=\"" + number(x + 80)
         + "\" y2=\"34\" stroke=\"#0b559f\" stroke-width=\"2\"/>\n"
         + text_at(x + 86, 38, "start", "epoch mean");
}

} // namespace

std::string draw_loss_curve(const loss_history& history,
                            const std::string& title) {
  const plot_area area = make_area(history);
  std::string out =
    "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 720 420\" "
    "width=\"720\" height=\"420\" font-family=\"sans-serif\" "
    "font-size=\"12\" fill=\"#333\">\n"
    "<rect width=\"720\" height=\"420\" fill=\"white\"/>\n";
  out += text_at(left, 26, "start", title, "font-size=\"15\"");
  out += draw_legend();
  out += draw_axes(area);
  out += draw_line(area, thin(history.steps),
                   "stroke=\"#7fb1dd\" stroke-width=\"1\"");
  out += draw_lone_point(area, history.steps);
  out += draw_epochs(area, history);
  return out + "</svg>\n";
}

} // namespace troupe::apps
