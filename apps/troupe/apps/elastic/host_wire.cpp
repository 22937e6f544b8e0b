// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/elastic/host_wire.hpp>

#include <troupe/apps/elastic/vote_text.hpp>
#include <troupe/base/error.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include <sys/socket.h>

namespace troupe::apps {

namespace {

using nlohmann::json;

// Limits what is kept for who sends too much, or takes nothing.
constexpr std::size_t longest_line = std::size_t{1} << 24;

[[noreturn]] void refuse() {
  throw error(errc::peer_failure,
              "another host of the job sends what Troupe does not");
}

json to_json(const std::optional<comm::job_epoch>& epoch) {
  return epoch ? json(comm::to_text(*epoch)) : json();
}

std::optional<comm::job_epoch> epoch_in(const json& from) {
  if (from.is_null())
    return std::nullopt;
  return comm::parse_epoch(from, "another host");
}

/// Calls `read` with what the line holds.
template <class Read>
auto parse(const std::string& line, Read read) {
  try {
    return read(json::parse(line));
  } catch (const json::exception&) {
  } catch (const std::logic_error&) { // no number
  } catch (const error&) {            // no epoch
  }
  refuse();
}

} // namespace

bool host_report::has(std::uint64_t number) const {
  return std::ranges::find(living, number) != living.end();
}

std::string to_line(const host_report& report) {
  return json{{"host", report.host},
              {"address", report.address},
              {"epoch", to_json(report.votes.decided)},
              {"votes", to_text(report.votes)},
              {"living", report.living},
              {"all", report.all},
              {"told", report.told},
              {"keeps", report.keeps}}
           .dump()
         + "\n";
}

std::string to_line(const host_order& order) {
  if (!order.elsewhere.empty())
    return json{{"elsewhere", order.elsewhere}}.dump() + "\n";
  json credentials = json::object();
  for (auto& [member, text] : order.credentials)
    credentials[std::to_string(member)] = text;
  return json{{"round", order.votes.by.round},
              {"by", order.votes.by.folder},
              {"epoch", to_json(order.votes.decided)},
              {"proposed", to_json(order.votes.proposed)},
              {"credentials", credentials},
              {"told", order.told},
              {"ends", order.ends}}
           .dump()
         + "\n";
}

host_report parse_host_report(const std::string& line) {
  return parse(line, [](const json& from) {
    host_report report{from.at("host"),
                       from.at("address"),
                       parse_votes(from.at("votes"), "another host"),
                       from.at("living"),
                       from.at("all"),
                       from.at("told"),
                       from.at("keeps")};
    report.votes.decided = epoch_in(from.at("epoch"));
    if (!is_site_word(report.host) || !is_site_word(report.address))
      refuse();
    return report;
  });
}

host_order parse_host_order(const std::string& line) {
  return parse(line, [](const json& from) {
    if (from.contains("elsewhere")) {
      host_order way;
      way.elsewhere = from.at("elsewhere");
      if (!is_site_word(way.elsewhere))
        refuse();
      return way;
    }
    host_order order{{{from.at("round"), from.at("by")},
                      epoch_in(from.at("epoch")),
                      epoch_in(from.at("proposed"))},
                     {},
                     from.at("told"),
                     from.at("ends")};
    if (!is_ballot(order.votes.by))
      refuse();
    for (auto& [member, text] : from.at("credentials").items())
      order.credentials.emplace(std::stoull(member), text);
    return order;
  });
}

host_wire::host_wire(actors::passage through) : through_(std::move(through)) {}

void host_wire::send(const std::string& line) {
  to_send_ += line;
  flush();
}

void host_wire::flush() {
  while (!is_gone_ && !to_send_.empty()) {
    const auto n = ::send(through_.socket.get(), to_send_.data(),
                          to_send_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0)
      to_send_.erase(0, static_cast<std::size_t>(n));
    else if (errno == EAGAIN || errno == EWOULDBLOCK)
      break;
    else if (errno != EINTR)
      return; // `receive` sees the end, after what came before it
  }
  is_gone_ = is_gone_ || to_send_.size() > longest_line;
}

std::optional<std::string> host_wire::receive() {
  for (;;) {
    if (const auto end = arrived_.find('\n'); end != arrived_.npos) {
      auto line = arrived_.substr(0, end);
      arrived_.erase(0, end + 1);
      return line;
    }
    std::array<char, 4096> bytes;
    const auto got =
      ::recv(through_.socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got > 0)
      arrived_.append(bytes.data(), static_cast<std::size_t>(got));
    else if (got < 0 && errno == EINTR)
      continue;
    else
      is_gone_ =
        is_gone_ || got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
    is_gone_ = is_gone_ || arrived_.size() > longest_line;
    if (got <= 0 || is_gone_)
      return std::nullopt;
  }
}

} // namespace troupe::apps
