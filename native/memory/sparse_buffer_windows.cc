// Reserved addresses of which a page is committed when it is filled or first touched. Windows counts every
// committed byte as memory that it must have, so committing all of a large tensor would fail.
#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>
#include <string>

#include "error.h"
#include "io/windows_files.h"
#include "memory/sparse_buffer.h"

namespace tilework {
namespace {

// A kernel that touches pages which nobody filled touches few of them.
constexpr int64_t kPageBytes = 4096;
constexpr int64_t kTouchedBytes = 16 * kPageBytes;

// The reserved ranges by address. Never destroyed: threads may still read while the process exits. The
// handler takes the mutex in the thread that faulted, which never holds it: the code under it touches no
// buffer.
struct Reserved {
  std::mutex mutex;
  std::map<uintptr_t, uintptr_t> end_by_begin;
  bool has_handler = false;
};

Reserved& reserved() {
  static Reserved* instance = new Reserved;
  return *instance;
}

// The end of the reserved range that contains the address; 0 for any other.
uintptr_t end_of_range(uintptr_t address) {
  const std::lock_guard lock(reserved().mutex);
  const auto after = reserved().end_by_begin.upper_bound(address);
  if (after == reserved().end_by_begin.begin()) return 0;
  const uintptr_t end = std::prev(after)->second;
  return address < end ? end : 0;
}

bool commit_pages(uintptr_t begin, uintptr_t end) {
  return VirtualAlloc(reinterpret_cast<void*>(begin), end - begin, MEM_COMMIT, PAGE_READWRITE) != nullptr;
}

LONG CALLBACK commit_on_touch(EXCEPTION_POINTERS* exception) {
  const EXCEPTION_RECORD& record = *exception->ExceptionRecord;
  if (record.ExceptionCode != EXCEPTION_ACCESS_VIOLATION || record.NumberParameters < 2)
    return EXCEPTION_CONTINUE_SEARCH;
  const auto address = static_cast<uintptr_t>(record.ExceptionInformation[1]);
  const uintptr_t end = end_of_range(address);
  if (end == 0) return EXCEPTION_CONTINUE_SEARCH;
  const uintptr_t begin = address / kPageBytes * kPageBytes;
  const bool is_committed = commit_pages(begin, std::min<uintptr_t>(begin + kTouchedBytes, end));
  return is_committed ? EXCEPTION_CONTINUE_EXECUTION : EXCEPTION_CONTINUE_SEARCH;
}

void add_range(uintptr_t begin, uintptr_t end) {
  const std::lock_guard lock(reserved().mutex);
  if (!reserved().has_handler)
    reserved().has_handler = AddVectoredExceptionHandler(1, commit_on_touch) != nullptr;
  reserved().end_by_begin[begin] = end;
}

}  // namespace

SparseBuffer::SparseBuffer(int64_t size) : size_(size) {
  if (size == 0) return;
  void* memory = VirtualAlloc(nullptr, static_cast<size_t>(size), MEM_RESERVE, PAGE_READWRITE);
  if (memory == nullptr) {
    throw Error(ErrorCode::kLimit, "The system has no addresses for a sparse buffer of " +
                                       std::to_string(size) + " bytes; read the tensor in smaller parts.");
  }
  data_ = static_cast<uint8_t*>(memory);
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  add_range(begin, begin + static_cast<uintptr_t>(page_above(size)));
}

SparseBuffer::~SparseBuffer() {
  if (data_ == nullptr) return;
  {
    const std::lock_guard lock(reserved().mutex);
    reserved().end_by_begin.erase(reinterpret_cast<uintptr_t>(data_));
  }
  VirtualFree(data_, 0, MEM_RELEASE);
}

int64_t SparseBuffer::page_bytes() { return kPageBytes; }

// A system call that writes into pages without memory fails, where a store would commit them.
void SparseBuffer::commit(int64_t begin, int64_t end) {
  const auto address = reinterpret_cast<uintptr_t>(data_);
  if (!commit_pages(address + static_cast<uintptr_t>(begin), address + static_cast<uintptr_t>(end)))
    throw system_error(windows::last_errno(), "VirtualAlloc", {});
}

void SparseBuffer::clear() noexcept {
  if (filled_begin_ == filled_end_) return;
  // Pages without memory among them cost nothing.
  VirtualFree(data_ + filled_begin_, static_cast<size_t>(filled_end_ - filled_begin_), MEM_DECOMMIT);
  filled_begin_ = filled_end_ = 0;
}

}  // namespace tilework
