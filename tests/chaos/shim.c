/*
 * A preloaded library that makes a disk misbehave for one program. For files in one folder, writes, reads and flushes
 * can fail or only pretend to succeed, flushes can take longer, and every change can be logged in order. The chaos runner
 * and the benchmark build it with `cc -shared -fPIC` and set LD_PRELOAD; README.md describes the control words and the
 * log.
 *
 *   CHAOS_SHIM_FOLDER   only files directly in this folder are affected
 *   CHAOS_SHIM_CONTROL  a file of 1,024 32-bit words, mapped and shared with the runner, which changes them at any
 *                       time
 *   CHAOS_SHIM_LOG      optional: the file that changes are appended to
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { WRITE_ENOSPC = 1, WRITE_EIO = 2, READ_EIO = 4, SYNC_EIO = 8, SYNC_LIES = 16, WRITE_LIES = 32 };
enum { FAULTS = 0, SKIP = 1, LIMIT = 2, INJECTED = 3, FILES = 4, DELAY = 5, FLUSHES = 6, TIMES = 512, KEPT = 512 };
enum { DATABASE = 1, WAL = 2, OTHER = 4 };
enum { LOG_WRITE = 1, LOG_TRUNCATE = 2, LOG_SYNC_BEGIN = 3, LOG_SYNC_END = 4, LOG_UNLINK = 5, LOG_CREATE = 6 };

#define MAX_FDS 65536
#define MAGIC 0x53414843u

struct record {
  uint32_t magic, kind;
  uint64_t offset, length;
  uint32_t name_length, process;
};

static char *names[MAX_FDS];
static const char *folder;
static size_t folder_length;
static volatile uint32_t *control;
static int log_fd = -1;
static uint64_t syncs;
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

static int (*real_open)(const char *, int, ...);
static int (*real_openat)(int, const char *, int, ...);
static int (*real_close)(int);
static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static ssize_t (*real_writev)(int, const struct iovec *, int);
static ssize_t (*real_read)(int, void *, size_t);
static ssize_t (*real_pread)(int, void *, size_t, off_t);
static int (*real_ftruncate)(int, off_t);
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);
static int (*real_unlink)(const char *);

static void *next(const char *name) {
  void *found = dlsym(RTLD_NEXT, name);
  if (!found) {
    fprintf(stderr, "chaos shim: the C library has no %s\n", name);
    abort();
  }
  return found;
}

static void load(void) {
  if (real_unlink) return;
  real_open = next("open64");
  real_openat = next("openat64");
  real_close = next("close");
  real_write = next("write");
  real_pwrite = next("pwrite64");
  real_writev = next("writev");
  real_read = next("read");
  real_pread = next("pread64");
  real_ftruncate = next("ftruncate64");
  real_fsync = next("fsync");
  real_fdatasync = next("fdatasync");
  real_unlink = next("unlink");
}

__attribute__((constructor)) static void start(void) {
  load();
  const char *path = getenv("CHAOS_SHIM_CONTROL");
  const char *log = getenv("CHAOS_SHIM_LOG");
  const char *wanted = getenv("CHAOS_SHIM_FOLDER");
  if (!path || !wanted) return;
  int fd = real_open(path, O_RDWR | O_CLOEXEC);
  void *map = fd < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (map == MAP_FAILED) {
    perror("chaos shim: cannot map the control file");
    abort();
  }
  real_close(fd);
  control = map;
  if (log && (log_fd = real_open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) < 0) {
    perror("chaos shim: cannot open the log");
    abort();
  }
  folder_length = strlen(wanted);
  folder = strdup(wanted);
}

/* The name of a file directly in the folder, or NULL. */
static const char *ours(const char *path) {
  if (!folder || !path || strncmp(path, folder, folder_length) || path[folder_length] != '/') return NULL;
  const char *name = path + folder_length + 1;
  return *name && !strchr(name, '/') ? name : NULL;
}

static const char *name_of(int fd) { return fd >= 0 && fd < MAX_FDS ? names[fd] : NULL; }

static int ends_with(const char *name, const char *end) {
  size_t length = strlen(name), tail = strlen(end);
  return length >= tail && !strcmp(name + length - tail, end);
}

static uint32_t class_of(const char *name) {
  return ends_with(name, "-wal") ? WAL : ends_with(name, ".db") ? DATABASE : OTHER;
}

/* Shared memory is rebuilt from the log after a crash, so it need not survive one. */
static int is_logged(const char *name) { return log_fd >= 0 && !ends_with(name, "-shm"); }

/* The fault that strikes this call, if any. SKIP calls pass first; then LIMIT calls are struck, or all if it is 0. */
static uint32_t struck(const char *name, uint32_t faults) {
  if (!name || !control) return 0;
  uint32_t wanted = control[FAULTS] & faults;
  if (!wanted || !(control[FILES] & class_of(name))) return 0;
  uint32_t left = __atomic_load_n(&control[SKIP], __ATOMIC_SEQ_CST);
  while (left > 0)
    if (__atomic_compare_exchange_n(&control[SKIP], &left, left - 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) return 0;
  uint32_t struck = __atomic_fetch_add(&control[INJECTED], 1, __ATOMIC_SEQ_CST);
  if (control[LIMIT] && struck >= control[LIMIT]) {
    __atomic_fetch_sub(&control[INJECTED], 1, __ATOMIC_SEQ_CST);
    return 0;
  }
  return wanted;
}

static void append(uint32_t kind, const char *name, uint64_t offset, const void *data, uint64_t length) {
  if (!is_logged(name)) return;
  size_t carried = kind == LOG_WRITE ? length : 0;
  struct record record = {MAGIC, kind, offset, length, (uint32_t)strlen(name), (uint32_t)getpid()};
  struct iovec parts[3] = {{&record, sizeof record}, {(void *)name, record.name_length}, {(void *)data, carried}};
  ssize_t size = (ssize_t)(sizeof record + record.name_length + carried);
  pthread_mutex_lock(&log_lock);
  ssize_t written = real_writev(log_fd, parts, 3);
  pthread_mutex_unlock(&log_lock);
  if (written != size) {
    fprintf(stderr, "chaos shim: a log record is incomplete\n");
    abort();
  }
}

static int opened(int fd, const char *name, int is_new) {
  if (fd >= 0 && fd < MAX_FDS && name) {
    free(names[fd]);
    names[fd] = strdup(name);
    if (is_new) append(LOG_CREATE, name, 0, NULL, 0);
  }
  return fd;
}

static int open_path(const char *path, int flags, mode_t mode) {
  load();
  const char *name = ours(path);
  int is_new = name && (flags & O_CREAT) && access(path, F_OK) != 0;
  return opened(real_open(path, flags, mode), name, is_new);
}

static mode_t mode_of(int flags, va_list arguments) {
  return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t) : 0;
}

#define OPEN(symbol)                              \
  int symbol(const char *path, int flags, ...) {  \
    va_list arguments;                            \
    va_start(arguments, flags);                   \
    mode_t mode = mode_of(flags, arguments);      \
    va_end(arguments);                            \
    return open_path(path, flags, mode);          \
  }
OPEN(open)
OPEN(open64)

#define OPENAT(symbol)                                           \
  int symbol(int at, const char *path, int flags, ...) {         \
    va_list arguments;                                           \
    va_start(arguments, flags);                                  \
    mode_t mode = mode_of(flags, arguments);                     \
    va_end(arguments);                                           \
    if (path[0] == '/') return open_path(path, flags, mode); \
    load();                                                      \
    return real_openat(at, path, flags, mode);                   \
  }
OPENAT(openat)
OPENAT(openat64)

int close(int fd) {
  load();
  if (name_of(fd)) {
    free(names[fd]);
    names[fd] = NULL;
  }
  return real_close(fd);
}

static ssize_t failed(int error) {
  errno = error;
  return -1;
}

static int write_fault(const char *name, uint32_t *struck_by) {
  *struck_by = struck(name, WRITE_ENOSPC | WRITE_EIO | WRITE_LIES);
  return *struck_by & WRITE_ENOSPC ? ENOSPC : *struck_by & WRITE_EIO ? EIO : 0;
}

static ssize_t write_at(int fd, const void *data, size_t length, off_t offset) {
  load();
  uint32_t by;
  const char *name = name_of(fd);
  int error = write_fault(name, &by);
  if (error) return failed(error);
  if (by & WRITE_LIES) return (ssize_t)length;
  ssize_t written = real_pwrite(fd, data, length, offset);
  if (name && written > 0) append(LOG_WRITE, name, (uint64_t)offset, data, (uint64_t)written);
  return written;
}

ssize_t pwrite(int fd, const void *data, size_t length, off_t offset) { return write_at(fd, data, length, offset); }
ssize_t pwrite64(int fd, const void *data, size_t length, off_t offset) { return write_at(fd, data, length, offset); }

ssize_t write(int fd, const void *data, size_t length) {
  load();
  const char *name = name_of(fd);
  if (!name) return real_write(fd, data, length);
  uint32_t by;
  int error = write_fault(name, &by);
  if (error) return failed(error);
  if (by & WRITE_LIES) return lseek(fd, (off_t)length, SEEK_CUR) < 0 ? -1 : (ssize_t)length;
  off_t offset = lseek(fd, 0, SEEK_CUR);
  ssize_t written = real_write(fd, data, length);
  if (written > 0) append(LOG_WRITE, name, (uint64_t)offset, data, (uint64_t)written);
  return written;
}

ssize_t read(int fd, void *data, size_t length) {
  load();
  return struck(name_of(fd), READ_EIO) ? failed(EIO) : real_read(fd, data, length);
}

static ssize_t read_at(int fd, void *data, size_t length, off_t offset) {
  load();
  return struck(name_of(fd), READ_EIO) ? failed(EIO) : real_pread(fd, data, length, offset);
}

ssize_t pread(int fd, void *data, size_t length, off_t offset) { return read_at(fd, data, length, offset); }
ssize_t pread64(int fd, void *data, size_t length, off_t offset) { return read_at(fd, data, length, offset); }

static int truncate_to(int fd, off_t length) {
  load();
  const char *name = name_of(fd);
  uint32_t by;
  int error = write_fault(name, &by);
  if (error) return (int)failed(error);
  if (by & WRITE_LIES) return 0;
  int done = real_ftruncate(fd, length);
  if (!done && name) append(LOG_TRUNCATE, name, (uint64_t)length, NULL, 0);
  return done;
}

int ftruncate(int fd, off_t length) { return truncate_to(fd, length); }
int ftruncate64(int fd, off_t length) { return truncate_to(fd, length); }

/* A flush that takes DELAY microseconds longer. It is counted, and its time is among the last KEPT. */
static int timed(int fd, int (*real)(int)) {
  uint32_t micros = control[DELAY];
  struct timespec began, ended, left = {micros / 1000000, micros % 1000000 * 1000L};
  clock_gettime(CLOCK_MONOTONIC, &began);
  if (micros)
    while (nanosleep(&left, &left) && errno == EINTR) continue;
  int done = real(fd);
  clock_gettime(CLOCK_MONOTONIC, &ended);
  uint32_t before = __atomic_fetch_add(&control[FLUSHES], 1, __ATOMIC_SEQ_CST);
  long took = (ended.tv_sec - began.tv_sec) * 1000000L + (ended.tv_nsec - began.tv_nsec) / 1000;
  control[TIMES + before % KEPT] = (uint32_t)took;
  return done;
}

/* Writes before the start of a flush are durable once it succeeds. A flush that lies is not logged. */
static int flush(int fd, int (*real)(int)) {
  const char *name = name_of(fd);
  if (!name) return real(fd);
  uint32_t by = struck(name, SYNC_EIO | SYNC_LIES);
  if (by & SYNC_EIO) return (int)failed(EIO);
  if (by & SYNC_LIES) return 0;
  uint64_t token = __atomic_add_fetch(&syncs, 1, __ATOMIC_SEQ_CST);
  append(LOG_SYNC_BEGIN, name, token, NULL, 0);
  int done = timed(fd, real);
  if (!done) append(LOG_SYNC_END, name, token, NULL, 0);
  return done;
}

int fsync(int fd) {
  load();
  return flush(fd, real_fsync);
}

int fdatasync(int fd) {
  load();
  return flush(fd, real_fdatasync);
}

int unlink(const char *path) {
  load();
  const char *name = ours(path);
  int done = real_unlink(path);
  if (!done && name) append(LOG_UNLINK, name, 0, NULL, 0);
  return done;
}
