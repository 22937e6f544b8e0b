// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/trace/written_file.hpp>

#include <troupe/base/quoted_name.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <cstdio>
#include <filesystem>

namespace troupe::apps {

void print_written_file(const std::string& file, std::size_t events,
                        bool json) {
  std::error_code ignored;
  const std::uintmax_t bytes = std::filesystem::file_size(file, ignored);
  const nlohmann::ordered_json line{
    {"file", file}, {"bytes", bytes}, {"events", events}};
  const auto text =
    json ? line.dump(-1, ' ', false,
                     nlohmann::ordered_json::error_handler_t::replace)
         : one_line(file) + ": " + std::to_string(bytes) + " bytes, from "
             + std::to_string(events) + " events";
  std::printf("%s\n", text.c_str());
}

} // namespace troupe::apps
