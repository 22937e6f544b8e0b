// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/launch/hosts/job_hosts.hpp>

#include <troupe/apps/launch/hosts/host_message.hpp>
#include <troupe/apps/launch/hosts/remote_shell.hpp>
#include <troupe/apps/launch/rank_variables.hpp>
#include <troupe/comm/tls/job_credentials.hpp>

#include <array>
#include <csignal>
#include <utility>

#include <unistd.h>

namespace troupe::apps {

namespace {

using namespace std::chrono_literals;

// Signs of life come each second.
constexpr auto longest_silence = 10s;
constexpr auto between_logins = 5s;
// Between two looks, unless the launcher itself was stopped.
constexpr auto longest_gap = 2s;
// Of a line: words are short.
constexpr std::size_t longest_word = 4096;

} // namespace

/// The remote shell that runs `troupe launch-host`.
struct job_hosts::launched_host {
  std::size_t number = 0;
  std::size_t logins = 0;
  rank_log log;
  // Of the last login. Nothing: the host is lost.
  std::unique_ptr<rank_process> process{};
  std::optional<rank_stream> err{};
  descriptor out{};
  std::optional<remote_input> input{};
  std::string line{}; ///< the begin of one
  bool is_ready = false;
  clock::time_point last_sign{}; ///< of life, if it is ready
  clock::time_point next_login{};
};

job_hosts::job_hosts(const job_options& options, const job_folders& folders,
                     own_streams& to)
  : options_(options), folders_(folders), to_(to) {
  while (hosts_.size() < options.remote->hosts.size())
    add();
}

void job_hosts::add() {
  const auto number = hosts_.size();
  hosts_.push_back(std::make_unique<launched_host>(launched_host{
    .number = number, .log = rank_log{folders_.log_of_host(number)}}));
  log_in(number);
}

job_hosts::~job_hosts() {
  for (auto& host : hosts_)
    if (host->input)
      host->input->close();
}

std::string job_hosts::meeting_of(std::size_t host) const {
  return folders_.job() + ".host-" + std::to_string(host) + "."
         + std::to_string(hosts_[host]->logins);
}

void job_hosts::log_in(std::size_t number) {
  auto& host = *hosts_[number];
  const auto& at = options_.remote->hosts[number];
  ++host.logins;
  rank_pipe in, out, err;
  for (const auto* end : {&in.write, &out.read, &err.read})
    never_wait_at(*end);
  host.process = std::make_unique<rank_process>(
    process_start{remote_words(*options_.remote, at, {"launch-host"}),
                  variables_with(),
                  {in.read.get(), out.write.get(), err.write.get()}});
  host.err.emplace(std::move(err.read), passing::prefixed_lines, at.name + "| ",
                   to_.err, host.log);
  host.out = std::move(out.read);
  host.input.emplace(std::move(in.write),
                     to_frame_of_meeting(meeting_of(number)));
  host.line.clear();
  host.is_ready = false;
  has_started_ = true;
  if (epoch_) // it has no ranks in it yet
    host.input->send(to_frame_of_epoch({*epoch_, {}}));
}

void job_hosts::tell(const comm::job_epoch& epoch) {
  if (epoch_ && epoch_->number == epoch.number)
    return;
  epoch_ = epoch;
  std::vector<comm::job_credentials> credentials;
  if (epoch.is_on_several_hosts())
    credentials = comm::make_job_credentials(epoch.members.size());
  for (auto& host : hosts_) {
    if (!host->process)
      continue;
    host_epoch told{epoch, {}};
    for (std::size_t rank = 0; rank < credentials.size(); ++rank)
      if (epoch.host_of(rank) == host->number)
        told.credentials.emplace(epoch.members[rank],
                                 comm::to_text(credentials[rank]));
    host->input->send(to_frame_of_epoch(told));
  }
}

void job_hosts::add_to(poll_list& list) {
  for (auto& owned : hosts_) {
    auto& host = *owned;
    if (!host.process)
      continue;
    if (!host.err->is_closed() && !host.err->target().is_full())
      list.add(host.err->fd(), POLLIN, [&host] { host.err->pass_some(); });
    if (host.out)
      list.add(host.out.get(), POLLIN, [this, &host] { read_lines(host); });
    if (host.input->is_waiting())
      list.add(host.input->fd(), POLLOUT,
               [&host] { host.input->write_some(); });
  }
}

void job_hosts::read_lines(launched_host& host) {
  std::array<char, 4096> bytes;
  const auto got = ::read(host.out.get(), bytes.data(), bytes.size());
  if (got == 0)
    host.out = descriptor{};
  for (ssize_t i = 0; i < got; ++i)
    if (const char c = bytes[static_cast<std::size_t>(i)]; c == '\n')
      take_line(host, std::exchange(host.line, {}));
    else if (host.line.size() < longest_word)
      host.line += c;
}

/// A login can print lines of its own. They mean nothing.
void job_hosts::take_line(launched_host& host, const std::string& line) {
  host.last_sign = clock::now();
  if (line == host_is_ready && !std::exchange(host.is_ready, true)
      && host.logins > 1)
    back_.push_back(host.number);
  else if (line != host_lives)
    comm::repeat_told(folders_.rendezvous(), line);
}

void job_hosts::look(bool may_log_in) {
  const auto now = clock::now();
  if (now - std::exchange(last_look_, now) > longest_gap)
    for (auto& host : hosts_)
      host->last_sign = now;
  for (auto& host : hosts_)
    if (!host->process) {
      if (may_log_in && now >= host->next_login)
        log_in(host->number);
    } else if (host->process->look()) {
      host->err->finish();
      const auto& end = *host->process->end();
      const auto& why = host->err->last_line();
      lose(host->number, "troupe launch-host there " + end.text()
                           + (why.empty() ? "" : ": " + why));
    } else if (host->is_ready && now - host->last_sign > longest_silence) {
      lose(host->number, "it gives no sign of life");
    }
}

void job_hosts::lose(std::size_t number, const std::string& why) {
  auto& host = *hosts_[number];
  if (!host.process)
    return;
  // Only what was there can be lost; others are tried again without a word.
  if (host.is_ready || host.logins == 1)
    lost_.push_back({number, why});
  host.input->close();
  host.err->finish();
  host.process.reset(); // kills it
  host.out = descriptor{};
  host.next_login = clock::now() + between_logins;
}

bool job_hosts::is_lost(std::size_t host) const {
  return !hosts_[host]->process
         || (hosts_[host]->logins > 1 && !hosts_[host]->is_ready);
}

std::vector<job_hosts::loss> job_hosts::take_lost() {
  return std::exchange(lost_, {});
}

std::vector<std::size_t> job_hosts::take_back() {
  return std::exchange(back_, {});
}

bool job_hosts::take_started() {
  return std::exchange(has_started_, false);
}

std::vector<pid_t> job_hosts::groups() const {
  std::vector<pid_t> all;
  for (auto& host : hosts_)
    if (host->process)
      all.push_back(host->process->id());
  return all;
}

} // namespace troupe::apps
