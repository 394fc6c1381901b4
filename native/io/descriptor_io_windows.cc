#include <algorithm>

#include "error.h"
#include "io/descriptor_io.h"
#include "io/windows_files.h"

namespace tilework {
namespace {

// A single call takes less than 4 GiB.
constexpr int64_t kMaxCallBytes = int64_t{1} << 30;

// One read or write at an offset. Files are opened for overlapped calls: the system runs the other kind one
// after the other, so that threads would wait for each other.
class Transfer {
 public:
  Transfer() : event_(CreateEventW(nullptr, TRUE, FALSE, nullptr)) {}
  ~Transfer() {
    if (event_ != nullptr) CloseHandle(event_);
  }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // Returns the number of bytes that moved, 0 at the end of the file. Errors: a system error, with the name
  // that the call has elsewhere.
  template <class Call>
  int64_t run(Call call, const char* name, const DescriptorEnd& end, int64_t offset) {
    if (event_ == nullptr) throw system_error(windows::last_errno(), name, end.path);
    OVERLAPPED overlapped{};
    overlapped.Offset = static_cast<DWORD>(offset);
    overlapped.OffsetHigh = static_cast<DWORD>(offset >> 32);
    overlapped.hEvent = event_;
    const HANDLE handle = windows::handle_of(end.descriptor);
    DWORD count = 0;
    if (call(handle, &overlapped) == 0 && GetLastError() != ERROR_IO_PENDING) return failed(name, end);
    if (GetOverlappedResult(handle, &overlapped, &count, TRUE) == 0) return failed(name, end);
    return count;
  }

 private:
  static int64_t failed(const char* name, const DescriptorEnd& end) {
    if (GetLastError() == ERROR_HANDLE_EOF) return 0;
    throw system_error(windows::last_errno(), name, end.path);
  }

  HANDLE event_;
};

}  // namespace

int64_t copy_in_kernel(const DescriptorEnd&, const DescriptorEnd&, int64_t) { return 0; }

int64_t read_fully(const DescriptorEnd& from, uint8_t* to, int64_t size) {
  Transfer transfer;
  int64_t done = 0;
  while (done < size) {
    const auto chunk = static_cast<DWORD>(std::min(size - done, kMaxCallBytes));
    const auto call = [&](HANDLE file, OVERLAPPED* overlapped) {
      return ReadFile(file, to + done, chunk, nullptr, overlapped);
    };
    const int64_t count = transfer.run(call, "pread", from, from.offset + done);
    if (count == 0) break;
    done += count;
  }
  return done;
}

void write_fully(const DescriptorEnd& to, const uint8_t* bytes, int64_t size) {
  Transfer transfer;
  int64_t done = 0;
  while (done < size) {
    const auto chunk = static_cast<DWORD>(std::min(size - done, kMaxCallBytes));
    const auto call = [&](HANDLE file, OVERLAPPED* overlapped) {
      return WriteFile(file, bytes + done, chunk, nullptr, overlapped);
    };
    done += transfer.run(call, "pwrite", to, to.offset + done);
  }
}

void sync_file(FileHandle descriptor, const std::string& path) {
  if (FlushFileBuffers(windows::handle_of(descriptor)) == 0)
    throw system_error(windows::last_errno(), "fsync", path);
}

}  // namespace tilework
