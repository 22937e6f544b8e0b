// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <caf/type_id.hpp>

/// Where Troupe's blocks in CAF's table of message types begin. Each id is
/// unique within a program. Blocks of an application usually begin at
/// caf::first_custom_type_id (200) and must end below 2000.
namespace troupe::actors::type_ids {

///@{ The first id of each block, and the end of the last one.
inline constexpr caf::type_id_t handles = 2000;
inline constexpr caf::type_id_t nodes = 2010;
inline constexpr caf::type_id_t answers = 2030;
inline constexpr caf::type_id_t actor_op = 2035;
inline constexpr caf::type_id_t actor_op_inside = 2038;
inline constexpr caf::type_id_t training = 2040;
inline constexpr caf::type_id_t trainer_inside = 2070;
inline constexpr caf::type_id_t predictor_inside = 2075;
inline constexpr caf::type_id_t prefetching = 2080;
inline constexpr caf::type_id_t parallel = 2085;
inline constexpr caf::type_id_t bench = 2088;
inline constexpr caf::type_id_t end = 2100;
///@}

} // namespace troupe::actors::type_ids
