// A disk that fails: a library that stands before the C library's, and lets writes and flushes of the files whose path
// holds $FAULT_IN fail, while there is a file $FAULT_ARMED, which holds the kind of the fault.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

// The kind of fault that this file has, or 0: 'e' EIO, 's' no space, 't' half of a write and then EIO, 'f' no flush.
static char fault(int fd) {
  const char *in = getenv("FAULT_IN"), *armed = getenv("FAULT_ARMED");
  char link[64], path[4096], kind = 0;
  if (!in || !armed) return 0;
  int flag = open(armed, O_RDONLY | O_CLOEXEC);
  if (flag < 0) return 0;
  if (read(flag, &kind, 1) != 1) kind = 0;
  close(flag);
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return 0;
  path[length] = 0;
  return strstr(path, in) ? kind : 0;
}

// What is to be written of so many bytes; -1 with errno for a fault.
static __thread int torn;
static ssize_t allowed(int fd, size_t length) {
  switch (fault(fd)) {
    case 'e': errno = EIO; return -1;
    case 's': errno = ENOSPC; return -1;
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
