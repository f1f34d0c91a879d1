// With how many threads this process computes: what the environment variable RLT_THREADS says (the
// host tools' option --threads), or else the device's own choice.
#pragma once

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>

#include "rltools/core/tasks.h"

namespace rlt {

// Read the number of threads. Return false, after a sentence on the error stream, where the device
// cannot compute so.
template <class Device>
bool take_thread_count(Device device, const char* device_name) {
  const char* text = std::getenv("RLT_THREADS");
  if (text == nullptr || text[0] == '\0') return true;
  char* end = nullptr;
  errno = 0;
  const long count = std::strtol(text, &end, 10);
  const bool is_number = errno == 0 && *end == '\0' && count > 0 && count <= INT_MAX;
  if (is_number && set_threads(device, static_cast<int>(count))) return true;
  std::fprintf(stderr, "RLT_THREADS=%s: device %s cannot compute with so many threads\n", text,
               device_name);
  return false;
}

}  // namespace rlt
