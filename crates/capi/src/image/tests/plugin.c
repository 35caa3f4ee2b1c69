// A plugin that wants a function of the library.

#include <stdint.h>

int64_t FUNCTION(int64_t x, double y);

int64_t call(int64_t x, double y) { return FUNCTION(x, y); }
