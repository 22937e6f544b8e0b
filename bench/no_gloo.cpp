// SPDX-License-Identifier: Apache-2.0
#include "rivals.hpp"

std::unique_ptr<rival> connect_gloo(std::size_t, const std::string&) {
  return nullptr;
}
