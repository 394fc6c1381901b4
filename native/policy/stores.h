// The choice between cached and streaming stores. Thresholds: policy/thresholds.def.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "memory/streaming_copy.h"
#include "policy/thresholds.h"

namespace tilework {

// The memory of this machine as the choice of stores sees it.
struct MemoryFacts {
  // Of the largest cache that one core reaches, as the system reports it.
  int64_t last_level_bytes;
  // Measured once, when first asked: streaming stores are so slow here that they never pay. It happens where
  // they are emulated.
  bool (*is_streaming_slow)();
  // Of all runs, whatever their size: the environment variable TILEWORK_STORES, `cached` or `streaming`.
  std::optional<Stores> fixed = {};
};

const MemoryFacts& memory_facts();

// Bytes of source and destination from which on a whole run streams, on so many threads. Others use a part of
// the cache: from half of it on a thread's plain stores are no faster, even for a copy. The buffers in which
// streamed lines wait are few, and hardware threads share them: there plain stores are faster up to three
// quarters.
int64_t streaming_bytes(const MemoryFacts& facts, size_t threads);

// For a caller that writes a whole destination from memory to memory.
Stores choose_stores(int64_t bytes, size_t threads, const MemoryFacts& facts = memory_facts());
// The numbers by which that was chosen, for explain().
std::string stores_reason(int64_t bytes, size_t threads, const MemoryFacts& facts = memory_facts());

}  // namespace tilework
