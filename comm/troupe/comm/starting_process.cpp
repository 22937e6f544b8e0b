// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/starting_process.hpp>

#include <fstream>
#include <iterator>
#include <sstream>

namespace troupe::comm {

namespace {

std::string read_of_process(const std::string& process, const char* file) {
  std::ifstream in("/proc/" + process + "/" + file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct process_start {
  std::string parent;
  std::string time; ///< in ticks since the boot
};

/// From /proc/PROCESS/stat. Empty if the process is gone.
process_start start_of(const std::string& process) {
  const auto text = read_of_process(process, "stat");
  const auto end_of_name = text.rfind(')'); // a name can have any characters
  if (end_of_name == text.npos)
    return {};
  std::istringstream in(text.substr(end_of_name + 1));
  const std::istream_iterator<std::string> words(in);
  process_start found;
  int field = 3; // see proc(5)
  for (auto word = words; word != std::istream_iterator<std::string>{};
       ++word, ++field) {
    if (field == 4)
      found.parent = *word;
    if (field == 22)
      found.time = *word;
  }
  return found;
}

/// The first process of a host has the parent 0.
bool is_none(const std::string& process) {
  return process.empty() || process == "0";
}

bool is_set(const std::string& variable, const std::string& process) {
  std::string entries(1, '\0');
  entries += read_of_process(process, "environ");
  return entries.find('\0' + variable + '=') != entries.npos;
}

} // namespace

std::string process_that_set(const std::string& variable, pid_t process) {
  auto ancestor = start_of(std::to_string(process)).parent;
  while (!is_none(ancestor) && is_set(variable, ancestor))
    ancestor = start_of(ancestor).parent;
  return is_none(ancestor) ? "" : ancestor + "." + start_of(ancestor).time;
}

} // namespace troupe::comm
