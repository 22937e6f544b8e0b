// SPDX-License-Identifier: Apache-2.0
//
// All that a program needs which describes a network, trains it and asks it, in
// its own thread or among actors, with ops of its own:
//
//   #include <troupe/troupe.hpp>
//
// A third of the time that it takes to compile is for CAF's headers, which
// those of the trainer and the predictor include. Headers of one layer alone,
// such as <troupe/graph/layers.hpp>, compile faster. Traces that are read back
// are in <troupe/trace/trace_reader.hpp>, actors that are traced in
// <troupe/actors/traced_actor.hpp>, and the live picture, which is a library of
// its own, in <troupe/dashboard/board.hpp>.
#pragma once

#include <troupe/actors/actor_op.hpp>
#include <troupe/actors/configure.hpp>
#include <troupe/actors/executor.hpp>
#include <troupe/actors/plain_executor.hpp>
#include <troupe/actors/tracing/step_watchdog.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/version.hpp>
#include <troupe/graph/gradients.hpp>
#include <troupe/graph/layers.hpp>
#include <troupe/graph/models.hpp>
#include <troupe/graph/optimizer.hpp>
#include <troupe/graph/own_ops/gradient_check.hpp>
#include <troupe/graph/own_ops/own_op.hpp>
#include <troupe/graph/program.hpp>
#include <troupe/kernels/io/csv.hpp>
#include <troupe/kernels/io/idx.hpp>
#include <troupe/kernels/io/npz.hpp>
#include <troupe/kernels/io/text.hpp>
#include <troupe/kernels/scope.hpp>
#include <troupe/kernels/tensor.hpp>
#include <troupe/training/actors/predictor.hpp>
#include <troupe/training/actors/trainer.hpp>
#include <troupe/training/data/dataset.hpp>
#include <troupe/training/data/generator_source.hpp>
#include <troupe/training/data/prefetching_source.hpp>
#include <troupe/training/data_parallel/data_parallel.hpp>
#include <troupe/training/inference_session.hpp>
#include <troupe/training/training_session.hpp>
