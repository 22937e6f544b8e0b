// SPDX-License-Identifier: Apache-2.0
#pragma once

// Hides which CAF this is, 0.17 or 1.x. This folder alone tests CAF's version;
// all other code uses the names below for what differs. docs/caf.md lists the
// differences. The library's own code includes inside.hpp, which adds what
// headers for applications do not need.
//
// Each version's header defines in `troupe::actors`:
//
//   context              what runs an actor; can be null
//   message_content      the content of a message: its size and elements
//   answers<Q, A>        for caf::typed_actor: Q is answered with an A, or void
//   post(to, m...)       sends without a sender
//   send(self, to, m...), send_later(self, to, delay, m...)
//   ask(self, to, timeout, m...)      a request: .then or .receive the answer
//   deliver(to, from, id, message, ctx)   what all of these come down to
//   fulfil(promise)      answers a request whose answer is void
//   answer_category      that of Troupe's errors in caf::error
//   make_answer(code, text)           such an error; the code is not 0
//   register_types<block>()           of a block of message types, see below
//   set_option(config, "scheduler.x", value)
//   hooked_actor<Base, Hooks>         tells Hooks of an actor's messages
//   tells_of_skipped     true if it tells of messages that the actor skips
//   mailboxless_actor    an actor whose messages go to `receive` at once
//   worker_task          something that runs on a worker of CAF
//
// Messages: what is sent is in a block of type ids of CAF (1.x finds types by
// their ids), and also in CAF_ALLOW_UNSAFE_MESSAGE_TYPE if it stays within the
// process. Atoms are made with the form of CAF_ADD_ATOM that has four
// arguments. Both versions understand these macros.

#include <caf/config.hpp>

#if CAF_MAJOR_VERSION == 0
#include <troupe/actors/caf/caf_0_17.hpp>
#elif CAF_MAJOR_VERSION == 1
#include <troupe/actors/caf/caf_1.hpp>
#else
#error "Troupe knows CAF 0.17 and 1.x; see docs/caf.md"
#endif
