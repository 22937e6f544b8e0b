// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/inference_session.hpp>

#include <troupe/actors/caf/inside.hpp>
#include <troupe/actors/own_system.hpp>
#include <troupe/training/actors/predictor_front.hpp>

#include <utility>

namespace troupe {

struct inference_session::impl {
  std::unique_ptr<actors::own_system> own;
  caf::actor_system* system = nullptr;
  actors::predictor_front front;

  impl(const graph::program& test, const parameter_set& parameters,
       predictor_options options)
    : system(options.executor.system) {
    if (!system) {
      own =
        std::make_unique<actors::own_system>(options.executor.threads, false);
      system = own->system.get();
    }
    front =
      actors::start_predictor(*system, test, parameters, std::move(options));
    forget_system();
  }

  ~impl() {
    caf::anon_send_exit(front.address, caf::exit_reason::user_shutdown);
    front.queue->wait_for_end();
    front = {};
    forget_system();
  }

  /// CAF keeps a reference to the system's logger in this thread. It must not
  /// outlive an own system.
  void forget_system() const {
    if (own)
      actors::forget_system();
  }

  struct at_return {
    const impl& of;
    ~at_return() { of.forget_system(); }
  };

  void ask(feed_map feeds, std::function<void(prediction_outcome)> done) {
    front.queue->add(share_batch(std::move(feeds)), std::move(done));
  }
};

inference_session::inference_session(const graph::program& test,
                                     const parameter_set& parameters,
                                     predictor_options options)
  : impl_(std::make_unique<impl>(test, parameters, std::move(options))) {}

inference_session::~inference_session() = default;

std::future<prediction> inference_session::predict(feed_map feeds) {
  auto promise = std::make_shared<std::promise<prediction>>();
  auto future = promise->get_future();
  impl_->ask(std::move(feeds), [promise](prediction_outcome outcome) {
    if (outcome.failure)
      promise->set_exception(std::make_exception_ptr(*outcome.failure));
    else
      promise->set_value(std::move(outcome.answer));
  });
  return future;
}

void inference_session::predict(feed_map feeds,
                                std::function<void(prediction_outcome)> done) {
  if (!done)
    throw error(errc::invalid_argument, "no function that gets the answer");
  impl_->ask(std::move(feeds), std::move(done));
}

void inference_session::replace_parameters(const parameter_set& parameters) {
  const impl::at_return forgets{*impl_};
  impl_->front.replace(parameters);
}

prediction_counts inference_session::counts() const {
  return impl_->front.queue->counts();
}

} // namespace troupe
