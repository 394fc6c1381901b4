// Names the running case when a program ends by an access outside its memory (guarded_memory.h).
#pragma once

#include <unistd.h>

#include <csignal>
#include <cstring>
#include <string_view>

namespace tilework::test {

// The handler may not allocate.
inline char running_case[200];

inline void on_crash(int signal) {
  constexpr std::string_view kWhat = "Access outside the source or destination in ";
  (void)!write(STDERR_FILENO, kWhat.data(), kWhat.size());
  (void)!write(STDERR_FILENO, running_case, std::strlen(running_case));
  _exit(128 + signal);
}

inline void report_crashes() {
  for (int signal : {SIGSEGV, SIGBUS}) std::signal(signal, on_crash);
}

}  // namespace tilework::test
