// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/training_program.hpp>

#include <troupe/actors/executor.hpp>
#include <troupe/graph/paddle/program_folder.hpp>

#include <utility>

namespace troupe {

namespace {

/// The contents of `program.json`.
graph::program_info describe(const training_program& program,
                             std::int64_t batch) {
  graph::program_info info;
  info.loss = program.loss;
  if (batch > 0)
    info.batch = batch;
  for (const feed_info& feed : program.feeds) {
    shape dims = feed.dims;
    if (feed.has_samples() && dims[0] < 0)
      dims[0] = batch > 0 ? batch : 1;
    if (!dims.has_unknown())
      info.feeds.emplace(feed.name,
                         graph::feed_info{dims, feed.type, feed.below});
  }
  return info;
}

} // namespace

training_program make_training_program(graph::program startup,
                                       graph::program main) {
  training_program made;
  made.loss = graph::find_loss(main);
  made.test = graph::clone_for_test(main);
  made.feeds = describe_feeds(main);
  made.startup = std::move(startup);
  made.main = std::move(main);
  return made;
}

void refresh_coalesced(const training_program& program, scope& parameters) {
  graph::program fused;
  fused.main().vars = program.startup.main().vars;
  for (graph::op_desc op : program.startup.main().ops)
    if (op.type == "coalesce_tensor") {
      op.attributes.set("set_constant", false);
      fused.main().ops.push_back(std::move(op));
    }
  if (!fused.main().ops.empty())
    run_startup(fused, parameters);
}

void save_program(const training_program& program, std::int64_t batch,
                  const scope& parameters,
                  const std::filesystem::path& folder) {
  graph::write_program_folder({.main = program.main,
                               .startup = program.startup,
                               .test = program.test,
                               .info = describe(program, batch)},
                              folder, &parameters);
}

} // namespace troupe
