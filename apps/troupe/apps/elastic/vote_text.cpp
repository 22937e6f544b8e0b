// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/elastic/vote_text.hpp>

#include <troupe/base/error.hpp>

#include <cstddef>
#include <cstdint>
#include <sstream>

namespace troupe::apps {

namespace {

constexpr std::size_t longest_word = 256;
// A higher one could be followed by none.
constexpr std::uint64_t most_rounds = std::uint64_t{1} << 62;

/// The line "WORD ROUND FOLDER". False if it is something else.
bool read_ballot(std::istream& in, const std::string& word, ballot& by) {
  std::string line, is;
  if (!std::getline(in, line))
    return false;
  std::istringstream parts{line};
  return parts >> is >> by.round >> by.folder && is == word && is_ballot(by)
         && (parts >> std::ws).eof();
}

} // namespace

bool is_site_word(const std::string& text) {
  return !text.empty() && text.size() <= longest_word
         && text.find_first_of(" \t\r\n\v\f") == text.npos;
}

bool is_ballot(const ballot& by) {
  return by.round > 0 && by.round < most_rounds && is_site_word(by.folder);
}

std::string to_text(const vote_memory& votes) {
  std::ostringstream out;
  out << "troupe votes of " << votes.folder << '\n';
  if (votes.promised.round > 0)
    out << "promised " << votes.promised.round << ' ' << votes.promised.folder
        << '\n';
  if (votes.accepted)
    out << "accepted " << votes.accepted->by.round << ' '
        << votes.accepted->by.folder << '\n'
        << comm::to_text(votes.accepted->epoch);
  return out.str();
}

vote_memory parse_votes(const std::string& text, const std::string& name) {
  std::istringstream in{text};
  std::string troupe, kind, of;
  vote_memory votes;
  in >> troupe >> kind >> of >> votes.folder;
  bool is_right = in && troupe == "troupe" && kind == "votes" && of == "of"
                  && is_site_word(votes.folder) && in.get() == '\n';
  if (is_right && in.peek() == 'p')
    is_right = read_ballot(in, "promised", votes.promised);
  if (is_right && in.peek() != std::istream::traits_type::eof()) {
    auto& accepted = votes.accepted.emplace();
    is_right = read_ballot(in, "accepted", accepted.by);
    std::ostringstream rest;
    rest << in.rdbuf();
    if (is_right)
      accepted.epoch = comm::parse_epoch(rest.str(), name);
  }
  if (!is_right)
    throw error(errc::bad_file, name + ": no votes of a host");
  return votes;
}

} // namespace troupe::apps
