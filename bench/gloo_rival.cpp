// SPDX-License-Identifier: Apache-2.0
#include "rivals.hpp"

#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

namespace {

class gloo_rival final : public rival {
public:
  gloo_rival(std::size_t rank, const std::string& folder)
    : context_(
      std::make_shared<gloo::rendezvous::Context>(static_cast<int>(rank), 2)) {
    gloo::transport::tcp::attr at{"127.0.0.1"};
    auto device = gloo::transport::tcp::CreateDevice(at);
    gloo::rendezvous::FileStore store{folder};
    context_->connectFullMesh(store, device);
  }

  void all_reduce(float* data, std::size_t count) override {
    gloo::AllreduceOptions options{context_};
    options.setOutput(data, count);
    options.setReduceFunction(
      [](void* to, const void* a, const void* b, std::size_t n) {
        gloo::sum<float>(to, a, b, n);
      });
    gloo::allreduce(options);
  }

private:
  std::shared_ptr<gloo::rendezvous::Context> context_;
};

} // namespace

std::unique_ptr<rival> connect_gloo(std::size_t rank,
                                    const std::string& folder) {
  return std::make_unique<gloo_rival>(rank, folder);
}
