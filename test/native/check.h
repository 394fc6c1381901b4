// A minimal test framework: a check that reports its location, and a count of failures for main.
#pragma once

#include <cstdio>
#include <string>

#include "error.h"

namespace tilework::test {

inline int failures = 0;

inline void report(bool holds, const char* text, const char* file, int line,
                   const std::string& context = {}) {
  if (holds) return;
  ++failures;
  std::fprintf(stderr, "%s:%d: %s does not hold. %s\n", file, line, text, context.c_str());
}

// Name of the error code that `body` throws; empty if it throws nothing.
template <class Body>
std::string code_of(Body body) {
  try {
    body();
  } catch (const Error& error) {
    return error.name();
  }
  return {};
}

inline int result() {
  if (failures > 0) std::fprintf(stderr, "%d checks failed.\n", failures);
  return failures > 0 ? 1 : 0;
}

}  // namespace tilework::test

#define CHECK(condition) ::tilework::test::report((condition), #condition, __FILE__, __LINE__)
// The context is evaluated only on failure: building it often takes longer than the check.
#define CHECK_IN(context, condition) \
  ((condition) ? void() : ::tilework::test::report(false, #condition, __FILE__, __LINE__, (context)))
