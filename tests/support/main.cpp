// SPDX-License-Identifier: Apache-2.0
// The header is there already, precompiled: the two macros make it add what it
// leaves out elsewhere.
#define DOCTEST_CONFIG_IMPLEMENT
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
