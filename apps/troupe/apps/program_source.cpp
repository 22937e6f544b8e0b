// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/program_source.hpp>

#include <troupe/actors/backend/backend.hpp>
#include <troupe/actors/executor.hpp>
#include <troupe/apps/common_options.hpp>
#include <troupe/apps/usage_error.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/files/input_file.hpp>
#include <troupe/base/quoted_name.hpp>
#include <troupe/graph/models.hpp>
#include <troupe/graph/paddle/program_file.hpp>
#include <troupe/graph/paddle/program_folder.hpp>

#include <algorithm>
#include <limits>
#include <set>

namespace troupe::apps {

namespace {

namespace fs = std::filesystem;

/// A loss that is named explicitly.
struct named_loss {
  std::string name;  ///< empty: no loss is named
  std::string where; ///< `--loss` or a file with its key, for errors
  bool is_of_option = false;
};

named_loss loss_of_option(const std::string& name) {
  return {name, "--loss", true};
}

/// A name in the command line that does not fit is a wrong command line. One in
/// a file is not.
[[noreturn]] void refuse(const named_loss& loss, errc code,
                         const std::string& why) {
  const auto text = loss.where + ": " + why;
  if (loss.is_of_option)
    throw usage_error(text);
  throw error(code, text);
}

void require_one_float(const graph::program& p, const named_loss& loss) {
  const auto* var = p.main().find_var(loss.name);
  if (!var)
    refuse(loss, errc::not_found,
           "the program has no variable " + quoted_name(loss.name));
  const bool one_number = std::ranges::all_of(
    var->dims.dims(), [](auto extent) { return extent == 1; });
  if (var->kind != graph::var_kind::dense || !is_floating(var->type)
      || !one_number)
    refuse(loss, errc::invalid_argument,
           quoted_name(loss.name) + " is " + std::string{to_string(var->type)}
             + " " + to_string(var->dims) + ", but a loss is one float number");
}

/// The named loss, otherwise the loss that is found in the program, if any.
/// @param test the program without gradients and updates
std::string choose_loss(const graph::program& p, const graph::program& test,
                        const named_loss& wanted) {
  if (!wanted.name.empty()) {
    require_one_float(p, wanted);
    if (!test.main().find_var(wanted.name))
      refuse(wanted, errc::invalid_argument,
             "the test program, without gradients and updates, has no variable "
               + quoted_name(wanted.name));
    return wanted.name;
  }
  try {
    return graph::find_loss(p);
  } catch (const error&) {
    return "";
  }
}

/// The limit of the whole numbers that a feed can hold: that of the ops that
/// read it, otherwise that of its type.
std::int64_t most_below(const feed_info& feed) {
  if (feed.below)
    return *feed.below;
  switch (feed.type) {
  case dtype::boolean: return 2;
  case dtype::int8: return std::int64_t{1} << 7;
  case dtype::uint8: return std::int64_t{1} << 8;
  case dtype::int16: return std::int64_t{1} << 15;
  case dtype::int32: return std::int64_t{1} << 31;
  default: return std::numeric_limits<std::int64_t>::max();
  }
}

/// Adds what `program.json` says about a feed. Its limit replaces that of the
/// program, but may not exceed it.
void complete(feed_info& feed, const graph::feed_info& note,
              const fs::path& file) {
  if (note.below > most_below(feed))
    throw error(errc::bad_file, file.string() + ": feed "
                                  + quoted_name(feed.name) + ": 'below' is "
                                  + std::to_string(*note.below)
                                  + ", but the program takes numbers below "
                                  + std::to_string(most_below(feed)));
  if (note.below)
    feed.below = note.below;
  if (note.dims.rank() != feed.dims.rank())
    return;
  for (std::size_t axis = 1; axis < feed.dims.rank(); ++axis)
    if (feed.dims[axis] < 0)
      feed.dims[axis] = note.dims[axis];
}

program_bundle read_folder(const fs::path& path, const std::string& loss) {
  graph::program_folder folder = graph::read_program_folder(path);
  program_bundle bundle;
  bundle.test =
    folder.test ? std::move(*folder.test) : graph::clone_for_test(folder.main);
  const auto notes = path / "program.json";
  const named_loss noted{folder.info.loss, notes.string() + ": loss_var"};
  bundle.loss = choose_loss(folder.main, bundle.test,
                            loss.empty() ? noted : loss_of_option(loss));
  bundle.batch = folder.info.batch.value_or(0);
  bundle.feeds = describe_feeds(folder.main);
  for (feed_info& feed : bundle.feeds)
    if (auto note = folder.info.feeds.find(feed.name);
        note != folder.info.feeds.end())
      complete(feed, note->second, notes);
  bundle.startup = std::move(folder.startup);
  bundle.main = std::move(folder.main);
  return bundle;
}

program_bundle read_file(const fs::path& path, const std::string& loss) {
  program_bundle bundle;
  bundle.main = graph::read_program(path);
  bundle.test = graph::clone_for_test(bundle.main);
  bundle.loss = choose_loss(bundle.main, bundle.test, loss_of_option(loss));
  bundle.feeds = describe_feeds(bundle.main);
  return bundle;
}

/// Reads the folder `name`. If it has no program, the error says that it hides
/// the built-in net of that name.
program_bundle read_folder_or_tell_of_net(const std::string& name,
                                          const std::string& loss) {
  try {
    return read_folder(name, loss);
  } catch (const error& failure) {
    if (failure.code() != errc::not_found || !graph::models().contains(name)
        || fs::exists(fs::path(name) / "main.pdmodel"))
      throw;
    throw error(errc::not_found,
                failure.message()
                  + "; the folder has the name of a built-in net, which is "
                    "used only where no file or folder has that name");
  }
}

/// An unknown name is a wrong command line.
graph::model build_known_net(const std::string& name) {
  try {
    return graph::build_model(name);
  } catch (const error& failure) {
    if (failure.code() == errc::not_found)
      throw usage_error(failure.message()
                        + "; no file or folder has that name");
    throw;
  }
}

program_bundle build_net(const std::string& name, const std::string& loss) {
  graph::model net = build_known_net(name);
  program_bundle bundle;
  bundle.loss = loss.empty()
                  ? net.loss
                  : choose_loss(net.main, net.test, loss_of_option(loss));
  bundle.batch = net.batch;
  bundle.feeds = describe_feeds(net.main);
  for (const graph::model_feed& known : net.feeds)
    for (feed_info& feed : bundle.feeds)
      if (feed.name == known.name && known.below > 0)
        feed.below = known.below;
  bundle.startup = std::move(net.startup);
  bundle.main = std::move(net.main);
  bundle.test = std::move(net.test);
  return bundle;
}

} // namespace

program_bundle load_program(const std::string& program_or_net,
                            const std::string& loss) {
  program_bundle bundle =
    !names_file(program_or_net) ? build_net(program_or_net, loss)
    : input_type(program_or_net) == fs::file_type::directory
      ? read_folder_or_tell_of_net(program_or_net, loss)
      : read_file(program_or_net, loss); // tells why, if it is not there
  bundle.name = program_or_net;
  return bundle;
}

const std::string& require_loss(const program_bundle& bundle) {
  if (bundle.loss.empty())
    throw usage_error(bundle.name
                      + " has no loss; name a variable with --loss");
  return bundle.loss;
}

missing_ops find_missing_ops(const program_bundle& bundle,
                             std::span<const device_id> devices) {
  const device_id host;
  return {graph::unsupported_ops(bundle.main, kernels_for(devices), devices),
          graph::unsupported_ops(bundle.startup, kernels_for({&host, 1}),
                                 {&host, 1})};
}

std::string to_text(const missing_ops& missing) {
  std::string text = graph::to_text(missing.main);
  if (!missing.startup.empty())
    text += (text.empty() ? "" : "; ") + std::string("of the startup program: ")
            + graph::to_text(missing.startup);
  return text;
}

void require_ops(const program_bundle& bundle,
                 std::span<const device_id> devices) {
  const std::string missing = to_text(find_missing_ops(bundle, devices));
  if (!missing.empty())
    throw error(errc::unsupported_op, "no kernels for these ops: " + missing);
}

void require_fetches(const program_bundle& bundle,
                     std::span<const std::string> names) {
  std::set<std::string> known;
  for (const graph::block& block : bundle.main.blocks)
    for (const graph::op_desc& op : block.ops)
      for (auto* slots : {&op.inputs, &op.outputs})
        for (const op_slot& slot : *slots)
          known.insert(slot.arguments.begin(), slot.arguments.end());
  for (const std::string& name : names) {
    const auto* var = bundle.main.main().find_var(name);
    if (!known.contains(name) && !(var && var->persistable))
      throw usage_error("--fetch: no op reads or writes " + quoted_name(name)
                        + ", and it is not persistable");
  }
}

} // namespace troupe::apps
