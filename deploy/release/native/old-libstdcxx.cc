/*
 * As old-glibc.c, for a function that libstdc++ has since GCC 11. No addon allocates an array of
 * negative length.
 */
#include <cstdlib>

namespace std {
__attribute__((visibility("hidden"), noreturn)) void __throw_bad_array_new_length() { abort(); }
}  // namespace std
