/*
 * Included before each source of an addon. Binds functions to their oldest symbol version in glibc
 * for the machine. In glibc 2.34 the functions of libpthread moved into libc.so.6 and got a new
 * version, without a change.
 */
#if defined(__x86_64__)
#define FIRST_GLIBC "GLIBC_2.2.5"
#define GLIBC_OF(x86_64) x86_64
#else
#define FIRST_GLIBC "GLIBC_2.17"
#define GLIBC_OF(x86_64) "GLIBC_2.17"
#endif
#define FROM(version, name) __asm__(".symver " #name "," #name "@" version)

FROM(FIRST_GLIBC, __fxstat64);
FROM(FIRST_GLIBC, __xstat64);
FROM(FIRST_GLIBC, pthread_create);
FROM(FIRST_GLIBC, pthread_getspecific);
FROM(FIRST_GLIBC, pthread_join);
FROM(FIRST_GLIBC, pthread_key_create);
FROM(FIRST_GLIBC, pthread_key_delete);
FROM(FIRST_GLIBC, pthread_mutexattr_destroy);
FROM(FIRST_GLIBC, pthread_mutexattr_init);
FROM(FIRST_GLIBC, pthread_mutexattr_setpshared);
FROM(FIRST_GLIBC, pthread_setspecific);
FROM(FIRST_GLIBC, pthread_sigmask);
FROM(GLIBC_OF("GLIBC_2.3.3"), pthread_condattr_setclock);
FROM(GLIBC_OF("GLIBC_2.12"), pthread_mutexattr_setrobust);
FROM(GLIBC_OF("GLIBC_2.12"), pthread_mutex_consistent);
