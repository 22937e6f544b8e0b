// SPDX-License-Identifier: Apache-2.0
// Texts that say where a process belongs: variables of launchers, the epoch of
// an elastic job, descriptions of a run, addresses.

#include "fuzz/fuzz_target.hpp"

#include <support/files.hpp>
#include <troupe/actors/remote/run_description.hpp>
#include <troupe/base/net/socket_address.hpp>
#include <troupe/comm/job_epoch.hpp>
#include <troupe/comm/rank_environment.hpp>

#include <algorithm>
#include <map>
#include <optional>

namespace troupe::fuzz {

namespace {

std::string_view take_until(std::string_view& text, char end) {
  const auto part = text.substr(0, text.find(end));
  text.remove_prefix(std::min(part.size() + 1, text.size()));
  return part;
}

// -- variables ----------------------------------------------------------------

/// Lines of NAME=VALUE.
comm::environment variables_in(std::string_view text) {
  std::map<std::string, std::string> all;
  while (!text.empty()) {
    auto value = take_until(text, '\n');
    const auto name = take_until(value, '=');
    all.emplace(name, value);
  }
  return {
    .value = [all](const std::string& name) -> std::optional<std::string> {
      const auto found = all.find(name);
      return found == all.end() ? std::nullopt : std::optional(found->second);
    },
    .process_that_set =
      [](const std::string& name) { return "who-set-" + name; }};
}

/// A job's name becomes that of a file.
bool is_file_name(const std::string& name) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyz"
                                     "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  return !name.empty() && name.size() <= 64 && name.front() != '.'
         && name.find_first_not_of(plain) == name.npos;
}

void check_variables(std::string_view text) {
  const auto found = comm::find_rank(variables_in(text));
  if (!found)
    return;
  if (found->rank >= found->size || found->local_rank >= found->local_size
      || found->local_size > found->size)
    fail("a rank that its job does not have");
  if (!is_file_name(found->job))
    fail("a job whose name is no file's: " + found->job);
  if (found->address.empty() != (found->port == 0))
    fail("half an address");
}

// -- the others ---------------------------------------------------------------

void check_epoch(std::string_view text) {
  static const test::temporary_folder folder;
  const auto path = folder.path().string();
  std::ofstream(folder / "epoch", std::ios::binary) << text;
  const auto read = comm::read_epoch(path);
  if (!read)
    fail("an epoch that is not there");
  comm::write_epoch(path, *read);
  if (comm::read_epoch(path) != read)
    fail("an epoch changes on its way");
}

/// @param text two descriptions, with a form feed between
void check_descriptions(std::string_view text) {
  constexpr std::size_t longest = 1000;
  const std::string one{take_until(text, '\f')}, other{text};
  const auto difference = actors::first_difference(one, other, 1);
  if (difference.find('\n') != difference.npos || difference.size() > longest)
    fail("a difference that is too long for an error");
  if (difference.empty() != actors::first_difference(other, one, 1).empty())
    fail("a difference that only one process sees");
  if (!actors::first_difference(one, one, 1).empty())
    fail("a description that differs from itself");
}

void check_address(std::string_view text) {
  const auto figures = parse_loopback(std::string{text}, 1).figures();
  if (parse_loopback(figures, 1).figures() != figures)
    fail("an address changes on its way");
}

} // namespace

// A line is a value in a map.
memory_allowance allowance() {
  return {.per_byte = 256};
}

void run_target(std::string_view bytes) {
  accept_only({errc::invalid_argument}, [&] { check_variables(bytes); });
  accept_only({errc::bad_file}, [&] { check_epoch(bytes); });
  accept_only({errc::invalid_argument}, [&] { check_address(bytes); });
  check_descriptions(bytes);
}

} // namespace troupe::fuzz
