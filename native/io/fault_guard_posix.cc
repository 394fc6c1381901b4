#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <vector>

#include "error.h"
#include "io/fault_guard.h"

namespace tilework {

// Seqlock: the handler may read an entry while another thread assigns it to another mapping, so the entry has
// a version that is odd during the update. An entry under update is never the one of the fault: a faulting
// reader keeps its mapping alive.
struct GuardedRange {
  std::atomic<uintptr_t> version{0};
  std::atomic<uintptr_t> begin{0};
  std::atomic<uintptr_t> end{0};
  std::atomic<uintptr_t> faults{0};

  void set(uintptr_t from, uintptr_t to) {
    version.fetch_add(1);
    begin.store(from);
    end.store(to);
    faults.store(0);
    version.fetch_add(1);
  }

  bool contains(uintptr_t address) const {
    const uintptr_t before = version.load();
    const bool inside = begin.load() <= address && address < end.load();
    return inside && before % 2 == 0 && version.load() == before;
  }
};

static_assert(std::atomic<uintptr_t>::is_always_lock_free, "a signal handler must not wait for a lock");

namespace {

// More doublings than any mapping has pages: from this fault on, everything that is left is replaced.
constexpr uintptr_t kMaxDoublings = 40;

// Blocks of entries are never freed, so the handler walks them without a lock.
struct Block {
  GuardedRange ranges[256];
  Block* next = nullptr;
};
std::atomic<Block*> first_block{nullptr};

// State of registration. The mutex protects it from other threads; the handler never takes it. Never
// destroyed: threads may still drop mappings while the process exits.
struct Registration {
  std::mutex mutex;
  std::vector<GuardedRange*> unused;
  bool installed = false;
};

Registration& registration() {
  static Registration* instance = new Registration;
  return *instance;
}

// Both are written once, before the handler is installed.
struct sigaction previous_action;
uintptr_t page_bytes = 0;

GuardedRange* find_range(uintptr_t address) {
  for (Block* block = first_block.load(); block != nullptr; block = block->next) {
    for (GuardedRange& range : block->ranges) {
      if (range.contains(address)) return &range;
    }
  }
  return nullptr;
}

// Maps zeros under the address, twice as many pages with every fault. A large truncated tensor costs a few
// faults instead of one per page, and a single bad page costs no other page.
bool put_zeros(GuardedRange& range, uintptr_t address) {
  const uintptr_t page = address / page_bytes * page_bytes;
  const uintptr_t left = range.end.load() - page;
  const uintptr_t faults = range.faults.fetch_add(1);
  const uintptr_t wanted = faults < kMaxDoublings ? page_bytes << faults : left;
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
#ifdef MAP_NORESERVE
  flags |= MAP_NORESERVE;
#endif
  void* const memory = reinterpret_cast<void*>(page);
  return mmap(memory, std::min(wanted, left), PROT_READ | PROT_WRITE, flags, -1, 0) != MAP_FAILED;
}

// Does what would have happened without this handler.
void pass_on(int signal, siginfo_t* info, void* context) {
  if ((previous_action.sa_flags & SA_SIGINFO) != 0) {
    previous_action.sa_sigaction(signal, info, context);
    return;
  }
  // A signal that another process sent does not repeat; one raised by an instruction does when the handler
  // returns.
  const bool sent = info->si_code <= 0;
  if (previous_action.sa_handler == SIG_IGN && sent) return;
  if (previous_action.sa_handler != SIG_IGN && previous_action.sa_handler != SIG_DFL) {
    previous_action.sa_handler(signal);
    return;
  }
  struct sigaction plain {};
  plain.sa_handler = SIG_DFL;
  sigaction(signal, &plain, nullptr);
  if (sent) raise(signal);
}

// Async-signal-safe: uses only lock-free atomics and system calls.
void handle(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  GuardedRange* range = info->si_code > 0 ? find_range(address) : nullptr;
  if (range == nullptr || !put_zeros(*range, address)) pass_on(signal, info, context);
  errno = saved_errno;
}

void install_handler() {
  if (registration().installed) return;
  page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  if (sigaction(SIGBUS, nullptr, &previous_action) != 0) throw system_error(errno, "sigaction", {});
  struct sigaction action {};
  action.sa_sigaction = handle;
  // Runs on the alternate signal stack if the host has set one. The mask is that of the earlier handler,
  // which may be called from here and relies on it.
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  action.sa_mask = previous_action.sa_mask;
  if (sigaction(SIGBUS, &action, nullptr) != 0) throw system_error(errno, "sigaction", {});
  registration().installed = true;
}

void add_block() {
  auto* block = new Block;
  registration().unused.reserve(registration().unused.size() + std::size(block->ranges));
  for (GuardedRange& range : block->ranges) registration().unused.push_back(&range);
  block->next = first_block.load();
  first_block.store(block);
}

}  // namespace

FaultGuard::FaultGuard(uint8_t* data, size_t size) {
  const std::lock_guard lock(registration().mutex);
  install_handler();
  if (registration().unused.empty()) add_block();
  range_ = registration().unused.back();
  registration().unused.pop_back();
  const auto begin = reinterpret_cast<uintptr_t>(data);
  range_->set(begin, begin + (size + page_bytes - 1) / page_bytes * page_bytes);
}

FaultGuard::~FaultGuard() {
  const std::lock_guard lock(registration().mutex);
  range_->set(0, 0);
  registration().unused.push_back(range_);
}

bool FaultGuard::faulted() const { return range_->faults.load() > 0; }

}  // namespace tilework
