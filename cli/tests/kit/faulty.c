// A disk that fails: a library that is loaded before the C library. While the file $FAULT_ARMED exists, writes,
// flushes, locks and other changes fail for all files whose path contains $FAULT_IN. The content of $FAULT_ARMED is the
// kind of the fault.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static int opened(const char *name, int at, const char *path, int flags, mode_t mode) {
  int (*real)(int, const char *, int, mode_t) = dlsym(RTLD_NEXT, name);
  return real(at, path, flags, mode);
}

// Returns the kind of fault for this path, or 0. 'e' is EIO, 's' is no space, 't' is half of a write and then EIO, 'f'
// is a failed flush, 'r' is a disk that has become read-only, 'l' is a file system without locks, like NFS without its
// lock server.
static char fault_of(const char *path) {
  const char *in = getenv("FAULT_IN"), *armed = getenv("FAULT_ARMED");
  char kind = 0;
  if (!in || !armed || !strstr(path, in)) return 0;
  int flag = opened("openat", AT_FDCWD, armed, O_RDONLY | O_CLOEXEC, 0);
  if (flag < 0) return 0;
  if (read(flag, &kind, 1) != 1) kind = 0;
  close(flag);
  return kind;
}

static int path_of(int fd, char *path, size_t room) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, room - 1);
  if (length <= 0) return 0;
  path[length] = 0;
  return 1;
}

static char fault(int fd) {
  char path[4096];
  return path_of(fd, path, sizeof path) ? fault_of(path) : 0;
}

// Returns 1 if a change of this path must fail, and sets errno. A relative path begins at the folder `at`.
static int is_refused(int at, const char *path) {
  char whole[8192] = "";
  if (*path != '/' && at == AT_FDCWD && !getcwd(whole, 4096)) return 0;
  if (*path != '/' && at != AT_FDCWD && !path_of(at, whole, 4096)) return 0;
  size_t length = strlen(whole);
  snprintf(whole + length, sizeof whole - length, "%s%s", length ? "/" : "", path);
  if (fault_of(whole) != 'r') return 0;
  errno = EROFS;
  return 1;
}

// Returns how many of these bytes may be written; -1 with errno for a fault.
static __thread int torn;
static ssize_t allowed(int fd, size_t length) {
  switch (fault(fd)) {
    case 'e': errno = EIO; return -1;
    case 's': errno = ENOSPC; return -1;
    case 'r': errno = EROFS; return -1;
    case 't':
      if (length > 1 && !torn) { torn = 1; return length / 2; }
      torn = 0;
      errno = EIO;
      return -1;
    default: return length;
  }
}

ssize_t write(int fd, const void *bytes, size_t length) {
  static ssize_t (*real)(int, const void *, size_t);
  if (!real) real = dlsym(RTLD_NEXT, "write");
  ssize_t some = allowed(fd, length);
  return some < 0 ? -1 : real(fd, bytes, some);
}

#define PWRITE(name, offset_type)                                                        \
  ssize_t name(int fd, const void *bytes, size_t length, offset_type at) {               \
    static ssize_t (*real)(int, const void *, size_t, offset_type);                      \
    if (!real) real = dlsym(RTLD_NEXT, #name);                                           \
    ssize_t some = allowed(fd, length);                                                  \
    return some < 0 ? -1 : real(fd, bytes, some, at);                                    \
  }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

#define FLUSH(name)                                                                      \
  int name(int fd) {                                                                     \
    static int (*real)(int);                                                             \
    if (!real) real = dlsym(RTLD_NEXT, #name);                                           \
    if (fault(fd) == 'f') { errno = EIO; return -1; }                                    \
    return real(fd);                                                                     \
  }
FLUSH(fsync)
FLUSH(fdatasync)

static int opens(const char *name, int at, const char *path, int flags, va_list rest) {
  mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, mode_t) : 0;
  int changes = (flags & O_ACCMODE) != O_RDONLY || flags & (O_CREAT | O_TRUNC);
  // On a read-only disk, opening an existing file for reading succeeds even with O_CREAT.
  if ((flags & O_ACCMODE) == O_RDONLY && !(flags & O_TRUNC) && !faccessat(at, path, F_OK, 0)) changes = 0;
  return changes && is_refused(at, path) ? -1 : opened(name, at, path, flags, mode);
}

#define OPEN(name, real)                                                                 \
  int name(const char *path, int flags, ...) {                                           \
    va_list rest;                                                                        \
    va_start(rest, flags);                                                               \
    int fd = opens(real, AT_FDCWD, path, flags, rest);                                   \
    va_end(rest);                                                                        \
    return fd;                                                                           \
  }
OPEN(open, "openat")
OPEN(open64, "openat64")

#define OPENAT(name)                                                                     \
  int name(int at, const char *path, int flags, ...) {                                   \
    va_list rest;                                                                        \
    va_start(rest, flags);                                                               \
    int fd = opens(#name, at, path, flags, rest);                                        \
    va_end(rest);                                                                        \
    return fd;                                                                           \
  }
OPENAT(openat)
OPENAT(openat64)

// Functions that change a name or create a file beside it.
#define CHANGE(name, parameters, path, ...)                                              \
  int name parameters {                                                                  \
    static int (*real) parameters;                                                       \
    if (!real) real = dlsym(RTLD_NEXT, #name);                                           \
    return is_refused(AT_FDCWD, path) ? -1 : real(__VA_ARGS__);                          \
  }
CHANGE(mkdir, (const char *path, mode_t mode), path, path, mode)
CHANGE(rmdir, (const char *path), path, path)
CHANGE(unlink, (const char *path), path, path)
CHANGE(chmod, (const char *path, mode_t mode), path, path, mode)
CHANGE(rename, (const char *from, const char *to), to, from, to)
CHANGE(link, (const char *from, const char *to), to, from, to)
CHANGE(symlink, (const char *from, const char *to), to, from, to)

#define CUT(name, offset_type)                                                           \
  int name(int fd, offset_type length) {                                                 \
    static int (*real)(int, offset_type);                                                \
    if (!real) real = dlsym(RTLD_NEXT, #name);                                           \
    if (fault(fd) == 'r') { errno = EROFS; return -1; }                                  \
    return real(fd, length);                                                             \
  }
CUT(ftruncate, off_t)
CUT(ftruncate64, off64_t)

int flock(int fd, int operation) {
  static int (*real)(int, int);
  if (!real) real = dlsym(RTLD_NEXT, "flock");
  if (fault(fd) == 'l') { errno = ENOLCK; return -1; }
  return real(fd, operation);
}

#define FCNTL(name)                                                                      \
  int name(int fd, int command, ...) {                                                   \
    static int (*real)(int, int, ...);                                                   \
    if (!real) real = dlsym(RTLD_NEXT, #name);                                           \
    va_list rest;                                                                        \
    va_start(rest, command);                                                             \
    void *argument = va_arg(rest, void *);                                               \
    va_end(rest);                                                                        \
    int locks = command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK || command == F_OFD_SETLKW; \
    if (locks && fault(fd) == 'l') { errno = ENOLCK; return -1; }                        \
    return real(fd, command, argument);                                                  \
  }
FCNTL(fcntl)
FCNTL(fcntl64)
