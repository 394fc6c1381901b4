// Child processes, for tests that end, change or restrict a whole process.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#ifdef __linux__
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

namespace tilework::test {

// Wait status of a child process that runs `body`; `body` may use _exit().
template <class Body>
int status_of_child(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(0);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return status;
}

inline bool ended_with(int status, int code) { return WIFEXITED(status) && WEXITSTATUS(status) == code; }

// A child process that runs `body`, reports through a pipe that it is ready, and waits to be killed.
class HeldChild {
 public:
  template <class Body>
  explicit HeldChild(Body body) {
    if (pipe(pipe_) != 0) return;
    child_ = fork();
    if (child_ == 0) {
      body();
      const char sign = 'r';
      if (write(pipe_[1], &sign, 1) == 1) pause();
      _exit(1);
    }
    char sign = 0;
    is_ready_ = read(pipe_[0], &sign, 1) == 1;
  }
  ~HeldChild() {
    kill_now();
    close(pipe_[0]);
    close(pipe_[1]);
  }
  HeldChild(const HeldChild&) = delete;
  HeldChild& operator=(const HeldChild&) = delete;

  bool is_ready() const { return is_ready_; }

  void kill_now() {
    if (child_ <= 0) return;
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    child_ = 0;
  }

 private:
  int pipe_[2] = {-1, -1};
  pid_t child_ = 0;
  bool is_ready_ = false;
};

#ifdef __linux__
// System calls that some file systems and security modules refuse; they fail for the rest of this process.
enum class Refused { kUnnamedFiles, kNamesForUnnamedFiles };

inline bool refuse(Refused what) {
  const bool opens = what == Refused::kUnnamedFiles;
  const unsigned call = opens ? SYS_openat : SYS_linkat;
  const unsigned error = SECCOMP_RET_ERRNO | static_cast<unsigned>(opens ? EOPNOTSUPP : EPERM);
  const unsigned flag = opens ? static_cast<unsigned>(O_TMPFILE & ~O_DIRECTORY) : ~0U;
  // Checks the number of the call, then the low half of its third argument.
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args) + 2 * sizeof(__u64)),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, flag, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter = {static_cast<unsigned short>(sizeof(program) / sizeof(program[0])), program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}
#endif

}  // namespace tilework::test
