// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/comm/engine/engine.hpp>
#include <troupe/comm/engine/join.hpp>

namespace troupe::comm {

///@{
/// What the modules of engines offer (base/module.hpp): they connect the
/// processes of a group. The result belongs to the caller. Throws what
/// `join_gloo_group` and `join_mpi_group` throw.
extern "C" engine* troupe_make_gloo_engine(const gloo_group_options& options);
extern "C" engine* troupe_make_mpi_engine();
///@}

} // namespace troupe::comm
