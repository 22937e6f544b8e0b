// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/command.hpp>

int main(int argc, char** argv) {
  return troupe::apps::run_command(argc, argv);
}
