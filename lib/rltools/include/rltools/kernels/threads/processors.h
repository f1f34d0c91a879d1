// Which processors the threads of this process may use, and which one a thread is on.
#pragma once

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

namespace rlt {

namespace threads {

// The processor that the calling thread is on; -1 where the system does not say.
inline int current_processor() {
#if defined(__linux__)
  return sched_getcpu();
#else
  return -1;
#endif
}

// Number of processors that this process may use.
inline int available_processors() {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
#if defined(_WIN32)
  return pthread_num_processors_np();
#else
  return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
#endif
}

// Take the calling thread to another processor than `processor`, and then leave it to the system
// again; false where it may use no other.
inline bool leave_processor([[maybe_unused]] int processor) {
#if defined(__linux__)
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return false;
  cpu_set_t others = allowed;
  CPU_CLR(processor, &others);
  if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof others, &others) != 0) return false;
  sched_setaffinity(0, sizeof allowed, &allowed);
  return true;
#else
  return false;
#endif
}

}  // namespace threads

}  // namespace rlt
