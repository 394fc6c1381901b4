#include "pools.h"

#include <cstdlib>
#include <mutex>

#include "io/temporary_file.h"
#include "parallel/thread_count.h"

namespace tilework::binding {
namespace {

// Never destroyed: the exit handler below needs it after static objects are gone.
struct Shared {
  std::mutex mutex;
  std::weak_ptr<Pools> pools;
  bool exit_handler_set = false;
};

Shared& shared() {
  static Shared* instance = new Shared;
  return *instance;
}

// process.exit() ends the process without shutting environments down: jobs would continue in a dying process,
// and temporary files would stay in the user's folder. Windows has ended all other threads before it calls a
// library's handlers, perhaps while they held a mutex, and deletes the temporary files itself.
#ifndef _WIN32
void at_process_exit() {
  std::shared_ptr<Pools> pools;
  {
    const std::lock_guard lock(shared().mutex);
    pools = shared().pools.lock();
  }
  if (pools != nullptr) {
    pools->compute.stop();
    pools->blocking.stop();
  }
  TemporaryFile::remove_all_names();
}
#endif

}  // namespace

std::shared_ptr<Pools> share_pools() {
  const std::lock_guard lock(shared().mutex);
  std::shared_ptr<Pools> pools = shared().pools.lock();
  if (pools == nullptr) {
    pools.reset(new Pools{ThreadPool(default_threads())});
    shared().pools = pools;
  }
#ifndef _WIN32
  if (!shared().exit_handler_set) shared().exit_handler_set = std::atexit(at_process_exit) == 0;
#endif
  return pools;
}

}  // namespace tilework::binding
