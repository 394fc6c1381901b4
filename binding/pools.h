// The threads of this process, shared by all environments that loaded the addon. They end with the last
// environment or with the process.
#pragma once

#include <memory>

#include "parallel/thread_pool.h"

namespace tilework::binding {

// Writes and fsync block; on their own threads they never keep a kernel from running.
inline constexpr size_t kBlockingThreads = 4;

struct Pools {
  ThreadPool compute;
  ThreadPool blocking{kBlockingThreads};
};

std::shared_ptr<Pools> share_pools();

}  // namespace tilework::binding
