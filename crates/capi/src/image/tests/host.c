// Loads a library that the host has written, fills its table, and calls each function of it, directly and by a plugin that
// names the library by its soname.
//
//     host LIBRARY PLUGIN N
//
// Function `i` of the N is not provided where 3 divides `i`: it gets its own name. The others get a number and a half.

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define N_KINDS 7

#define PROVIDED(KIND) \
  static int64_t provided_##KIND(int64_t x, double y) { return 100 * x + 10 * KIND + (y == 0.5); }
PROVIDED(0)
PROVIDED(1)
PROVIDED(2)
PROVIDED(3)
PROVIDED(4)
PROVIDED(5)
PROVIDED(6)

static int64_t (*const provided[N_KINDS])(int64_t, double) = {
    provided_0, provided_1, provided_2, provided_3, provided_4, provided_5, provided_6,
};

static const char *last_name;

static int64_t not_provided(const char *name) {
  last_name = name;
  return -1;
}

static void *want(void *found, const char *name) {
  if (!found) {
    fprintf(stderr, "%s: %s\n", name, dlerror());
    exit(1);
  }
  return found;
}

static void check(int holds, const char *name) {
  if (!holds) {
    fprintf(stderr, "%s: wrong\n", name);
    exit(1);
  }
}

int main(int n_args, char **args) {
  if (n_args != 4) return 2;
  int n = atoi(args[3]);
  void *library = want(dlopen(args[1], RTLD_NOW | RTLD_LOCAL), args[1]);
  uintptr_t *table = want(dlsym(library, "tfrt_capi_table"), "tfrt_capi_table");
  for (int i = 0; i < n; ++i) table[i] = (uintptr_t)provided[i % N_KINDS];
  table[n] = (uintptr_t)not_provided;
  check(mprotect(table, (n + 1) * sizeof *table, PROT_READ) == 0, "mprotect");
  char name[32];
  for (int i = 0; i < n; ++i) {
    snprintf(name, sizeof name, "TF_Function%d", i);
    int64_t (*function)(int64_t, double) = want(dlsym(library, name), name);
    int64_t result = function(i, 0.5);
    if (i % 3 == 0) {
      check(result == -1 && last_name && strcmp(last_name, name) == 0, name);
    } else {
      check(result == 100 * i + 10 * (i % N_KINDS) + 1, name);
    }
  }
  check(dlsym(library, "TF_Nothing") == NULL, "TF_Nothing");
  // The library of that soname is loaded already, so that none is looked for.
  void *plugin = want(dlopen(args[2], RTLD_NOW | RTLD_LOCAL), args[2]);
  int64_t (*call)(int64_t, double) = want(dlsym(plugin, "call"), "call");
  check(call(5, 0.5) == (n > 1 ? 511 : -1), "call");
  printf("%d functions\n", n);
  return 0;
}
