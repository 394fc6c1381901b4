/*
 * A library for LD_PRELOAD that lets one call of the system fail: the n-th that concerns a folder or a file in
 * it. Calls of Node itself (event loop, pipes) never fail. failing_calls_child.mjs controls it by access() on
 * paths that do not exist:
 *
 *   /tilework-fault/KIND/N/FOLDER  the N-th call fails; KIND is an error number, "short" (half of the bytes of
 *                                  a read or write) or "threads" (no thread starts)
 *   /tilework-fault/off            no call fails; succeeds if one has failed
 *
 * readlink() of /tilework-fault/hit gives the name of the call that failed.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define CONTROL "/tilework-fault/"
#define EXPORTED __attribute__((visibility("default")))

enum { kNone, kError, kShort, kThreads };
static _Atomic int kind = kNone;
static int error_number;
static long wanted;
static atomic_long counted;
static _Atomic(const char*) hit = NULL;
static char folder[4096];

#define REAL(name)                                   \
  static __typeof__(name)* real;                     \
  if (real == NULL) real = (__typeof__(name)*)dlsym(RTLD_NEXT, #name)

static int begins_in_folder(const char* path) { return strncmp(path, folder, strlen(folder)) == 0; }

static int concerns_descriptor(int descriptor) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const long length = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
  if (length <= 0) return 0;
  path[length] = 0;
  return begins_in_folder(path);
}

static int concerns(int directory, const char* path) {
  if (path[0] == '/') return begins_in_folder(path) || strncmp(path, "/proc/self/fd/", 14) == 0;
  return directory != AT_FDCWD && concerns_descriptor(directory);
}

/* Whether this call is the one that fails. */
static int is_hit(int of, const char* name) {
  if (kind != of || atomic_fetch_add(&counted, 1) + 1 != wanted) return 0;
  hit = name;
  if (of == kError) errno = error_number;
  return 1;
}

#define FAILS(condition, name) (kind == kError && (condition) && is_hit(kError, name))
#define HALVED(descriptor, size, name) \
  (kind == kShort && (size) > 1 && concerns_descriptor(descriptor) && is_hit(kShort, name) ? (size) / 2 : (size))

static int control(const char* command) {
  const int was_hit = hit != NULL;
  kind = kNone;
  if (strcmp(command, "off") == 0) return was_hit ? 0 : -1;
  char name[32];
  long number = 0;
  if (sscanf(command, "%31[^/]/%ld%4095s", name, &number, folder) != 3) return -1;
  hit = NULL;
  counted = 0;
  wanted = number;
  error_number = atoi(name);
  kind = strcmp(name, "short") == 0 ? kShort : strcmp(name, "threads") == 0 ? kThreads : kError;
  return 0;
}

EXPORTED int access(const char* path, int mode) {
  REAL(access);
  if (strncmp(path, CONTROL, strlen(CONTROL)) == 0) {
    const int result = control(path + strlen(CONTROL));
    if (result != 0) errno = ENOENT;
    return result;
  }
  return FAILS(concerns(AT_FDCWD, path), "access") ? -1 : real(path, mode);
}

EXPORTED ssize_t readlink(const char* path, char* to, size_t size) {
  REAL(readlink);
  if (strcmp(path, CONTROL "hit") == 0) {
    const char* name = hit == NULL ? "none" : hit;
    const size_t length = strlen(name) < size ? strlen(name) : size;
    memcpy(to, name, length);
    return (ssize_t)length;
  }
  return FAILS(concerns(AT_FDCWD, path), "readlink") ? -1 : real(path, to, size);
}

EXPORTED int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* with) {
  REAL(pthread_create);
  if (kind == kThreads) {
    hit = "pthread_create";
    return EAGAIN;
  }
  return real(thread, attributes, run, with);
}

EXPORTED int open64(const char* path, int flags, ...) {
  REAL(open64);
  va_list rest;
  va_start(rest, flags);
  const int mode = va_arg(rest, int);
  va_end(rest);
  return FAILS(concerns(AT_FDCWD, path), "open") ? -1 : real(path, flags, mode);
}

EXPORTED int openat64(int directory, const char* path, int flags, ...) {
  REAL(openat64);
  va_list rest;
  va_start(rest, flags);
  const int mode = va_arg(rest, int);
  va_end(rest);
  return FAILS(concerns(directory, path), "openat") ? -1 : real(directory, path, flags, mode);
}

/* openat2 has no function of the C library. */
EXPORTED long syscall(long number, ...) {
  REAL(syscall);
  va_list rest;
  va_start(rest, number);
  long a[6];
  for (int i = 0; i < 6; ++i) a[i] = va_arg(rest, long);
  va_end(rest);
  const int is_openat2 = number == SYS_openat2 && kind == kError;
  if (is_openat2 && concerns((int)a[0], (const char*)a[1]) && is_hit(kError, "openat2")) return -1;
  return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

#define READS(function, type)                                                   \
  EXPORTED ssize_t function(int descriptor, type bytes, size_t size) {          \
    REAL(function);                                                             \
    if (FAILS(concerns_descriptor(descriptor), #function)) return -1;           \
    return real(descriptor, bytes, HALVED(descriptor, size, #function));        \
  }
#define READS_AT(function, type)                                                      \
  EXPORTED ssize_t function(int descriptor, type bytes, size_t size, off64_t at) {    \
    REAL(function);                                                                   \
    if (FAILS(concerns_descriptor(descriptor), #function)) return -1;                 \
    return real(descriptor, bytes, HALVED(descriptor, size, #function), at);          \
  }
READS(read, void*)
READS(write, const void*)
READS_AT(pread64, void*)
READS_AT(pwrite64, const void*)

EXPORTED ssize_t copy_file_range(int from, off64_t* at, int to, off64_t* to_at, size_t size, unsigned flags) {
  REAL(copy_file_range);
  if (FAILS(concerns_descriptor(to), "copy_file_range")) return -1;
  return real(from, at, to, to_at, HALVED(to, size, "copy_file_range"), flags);
}

/* A call whose first argument is a descriptor. */
#define ON_DESCRIPTOR(result, function, parameters, arguments)            \
  EXPORTED result function parameters {                                   \
    REAL(function);                                                       \
    if (FAILS(concerns_descriptor(descriptor), #function)) return -1;     \
    return real arguments;                                                \
  }
ON_DESCRIPTOR(int, fsync, (int descriptor), (descriptor))
ON_DESCRIPTOR(int, fdatasync, (int descriptor), (descriptor))
ON_DESCRIPTOR(int, ftruncate64, (int descriptor, off64_t size), (descriptor, size))
ON_DESCRIPTOR(int, fallocate64, (int descriptor, int mode, off64_t at, off64_t size), (descriptor, mode, at, size))
ON_DESCRIPTOR(int, sync_file_range, (int descriptor, off64_t at, off64_t size, unsigned flags), (descriptor, at, size, flags))
ON_DESCRIPTOR(int, flock, (int descriptor, int how), (descriptor, how))
ON_DESCRIPTOR(int, fchmod, (int descriptor, mode_t mode), (descriptor, mode))
ON_DESCRIPTOR(int, fchown, (int descriptor, uid_t owner, gid_t group), (descriptor, owner, group))
ON_DESCRIPTOR(int, fstat64, (int descriptor, struct stat64* status), (descriptor, status))
ON_DESCRIPTOR(off64_t, lseek64, (int descriptor, off64_t at, int from), (descriptor, at, from))
ON_DESCRIPTOR(ssize_t, flistxattr, (int descriptor, char* list, size_t size), (descriptor, list, size))
ON_DESCRIPTOR(ssize_t, fgetxattr, (int descriptor, const char* name, void* value, size_t size), (descriptor, name, value, size))
ON_DESCRIPTOR(int, fsetxattr, (int descriptor, const char* name, const void* value, size_t size, int flags), (descriptor, name, value, size, flags))

/* The descriptor is closed in any case, as on Linux. */
EXPORTED int close(int descriptor) {
  REAL(close);
  const int fails = FAILS(concerns_descriptor(descriptor), "close");
  const int result = real(descriptor);
  if (!fails) return result;
  errno = error_number;
  return -1;
}

/* A call that names a file, below a folder or not. */
#define ON_PATH(result, function, name, directory, path, parameters, arguments) \
  EXPORTED result function parameters {                                         \
    REAL(function);                                                             \
    if (FAILS(concerns(directory, path), name)) return -1;                      \
    return real arguments;                                                      \
  }
ON_PATH(int, fstatat64, "fstatat", at, path, (int at, const char* path, struct stat64* status, int flags), (at, path, status, flags))
ON_PATH(int, lstat64, "lstat", AT_FDCWD, path, (const char* path, struct stat64* status), (path, status))
ON_PATH(ssize_t, readlinkat, "readlinkat", at, path, (int at, const char* path, char* to, size_t size), (at, path, to, size))
ON_PATH(int, linkat, "linkat", to, new_path, (int at, const char* path, int to, const char* new_path, int flags), (at, path, to, new_path, flags))
ON_PATH(int, renameat, "renameat", to, new_path, (int at, const char* path, int to, const char* new_path), (at, path, to, new_path))
ON_PATH(int, rename, "rename", AT_FDCWD, path, (const char* path, const char* new_path), (path, new_path))
ON_PATH(int, unlinkat, "unlinkat", at, path, (int at, const char* path, int flags), (at, path, flags))
ON_PATH(int, unlink, "unlink", AT_FDCWD, path, (const char* path), (path))
ON_PATH(int, mkdir, "mkdir", AT_FDCWD, path, (const char* path, mode_t mode), (path, mode))

EXPORTED void* mmap64(void* where, size_t size, int protection, int flags, int descriptor, off64_t at) {
  REAL(mmap64);
  if (descriptor >= 0 && FAILS(concerns_descriptor(descriptor), "mmap")) return MAP_FAILED;
  return real(where, size, protection, flags, descriptor, at);
}
