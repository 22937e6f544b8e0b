// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/trace/stacks_text.hpp>

#include <troupe/apps/trace/traced_run.hpp>
#include <troupe/base/quoted_name.hpp>

#include <cstddef>

namespace troupe::apps {

namespace {

/// A template's name can take several screens.
constexpr std::size_t most_characters = 120;

std::string frame_text(const code_place& frame) {
  auto place = frame;
  if (place.symbol.size() > most_characters)
    place.symbol = place.symbol.substr(0, most_characters) + "...";
  return "      " + one_line(to_string(place)) + "\n";
}

std::string stack_text(const trace::process_trace& part,
                       const trace::worker_stack& s) {
  auto text = "  worker " + std::to_string(s.worker) + ", thread "
              + std::to_string(s.thread) + (s.is_help ? ", helped " : ", ran ")
              + one_line(std::string{part.name_of(s.op)}) + ", step "
              + std::to_string(s.step) + ", for "
              + time_text(static_cast<double>(s.taken_ns - s.since_ns)) + "\n";
  if (!s.missing.empty())
    text += "      no stack: " + one_line(s.missing) + "\n";
  for (auto& f : s.frames)
    text += frame_text(f);
  return text;
}

nlohmann::ordered_json frame_json(const code_place& f) {
  nlohmann::ordered_json made{{"text", to_string(f)}};
  if (!f.symbol.empty()) {
    made["symbol"] = f.symbol;
    made["symbol_offset"] = f.symbol_offset;
  }
  if (!f.module.empty())
    made["module"] = f.module;
  made["module_offset"] = f.module_offset;
  return made;
}

} // namespace

std::string stacks_text(std::span<const trace::process_trace> parts) {
  std::string text;
  for (auto& part : parts) {
    if (part.stacks.empty())
      continue;
    text += "\nbusy workers";
    if (parts.size() > 1)
      text += " of process " + std::to_string(part.run.process);
    text += ", with their call stacks, innermost first\n";
    for (auto& s : part.stacks)
      text += stack_text(part, s);
  }
  return text;
}

nlohmann::ordered_json stacks_json(const trace::process_trace& part) {
  auto all = nlohmann::ordered_json::array();
  for (auto& s : part.stacks) {
    auto frames = nlohmann::ordered_json::array();
    for (auto& f : s.frames)
      frames.push_back(frame_json(f));
    all.push_back({{"worker", s.worker},
                   {"thread", s.thread},
                   {"op", part.name_of(s.op)},
                   {"step", s.step},
                   {"help", s.is_help},
                   {"since_ns", s.since_ns},
                   {"ran_ns", s.taken_ns - s.since_ns},
                   {"missing", s.missing},
                   {"frames", frames}});
  }
  return all;
}

} // namespace troupe::apps
