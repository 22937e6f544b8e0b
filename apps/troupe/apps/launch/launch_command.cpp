// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/launch/hosts/host_addresses.hpp>
#include <troupe/apps/launch/hosts/hosts.hpp>
#include <troupe/apps/launch/job.hpp>
#include <troupe/apps/launch/join_request.hpp>
#include <troupe/apps/option_checks.hpp>
#include <troupe/apps/subcommands.hpp>
#include <troupe/apps/usage_error.hpp>
#include <troupe/base/quoted_name.hpp>
#include <troupe/comm/letter.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>
#include <system_error>
#include <utility>

namespace troupe::apps {

namespace {

constexpr double longest_grace = 24 * 3600; // seconds

struct launch_options {
  std::size_t nodes = 0;
  std::string logs;
  double grace = 5; ///< seconds
  bool no_bind = false;
  std::string elastic; ///< MIN:MAX
  pid_t join = 0;      ///< process number of another launch
  std::string hosts;   ///< NAME[:RANKS],...
  std::string interface;
  std::uint16_t port = 0;
  // Ranks wait two minutes for each other. A host that is gone must be told of
  // before.
  std::string shell =
    "ssh -o BatchMode=yes -o ConnectTimeout=30 -o ServerAliveInterval=30";
  std::string program; ///< on the other hosts
};

constexpr double last_port = 65535;

void add_launch_options(CLI::App& command, launch_options& options) {
  command
    .add_option("--nodes", options.nodes,
                "how many processes to start: the ranks of the job (with "
                "--join: that are added to it, default 1)")
    ->check(positive());
  command
    .add_option("--elastic", options.elastic,
                "MIN:MAX ranks: start a rank that was killed again, go on "
                "while MIN live, and let others join (--nodes: at the start, "
                "default MAX)")
    ->check(not_empty());
  command
    .add_option("--join", options.join,
                "add ranks to the elastic job of the launch with this process "
                "number, on this host, or on those of --hosts; takes no "
                "COMMAND")
    ->check(positive());
  command
    .add_option("--logs", options.logs,
                "folder for the ranks' output, rank-0.log, rank-1.log, ...")
    ->check(not_empty());
  command
    .add_option("--grace", options.grace,
                "seconds that the other ranks have after one has failed, and "
                "again after SIGTERM")
    ->check(not_negative(longest_grace))
    ->capture_default_str();
  command.add_flag("--no-bind", options.no_bind,
                   "let every rank use all cores; by default, the ranks of a "
                   "host divide them if there are enough");
}

void add_host_options(CLI::App& command, launch_options& options) {
  command
    .add_option("--hosts", options.hosts,
                "NAME[:RANKS],...: start the ranks on these hosts, with ssh "
                "(--nodes: all RANKS together)")
    ->check(not_empty());
  command
    .add_option("--port", options.port,
                "port of the first host, at which rank 0 waits for the others "
                "(default: one from 20000 to 32767)")
    ->check(from_to(1, last_port));
  command
    .add_option("--interface", options.interface,
                "network interface of each host, such as eth1, at whose "
                "address the others reach it (default: its NAME leads there)")
    ->check(not_empty());
  command
    .add_option("--ssh", options.shell,
                "what starts a command on a host: these words, then the host, "
                "then the command")
    ->check(not_empty())
    ->capture_default_str();
  command
    .add_option("--remote-troupe", options.program,
                "path of troupe on these hosts (default: that of this one)")
    ->check(not_empty());
}

/// Words of the command that stand before the "--" are a slip.
void refuse_words(const std::vector<std::string>& words) {
  if (words.empty())
    return;
  const auto first = quoted_name(words.front());
  throw usage_error(words.front().starts_with('-')
                      ? "troupe launch does not take " + first
                          + " (see troupe launch --help)"
                      : "a -- is missing before the command " + first
                          + " (see troupe launch --help)");
}

rank_range parse_range(const std::string& text) {
  rank_range range;
  int used = 0;
  if (std::sscanf(text.c_str(), "%zu:%zu%n", &range.least, &range.most, &used)
        != 2
      || static_cast<std::size_t>(used) != text.size() || range.least == 0
      || range.most < range.least || text.find_first_of("+- ") != text.npos)
    throw usage_error(
      "--elastic: must be MIN:MAX, two numbers of ranks such as "
      "2:4, not '"
      + text + "'");
  return range;
}

/// Sets `nodes` of an elastic job.
std::optional<rank_range> apply_elastic(launch_options& options) {
  if (options.elastic.empty())
    return std::nullopt;
  const auto range = parse_range(options.elastic);
  if (options.nodes == 0)
    options.nodes = range.most;
  if (options.nodes < range.least || options.nodes > range.most)
    throw usage_error("--nodes: must be within --elastic " + options.elastic
                      + ", not " + std::to_string(options.nodes));
  return range;
}

/// Options that say how to start ranks on other hosts.
void refuse_without_hosts(const CLI::App& command) {
  for (const auto* name : {"--port", "--interface", "--ssh", "--remote-troupe"})
    if (command.count(name) != 0)
      throw usage_error(std::string(name) + " needs --hosts");
}

std::vector<std::string> words_of_shell(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;)
    words.push_back(word);
  if (words.empty())
    throw usage_error("--ssh: must name a command");
  return words;
}

std::string own_program() {
  std::error_code failure;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", failure);
  return failure ? "troupe" : path.string();
}

[[noreturn]] void refuse_nodes(std::size_t ranks, std::size_t given) {
  throw usage_error("--nodes: must be the number of ranks of --hosts, "
                    + std::to_string(ranks) + ", not " + std::to_string(given));
}

/// Sets `nodes` of a job on several hosts.
std::optional<remote_start> apply_hosts(launch_options& options) {
  if (options.hosts.empty())
    return std::nullopt;
  remote_start remote{parse_hosts(options.hosts), words_of_shell(options.shell),
                      options.program.empty() ? own_program() : options.program,
                      options.interface};
  if (options.port != 0)
    remote.port = options.port;
  const auto ranks = ranks_of(remote.hosts);
  if (options.nodes != 0 && options.nodes != ranks)
    refuse_nodes(ranks, options.nodes);
  options.nodes = ranks;
  return remote;
}

void check_launch(const launch_options& options,
                  const std::vector<std::string>& command) {
  if (options.nodes == 0)
    throw usage_error(
      "--nodes, --hosts or --join is required (see troupe launch --help)");
  if (options.nodes > comm::max_ranks)
    throw usage_error(
      "--nodes: must be at most " + std::to_string(comm::max_ranks) + ", not "
      + std::to_string(options.nodes)
      + ": a group of ranks that share memory cannot be larger");
  if (command.empty() || command.front().empty())
    throw usage_error("a command is missing: troupe launch --nodes N -- "
                      "COMMAND ARGS (see troupe launch --help)");
  if (const char* rank = std::getenv("TROUPE_RANK"); rank && *rank)
    throw usage_error("troupe launch was started by rank " + one_line(rank)
                      + " of another troupe launch (TROUPE_RANK is set)");
}

/// The variable is for ranks that other launchers start. Ranks do not get it.
void tell_of_unused_range(const launch_options& options) {
  const char* range = std::getenv("TROUPE_ELASTIC");
  if (range && *range && options.elastic.empty())
    std::fprintf(stderr,
                 "warning: TROUPE_ELASTIC=%s has no effect in troupe launch: "
                 "--elastic makes a job elastic\n",
                 one_line(range).c_str());
}

void refuse_beside_join(const CLI::App& command,
                        const std::vector<std::string>& words) {
  for (const auto* option : command.get_options())
    if (option->count() != 0 && option->get_name() != "--join"
        && option->get_name() != "--nodes" && option->get_name() != "--hosts")
      throw usage_error("--join excludes " + option->get_name());
  if (!words.empty())
    throw usage_error("--join takes no COMMAND: the ranks run that of the job");
}

/// Ranks that are to join.
std::size_t joining_ranks(const launch_options& options) {
  if (options.hosts.empty())
    return std::max<std::size_t>(1, options.nodes);
  const auto ranks = ranks_of(parse_hosts(options.hosts));
  if (options.nodes != 0 && options.nodes != ranks)
    refuse_nodes(ranks, options.nodes);
  return ranks;
}

int run_join(const launch_options& options) {
  const auto answer = ask_to_join(
    options.join,
    {.id = {}, .ranks = joining_ranks(options), .hosts = options.hosts});
  std::fprintf(stderr, "troupe: %s\n", one_line(answer.text).c_str());
  return answer.is_accepted ? 0 : 1;
}

int run_launch(launch_options options,
               const std::vector<std::string>& command) {
  auto remote = apply_hosts(options);
  const auto elastic = apply_elastic(options);
  check_launch(options, command);
  tell_of_unused_range(options);
  // A single host's ranks meet in its memory.
  if (remote && !remote->interface.empty() && remote->hosts.size() > 1)
    find_host_addresses(*remote);
  const auto result =
    run_job({.ranks = options.nodes,
             .command = command,
             .logs = options.logs,
             .grace = std::chrono::milliseconds(
               static_cast<std::int64_t>(options.grace * 1000)),
             .binds = !options.no_bind,
             .elastic = elastic,
             .remote = remote});
  if (!result.failure.empty())
    std::fprintf(stderr, "troupe: %s\n", one_line(result.failure).c_str());
  return result.code;
}

} // namespace

void add_launch(CLI::App& app, action& chosen,
                const std::vector<std::string>& command) {
  auto options = std::make_shared<launch_options>();
  auto& launch = *app.add_subcommand(
    "launch",
    "start a command as several processes, on this host or on others");
  add_launch_options(launch, *options);
  add_host_options(launch, *options);
  launch.footer("COMMAND and its arguments stand behind \"--\". Each process "
                "finds its place in the job\nin TROUPE_RANK, TROUPE_SIZE and "
                "other variables.\n\nExample:\n  troupe launch --nodes 2 -- "
                "troupe train digits --data data/digits\n  troupe launch "
                "--hosts a:2,b:2 -- troupe train digits --data data/digits "
                "--data-network trusted");
  launch.allow_extras();
  launch.callback([&launch, options, command, &chosen] {
    refuse_words(launch.remaining());
    if (options->hosts.empty())
      refuse_without_hosts(launch);
    if (options->join != 0) {
      refuse_beside_join(launch, command);
      chosen = [options] { return run_join(*options); };
      return;
    }
    chosen = [options, command] { return run_launch(*options, command); };
  });
}

} // namespace troupe::apps
