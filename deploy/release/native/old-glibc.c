/*
 * Linked into each addon that we compile, so that the addons do not need symbols of a newer C
 * library. They load with glibc 2.28 (RHEL 8, Debian 10), as Node's own binaries do. addons.ts
 * fails if an addon still needs a newer version.
 */
#include <sys/stat.h>
#include <sys/types.h>

/*
 * stat64 and fstat64 are symbols only since glibc 2.33. Earlier headers define them by the two
 * functions below. STAT_VERSION is _STAT_VER of <bits/stat.h> of glibc 2.28.
 */
#if defined(__x86_64__)
#define STAT_VERSION 1
#else
#define STAT_VERSION 0
#endif
int __xstat64(int version, const char *path, struct stat64 *out);
int __fxstat64(int version, int fd, struct stat64 *out);

__attribute__((visibility("hidden"))) int stat64(const char *path, struct stat64 *out) {
  return __xstat64(STAT_VERSION, path, out);
}
__attribute__((visibility("hidden"))) int fstat64(int fd, struct stat64 *out) { return __fxstat64(STAT_VERSION, fd, out); }

/*
 * Since glibc 2.32 libstdc++ reads this variable, to count references without atomics in programs
 * with one thread. Node has several.
 */
__attribute__((visibility("hidden"))) char __libc_single_threaded = 0;
