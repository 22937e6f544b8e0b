// SPDX-License-Identifier: Apache-2.0
#include <troupe/dashboard/source/event_source.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/quoted_name.hpp>

#include <array>
#include <string_view>

namespace troupe::dashboard {

namespace {

struct command_word {
  std::string_view word;
  command what;
};

constexpr std::array words{command_word{"pause", command::pause},
                           command_word{"resume", command::resume},
                           command_word{"step", command::step},
                           command_word{"slow", command::slow},
                           command_word{"rewind", command::rewind},
                           command_word{"dump", command::dump}};

} // namespace

command parse_command(std::string_view word) {
  for (const auto& w : words)
    if (w.word == word)
      return w.what;
  throw error(errc::invalid_argument,
              "no command of a dashboard: " + quoted_name(word));
}

} // namespace troupe::dashboard
