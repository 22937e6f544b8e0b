// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/launch/hosts/host_addresses.hpp>

#include <troupe/apps/launch/hosts/remote_shell.hpp>
#include <troupe/apps/launch/poll_list.hpp>
#include <troupe/apps/launch/rank_process.hpp>
#include <troupe/apps/launch/rank_variables.hpp>
#include <troupe/apps/subcommands.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/files/descriptor.hpp>
#include <troupe/base/net/socket_address.hpp>
#include <troupe/base/quoted_name.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace troupe::apps {

namespace {

/// A login can print lines of its own.
constexpr std::string_view mark_of_address = "address ";
constexpr std::string_view mark_of_errors = "troupe: ";
constexpr int between_polls = 10; // milliseconds
constexpr std::size_t longest_answer = std::size_t{1} << 16;

/// What a host has printed to one of its streams.
struct heard_stream {
  descriptor from{};
  std::string text{};

  /// Takes what is there.
  void take() {
    std::array<char, 4096> bytes;
    ssize_t got = 0;
    while ((got = ::read(from.get(), bytes.data(), bytes.size())) > 0)
      if (text.size() < longest_answer)
        text.append(bytes.data(), static_cast<std::size_t>(got));
    if (got == 0)
      from = descriptor{};
  }
  /// The last line that begins with a mark, or else the last that is not empty.
  std::string last_line(std::string_view mark) const {
    std::istringstream in{text};
    std::string marked, last;
    for (std::string line; std::getline(in, line);) {
      while (line.ends_with('\r'))
        line.pop_back();
      if (line.starts_with(mark))
        marked = line.substr(mark.size());
      else if (!line.empty())
        last = line;
    }
    return marked.empty() ? last : marked;
  }
};

struct asked_host {
  const job_host& host;
  heard_stream out{}, err{};
  std::unique_ptr<rank_process> process{};
};

asked_host ask(const remote_start& remote, const job_host& host) {
  asked_host asked{host};
  rank_pipe out, err;
  const descriptor no_input{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
  never_wait_at(out.read);
  never_wait_at(err.read);
  asked.process = std::make_unique<rank_process>(process_start{
    remote_words(remote, host,
                 {"launch-address", "--name=" + remote.interface}),
    variables_with(),
    {no_input.get(), out.write.get(), err.write.get()}});
  asked.out.from = std::move(out.read);
  asked.err.from = std::move(err.read);
  return asked;
}

/// Waits until all remote shells have ended. Their streams can stay open, if
/// one has left a process behind that keeps the connection.
void wait_for(std::vector<asked_host>& all) {
  const auto is_over = [](asked_host& asked) {
    return asked.process->look().has_value();
  };
  while (!std::ranges::all_of(all, is_over)) {
    poll_list list;
    for (auto& asked : all)
      for (auto* stream : {&asked.out, &asked.err})
        if (stream->from)
          list.add(stream->from.get(), POLLIN, [stream] { stream->take(); });
    list.wait(between_polls);
  }
  for (auto& asked : all)
    for (auto* stream : {&asked.out, &asked.err})
      if (stream->from)
        stream->take();
}

std::string address_from(const asked_host& asked) {
  const auto& end = *asked.process->end();
  if (end.is_success())
    return asked.out.last_line(mark_of_address);
  const auto why = asked.err.last_line(mark_of_errors);
  throw error(errc::io_failure, "host " + asked.host.name
                                  + " does not tell its address ("
                                  + asked.process->end()->text() + ")"
                                  + (why.empty() ? "" : ": " + one_line(why)));
}

} // namespace

void find_host_addresses(remote_start& remote) {
  std::vector<asked_host> all;
  for (const auto& host : remote.hosts)
    all.push_back(ask(remote, host));
  wait_for(all);
  for (std::size_t h = 0; h < all.size(); ++h)
    remote.hosts[h].address = address_from(all[h]);
}

void add_launch_address(CLI::App& app, action& chosen) {
  auto& command = *app.add_subcommand(
    "launch-address", "what troupe launch --interface asks each host");
  command.group(""); // the help does not list it
  auto name = std::make_shared<std::string>();
  command.add_option("--name", *name)->required();
  command.callback([name, &chosen] {
    chosen = [name] {
      const auto own = addresses_of_interface(*name, 0);
      std::printf("%s%s\n", std::string(mark_of_address).c_str(),
                  own.front().figures().c_str());
      return 0;
    };
  });
}

} // namespace troupe::apps
