// SPDX-License-Identifier: Apache-2.0
// What is the same in all versions of CAF.
#include <troupe/actors/caf/inside.hpp>

#include <troupe/base/cores.hpp>
#include <troupe/base/threads.hpp>

#include <cxxabi.h>

#include <cstdlib>

#include <pthread.h>

namespace troupe::actors {

std::string caf_version() {
  return std::to_string(CAF_MAJOR_VERSION) + "."
         + std::to_string(CAF_MINOR_VERSION) + "."
         + std::to_string(CAF_PATCH_VERSION);
}

void begin_worker(std::size_t index, std::size_t workers) {
  if (take_all_cores(workers))
    pin_this_thread(index);
  name_thread(::pthread_self(),
              ("troupe-work-" + std::to_string(index)).c_str());
}

void begin_stand_in() {
  name_thread(::pthread_self(), "troupe-stand-in");
}

void answer_request(caf::mailbox_element& element, caf::message answer,
                    context ctx) {
  if (element.mid.is_request() && element.sender)
    deliver(*element.sender, nullptr, element.mid.response_id(),
            std::move(answer), ctx);
}

std::string type_name_of(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name{
    abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), &std::free};
  return status == 0 ? name.get() : type.name();
}

} // namespace troupe::actors
