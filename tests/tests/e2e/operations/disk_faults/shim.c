/* Preloaded by the disk fault tests: makes writes and flushes of the database's files fail while a control file
 * (named by DISK_FAULTS) contains one of these words:
 *
 *   full    a write that extends a file fails with ENOSPC; existing bytes can be overwritten
 *   flush   fsync and fdatasync flush everything, and then report EIO
 *   write   writes fail with EIO
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int is_of_database(int fd) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return 0;
  path[length] = 0;
  return strstr(path, "metering.db") && !strstr(path, "-shm");
}

static int fault(const char *wanted) {
  const char *control = getenv("DISK_FAULTS");
  char current[16] = {0};
  long fd = control ? syscall(SYS_openat, AT_FDCWD, control, O_RDONLY) : -1;
  if (fd < 0) return 0;
  syscall(SYS_read, fd, current, sizeof current - 1);
  syscall(SYS_close, fd);
  return !strcmp(current, wanted);
}

static int refused(int fd, off_t end) {
  struct stat now;
  if (!is_of_database(fd)) return 0;
  if (fault("write")) return EIO;
  return fault("full") && !fstat(fd, &now) && end > now.st_size ? ENOSPC : 0;
}

#define REFUSE(error)        \
  do {                       \
    int refusal = (error);   \
    if (refusal) {           \
      errno = refusal;       \
      return -1;             \
    }                        \
  } while (0)

ssize_t write(int fd, const void *data, size_t length) {
  static ssize_t (*real)(int, const void *, size_t);
  if (!real) real = dlsym(RTLD_NEXT, "write");
  REFUSE(refused(fd, lseek(fd, 0, SEEK_CUR) + (off_t)length));
  return real(fd, data, length);
}

ssize_t pwrite64(int fd, const void *data, size_t length, off_t offset) {
  static ssize_t (*real)(int, const void *, size_t, off_t);
  if (!real) real = dlsym(RTLD_NEXT, "pwrite64");
  REFUSE(refused(fd, offset + (off_t)length));
  return real(fd, data, length, offset);
}

ssize_t pwrite(int fd, const void *data, size_t length, off_t offset) { return pwrite64(fd, data, length, offset); }

static int flush(int fd, int (*real)(int)) {
  int done = real(fd);
  REFUSE(is_of_database(fd) && fault("flush") ? EIO : 0);
  return done;
}

int fsync(int fd) {
  static int (*real)(int);
  if (!real) real = dlsym(RTLD_NEXT, "fsync");
  return flush(fd, real);
}

int fdatasync(int fd) {
  static int (*real)(int);
  if (!real) real = dlsym(RTLD_NEXT, "fdatasync");
  return flush(fd, real);
}
