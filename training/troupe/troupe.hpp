// SPDX-License-Identifier: Apache-2.0
//
// All that a program needs which describes a network, trains it and asks it:
//
//   #include <troupe/troupe.hpp>
//
// Headers of one layer alone, such as <troupe/graph/layers.hpp>, compile
// faster. Traces that are read back are in <troupe/trace/trace_reader.hpp>, the
// live picture in <troupe/dashboard/board.hpp>, actors that train and predict
// in <troupe/training/actors/trainer.hpp> and predictor.hpp.
#pragma once

#include <troupe/actors/configure.hpp>
#include <troupe/actors/executor.hpp>
#include <troupe/actors/plain_executor.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/version.hpp>
#include <troupe/graph/gradients.hpp>
#include <troupe/graph/layers.hpp>
#include <troupe/graph/models.hpp>
#include <troupe/graph/optimizer.hpp>
#include <troupe/graph/program.hpp>
#include <troupe/kernels/io/csv.hpp>
#include <troupe/kernels/io/idx.hpp>
#include <troupe/kernels/io/npz.hpp>
#include <troupe/kernels/io/text.hpp>
#include <troupe/kernels/scope.hpp>
#include <troupe/kernels/tensor.hpp>
#include <troupe/training/data/dataset.hpp>
#include <troupe/training/data/generator_source.hpp>
#include <troupe/training/data_parallel/data_parallel.hpp>
#include <troupe/training/inference_session.hpp>
#include <troupe/training/training_session.hpp>
