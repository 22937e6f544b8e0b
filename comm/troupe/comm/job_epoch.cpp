// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/job_epoch.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>

namespace troupe::comm {

namespace {

// No job is larger. Limits what is read from a file.
constexpr std::size_t most_members = 1 << 16;

constexpr std::string_view ended_prefix = "ended-", step_prefix = "step-done",
                           state_prefix = "state-", all_done = "all-done";

std::string file_in(const std::string& folder) {
  return folder + "/epoch";
}

std::string ended_file(const std::string& folder, std::uint64_t epoch,
                       std::uint64_t member) {
  return folder + "/" + std::string(ended_prefix) + std::to_string(epoch) + "-"
         + std::to_string(member);
}

std::string step_file(const std::string& folder, std::uint64_t epoch) {
  return folder + "/" + std::string(step_prefix) + "-" + std::to_string(epoch);
}

std::string state_file(const std::string& folder, std::uint64_t member) {
  return folder + "/" + std::string(state_prefix) + std::to_string(member);
}

std::string done_file(const std::string& folder) {
  return folder + "/" + std::string(all_done);
}

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

[[noreturn]] void fail(const std::string& path) {
  throw error(errc::io_failure, "cannot write " + path + ": "
                                  + std::system_category().message(errno));
}

/// Makes an empty file.
void tell(const std::string& folder, const std::string& path) {
  if (!std::ofstream{path} && exists(folder))
    fail(path);
}

bool is_told(std::string_view word) {
  return (word.starts_with(ended_prefix) || word.starts_with(step_prefix)
          || word.starts_with(state_prefix) || word == all_done)
         && word.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-")
              == word.npos;
}

/// Reads the members and where they are. False if the text is something else.
bool read_members(std::istream& in, std::size_t members, job_epoch& epoch) {
  for (std::size_t i = 0; in && i < members; ++i) {
    std::size_t host = 0;
    epoch.members.push_back(0);
    in >> epoch.members.back() >> host;
    epoch.hosts.push_back(host);
  }
  return in && !epoch.members.empty();
}

/// A line of what only ranks on several hosts need. False if it is something
/// else.
bool read_line(const std::string& text, job_epoch& epoch) {
  std::istringstream in{text};
  std::string kind;
  in >> kind;
  if (kind == "at") {
    in >> epoch.address >> epoch.port;
  } else if (kind == "site") {
    auto& site = epoch.sites.emplace_back();
    in >> site.host >> site.folder >> site.address;
  } else if (kind == "origin") {
    in >> epoch.origin;
  } else {
    return false;
  }
  return !in.fail() && (in >> std::ws).eof();
}

bool read_rest(std::istream& in, job_epoch& epoch) {
  std::string line;
  std::getline(in, line); // of the last member
  while (std::getline(in, line))
    if (!read_line(line, epoch))
      return false;
  return epoch.sites.empty()
         || std::ranges::all_of(epoch.hosts, [&](std::size_t host) {
              return host < epoch.sites.size();
            });
}

} // namespace

std::optional<std::size_t> job_epoch::rank_of(std::uint64_t member) const {
  const auto found = std::ranges::find(members, member);
  if (found == members.end())
    return std::nullopt;
  return static_cast<std::size_t>(found - members.begin());
}

bool job_epoch::is_on_several_hosts() const {
  return std::ranges::adjacent_find(hosts, std::ranges::not_equal_to{})
         != hosts.end();
}

std::string to_text(const job_epoch& epoch) {
  std::ostringstream out;
  out << "troupe epoch " << epoch.number << " of " << epoch.members.size()
      << (epoch.has_only_newcomers ? " new\n" : " known\n");
  for (std::size_t rank = 0; rank < epoch.members.size(); ++rank)
    out << epoch.members[rank] << ' ' << epoch.host_of(rank) << '\n';
  if (!epoch.address.empty())
    out << "at " << epoch.address << ' ' << epoch.port << '\n';
  for (auto& site : epoch.sites)
    out << "site " << site.host << ' ' << site.folder << ' ' << site.address
        << '\n';
  if (!epoch.origin.empty())
    out << "origin " << epoch.origin << '\n';
  return out.str();
}

job_epoch parse_epoch(const std::string& text, const std::string& name) {
  std::istringstream in{text};
  job_epoch epoch;
  std::string troupe, word, of, kind;
  std::size_t members = 0;
  in >> troupe >> word >> epoch.number >> of >> members >> kind;
  epoch.has_only_newcomers = kind == "new";
  const bool is_epoch = in && troupe == "troupe" && word == "epoch"
                        && of == "of" && (kind == "new" || kind == "known")
                        && members <= most_members;
  if (!is_epoch || !read_members(in, members, epoch) || !read_rest(in, epoch))
    throw error(errc::bad_file, name + ": no epoch of a job");
  if (std::ranges::all_of(epoch.hosts, [](auto host) { return host == 0; }))
    epoch.hosts.clear();
  return epoch;
}

// Not flushed to the disk: the folder does not outlive the machine's run.
void write_epoch(const std::string& folder, const job_epoch& epoch) {
  const auto path = file_in(folder), next = path + ".next";
  if (std::ofstream out{next}; !(out << to_text(epoch)).flush())
    fail(next);
  if (std::rename(next.c_str(), path.c_str()) != 0)
    fail(path);
}

std::optional<job_epoch> read_epoch(const std::string& folder) {
  std::ifstream in{file_in(folder)};
  if (!in)
    return std::nullopt;
  std::ostringstream text;
  text << in.rdbuf();
  return parse_epoch(text.str(), file_in(folder));
}

std::string credentials_path(const std::string& folder, std::uint64_t epoch,
                             std::uint64_t member) {
  return folder + "/credentials-" + std::to_string(epoch) + "-"
         + std::to_string(member);
}

void tell_epoch_ended(const std::string& folder, std::uint64_t epoch,
                      std::uint64_t member) {
  tell(folder, ended_file(folder, epoch, member));
}

bool has_epoch_ended(const std::string& folder, std::uint64_t epoch,
                     std::uint64_t member) {
  return exists(ended_file(folder, epoch, member));
}

void tell_step_done(const std::string& folder, std::uint64_t epoch) {
  tell(folder, step_file(folder, epoch));
  tell(folder, folder + "/" + std::string(step_prefix));
}

bool has_done_step(const std::string& folder) {
  return exists(folder + "/" + std::string(step_prefix));
}

bool has_done_step(const std::string& folder, std::uint64_t epoch) {
  return exists(step_file(folder, epoch));
}

void note_state(const std::string& folder, std::uint64_t member) {
  tell(folder, state_file(folder, member));
}

bool has_state(const std::string& folder, std::uint64_t member) {
  return exists(state_file(folder, member));
}

void tell_all_done(const std::string& folder) {
  tell(folder, done_file(folder));
}

bool is_all_done(const std::string& folder) {
  return exists(done_file(folder));
}

std::vector<std::string> all_told(const std::string& folder) {
  std::vector<std::string> words;
  std::error_code ignored;
  for (auto& entry : std::filesystem::directory_iterator(folder, ignored))
    if (const auto word = entry.path().filename().string(); is_told(word))
      words.push_back(word);
  return words;
}

void repeat_told(const std::string& folder, const std::string& word) {
  if (is_told(word))
    tell(folder, folder + "/" + word);
}

} // namespace troupe::comm
