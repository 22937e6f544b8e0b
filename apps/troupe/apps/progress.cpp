// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/progress.hpp>

#include <troupe/base/clock.hpp>
#include <troupe/base/quoted_name.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

namespace troupe::apps {

namespace {

constexpr std::uint64_t bar_interval_ns = 100'000'000;
constexpr std::uint64_t line_interval_ns = 10'000'000'000;
constexpr int bar_cells = 30;

/// "0:07", "12:34" or "2:03:04".
std::string to_clock(double seconds) {
  const auto whole = static_cast<unsigned long long>(std::ceil(seconds));
  std::array<char, 40> text{};
  if (whole < 3600)
    std::snprintf(text.data(), text.size(), "%llu:%02llu", whole / 60,
                  whole % 60);
  else
    std::snprintf(text.data(), text.size(), "%llu:%02llu:%02llu", whole / 3600,
                  whole / 60 % 60, whole % 60);
  return text.data();
}

std::string numbers(const progress_state& state) {
  std::array<char, 120> text{};
  std::snprintf(text.data(), text.size(),
                "%llu/%llu  loss %.4f  %.0f samples/s",
                static_cast<unsigned long long>(state.step),
                static_cast<unsigned long long>(state.steps), state.loss,
                state.samples_per_s);
  std::string all = text.data();
  if (state.seconds_left)
    all += "  " + to_clock(*state.seconds_left) + " left";
  return all;
}

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
}

} // namespace

std::string progress_bar(const progress_state& state, int cells) {
  const auto total = std::max<std::uint64_t>(1, state.steps);
  const auto filled = static_cast<std::size_t>(
    std::min(state.step, total) * static_cast<std::uint64_t>(cells) / total);
  std::string bar(filled, '=');
  if (bar.size() < static_cast<std::size_t>(cells))
    bar += '>';
  bar.resize(static_cast<std::size_t>(cells), ' ');
  return "[" + bar + "] " + numbers(state);
}

std::optional<double> remaining_time::after(std::uint64_t now_ns,
                                            std::uint64_t step,
                                            std::uint64_t steps) {
  if (!first_ns_) {
    first_ns_ = now_ns;
    first_step_ = step;
  }
  if (step <= first_step_ || steps < step)
    return std::nullopt;
  const double per_step = static_cast<double>(now_ns - *first_ns_) * 1e-9
                          / static_cast<double>(step - first_step_);
  return per_step * static_cast<double>(steps - step);
}

progress::progress()
  : progress(isatty(STDERR_FILENO) == 1 ? form::bar : form::lines) {}

progress::progress(form shown) : form_(shown), last_ns_(now_ns()) {}

progress::~progress() {
  clear();
}

void progress::clear() {
  if (std::exchange(drawn_, false))
    print("\r\033[K");
}

void progress::update(progress_state state) {
  if (form_ == form::nothing)
    return;
  const auto terminal = form_ == form::bar;
  const auto now = now_ns();
  state.seconds_left = remaining_.after(now, state.step, state.steps);
  if (now - last_ns_ < (terminal ? bar_interval_ns : line_interval_ns))
    return;
  last_ns_ = now;
  if (terminal)
    print("\r" + progress_bar(state, bar_cells) + "\033[K");
  else
    print("step " + numbers(state) + "\n");
  drawn_ = terminal;
}

void progress::note(std::string_view line) {
  clear();
  if (form_ != form::nothing)
    print(one_line(line) + "\n");
}

} // namespace troupe::apps
