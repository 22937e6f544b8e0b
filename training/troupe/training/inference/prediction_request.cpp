// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/inference/prediction_request.hpp>

#include <troupe/base/error.hpp>

namespace troupe::inference {

prediction_request::~prediction_request() {
  if (answer_)
    refuse(error(errc::cancelled, "the predictor has ended"));
}

void prediction_request::answer(prediction_outcome outcome) noexcept {
  try {
    if (auto answer = std::exchange(answer_, nullptr))
      answer(std::move(outcome));
  } catch (...) { // of the application's function
  }
}

void refuse(const request_batch& batch, const error& why) noexcept {
  for (auto& item : batch)
    item.request->refuse(why);
}

} // namespace troupe::inference
