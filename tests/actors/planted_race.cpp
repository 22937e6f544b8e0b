// SPDX-License-Identifier: Apache-2.0
//
// A program with a race between two ops that no edge orders. Under
// ThreadSanitizer it must fail. If it does not, the suppressions hide too much.
#include <troupe/actors/executor.hpp>

#include <cstdio>

namespace {

long unguarded = 0;

void add_to_unguarded(troupe::kernel_context&) {
  ++unguarded;
}

} // namespace

int main() {
  troupe::graph::program p;
  for (auto* output : {"a", "b"}) {
    troupe::graph::var_desc var;
    var.name = output;
    p.main().add_var(std::move(var));
    troupe::graph::op_desc op;
    op.type = "racer";
    op.set_output("Out", {output});
    p.main().ops.push_back(std::move(op));
  }
  troupe::executor_options options;
  options.threads = 2;
  auto kernels = std::make_shared<troupe::kernel_table>();
  kernels->add("racer", troupe::device_kind::cpu, add_to_unguarded);
  options.kernels = std::move(kernels);
  troupe::executor exe{p, options};
  for (int step = 0; step < 2000; ++step)
    exe.run({});
  std::printf("%ld\n", unguarded);
}
