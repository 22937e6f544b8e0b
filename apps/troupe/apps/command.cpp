// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/command.hpp>

#include <troupe/apps/machine.hpp>
#include <troupe/apps/subcommands.hpp>
#include <troupe/apps/usage_error.hpp>
#include <troupe/base/quoted_name.hpp>
#include <troupe/base/version.hpp>
#include <troupe/kernels/memory/address_space.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <string_view>

#include <poll.h>
#include <unistd.h>

namespace troupe::apps {

namespace {

constexpr int run_failed = 1, wrong_usage = 2;

/// Prints an error as one line: messages quote user input, which can contain
/// any bytes.
int complain(const std::string& message, int code) {
  std::fprintf(stderr, "troupe: %s\n", one_line(message).c_str());
  return code;
}

/// For a value that the option's type cannot hold, says what the option takes.
/// CLI11's own message is "Could not convert: --threads = 1.5".
std::string conversion_rule(const CLI::App& app, const std::string& message) {
  constexpr std::string_view begin = "Could not convert: ", between = " = ";
  const auto* command = &app;
  for (auto named = app.get_subcommands(); !named.empty();
       named = command->get_subcommands())
    command = named[0];
  const auto middle = message.find(between);
  if (!message.starts_with(begin) || middle == message.npos)
    return message;
  const auto name = message.substr(begin.size(), middle - begin.size());
  const auto* option = command->get_option_no_throw(name);
  if (!option)
    return message;
  const bool whole = !option->get_type_name().starts_with("FLOAT");
  return name + ": must be " + (whole ? "a whole number" : "a number")
         + ", not " + message.substr(middle + between.size());
}

/// Says of a flag with a value, --json=2, that it takes none. CLI11's own
/// message is "json was given a disallowed flag override".
std::string argument_rule(const std::string& message) {
  constexpr std::string_view end = " was given a disallowed flag override";
  if (!message.ends_with(end))
    return message;
  return "--" + message.substr(0, message.size() - end.size())
         + ": takes no value";
}

/// Points to the help of the innermost command on the command line.
std::string help_hint(const CLI::App& app) {
  std::string command = "troupe ";
  for (auto named = app.get_subcommands(); !named.empty();
       named = named[0]->get_subcommands())
    command += named[0]->get_name() + " ";
  return " (see " + command + "--help)";
}

/// The names of all subcommands that the help lists, in its order.
std::string subcommand_names(const CLI::App& app) {
  return CLI::detail::join(
    app.get_subcommands(
      [](const CLI::App* each) { return !each->get_group().empty(); }),
    [](const CLI::App* each) { return each->get_name(); }, ", ");
}

/// Says which words a command does not take, in the order in which they were
/// given; CLI11 would list them in reverse. If a subcommand has any, those of
/// its parent are left out. Where a subcommand is missing, a word is taken for
/// its name. Empty if all words are expected.
/// @param path the names of `app` and its parents, each with a blank behind it
std::string unexpected_words(const CLI::App& app,
                             const std::string& path = "") {
  for (const auto* named : app.get_subcommands())
    if (auto words = unexpected_words(*named, path + named->get_name() + " ");
        !words.empty())
      return words;
  const auto words = app.remaining();
  if (words.empty())
    return "";
  const auto known = subcommand_names(app);
  if (known.empty() || !app.get_subcommands().empty()
      || words[0].starts_with('-'))
    return "troupe " + path + "does not take " + CLI::detail::join(words, " ");
  return "unknown command '" + path + words[0] + "'; commands "
         + (path.empty() ? "" : "of " + path) + "are " + known;
}

/// What --version prints: the version first, then what was built with what.
std::string version_text(std::string_view commit) {
  std::string text = "troupe " + std::string{version()};
  if (!commit.empty())
    text += " (commit " + std::string{commit} + ")";
  text += "\nbuilt with " + build_facts() + "\nuses";
  for (const auto& [library, its_version] : examine_machine().libraries)
    text += (text.ends_with("uses") ? " " : ", ") + library + " " + its_version;
  return text;
}

/// True if standard output is a pipe that nobody reads any more, as behind
/// `| head`.
bool has_no_reader() {
  pollfd out{STDOUT_FILENO, 0, 0};
  return ::poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

/// Flushes standard output. Returns `code`, or 1 if the output could not be
/// written; says so unless its reader has left.
int end_of_output(int code) {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    return has_no_reader()
             ? run_failed
             : complain("cannot write to standard output", run_failed);
  return code;
}

/// Number of words of the command line that are Troupe's own. In `troupe launch
/// OPTIONS -- COMMAND` what begins at "--" is another command's.
int own_words(int argc, const char* const* argv) {
  if (argc < 2 || std::string_view(argv[1]) != "launch")
    return argc;
  return static_cast<int>(std::find(argv, argv + argc, std::string_view("--"))
                          - argv);
}

int parse_and_run(int argc, const char* const* argv, std::string_view commit) {
  const int own = own_words(argc, argv);
  CLI::App app{"Troupe trains neural networks: every op and every variable of "
               "the graph is an actor.",
               "troupe"};
  // A missing command is reported below: if CLI11 required one, its error would
  // hide unknown words.
  app.require_subcommand(0, 1);
  // A flag with a value would be on or off by rules that nothing documents.
  app.option_defaults()->disable_flag_override();
  // If an option is given twice, the last one is used, so that scripts can have
  // defaults. Subcommands inherit this. For lists see add_repeatable_option.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.set_version_flag("--version", [commit] { return version_text(commit); });
  app.footer("Example:\n  troupe train digits --data data/digits "
             "--devices cpu:2");
  action chosen;
  add_train(app, chosen);
  add_eval(app, chosen);
  add_graph(app, chosen);
  add_inspect(app, chosen);
  add_doctor(app, chosen);
  add_bench(app, chosen);
  add_trace(app, chosen);
  add_dashboard(app, chosen);
  add_launch(app, chosen, {argv + std::min(own + 1, argc), argv + argc});
  add_launch_rank(app, chosen);
  add_launch_host(app, chosen);
  add_launch_address(app, chosen);
  add_credentials(app, chosen);
  try {
    app.parse(own, argv);
  } catch (const CLI::Success& request) {
    return end_of_output(app.exit(request)); // help or version
  } catch (const CLI::ExtrasError&) {
    return complain(unexpected_words(app) + help_hint(app), wrong_usage);
  } catch (const CLI::ConversionError& failure) {
    return complain(conversion_rule(app, failure.what()) + help_hint(app),
                    wrong_usage);
  } catch (const CLI::ArgumentMismatch& failure) {
    return complain(argument_rule(failure.what()) + help_hint(app),
                    wrong_usage);
  } catch (const CLI::ParseError& failure) {
    return complain(failure.what() + help_hint(app), wrong_usage);
  }
  if (!chosen)
    return complain("a command is missing" + help_hint(app), wrong_usage);
  return end_of_output(chosen());
}

} // namespace

int run_command(int argc, const char* const* argv,
                std::string_view commit) noexcept {
  try {
    return parse_and_run(argc, argv, commit);
  } catch (const usage_error& failure) {
    return complain(failure.what(), wrong_usage);
  } catch (const std::bad_alloc&) {
    return complain(out_of_memory_text(), run_failed);
  } catch (const std::exception& failure) {
    return complain(failure.what(), run_failed);
  } catch (...) {
    return complain("unknown failure", run_failed);
  }
}

} // namespace troupe::apps
