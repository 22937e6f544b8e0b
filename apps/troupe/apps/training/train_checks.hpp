// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/program_source.hpp>
#include <troupe/apps/progress.hpp>
#include <troupe/apps/rank_part.hpp>
#include <troupe/apps/training/train_run.hpp>

namespace troupe::apps {

/// Throws usage_error for checks of parameters that devices do not share.
void check_verification(const train_options& options);
/// Throws error(io_failure) if this rank cannot write its trace
/// (trace::require_trace_place): the file is opened after the trial of devices,
/// which takes a while.
void check_trace(const train_options& options, const rank_part& part);
/// Warns if TROUPE_ELASTIC is set although this process is no rank of a job.
void tell_of_unused_range(const rank_part& part, progress& shown);
/// Throws usage_error for what one rank cannot do for all.
void check_part(const train_options& options, const program_bundle& bundle,
                const rank_part& part);

} // namespace troupe::apps
