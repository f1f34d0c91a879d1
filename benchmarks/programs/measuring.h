// Measuring of time and printing for the programs of this folder.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <vector>

namespace rlt {

inline double seconds_of(clockid_t clock) {
  std::timespec now;
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}
// The processor time of this program, and of this thread: what passes, less what others take.
inline double processor_seconds() { return seconds_of(CLOCK_PROCESS_CPUTIME_ID); }
inline double thread_seconds() { return seconds_of(CLOCK_THREAD_CPUTIME_ID); }

struct Seconds {
  double wall, processor;
};
template <class Work>
Seconds timed(Work&& work) {
  using Clock = std::chrono::steady_clock;
  const auto wall_began = Clock::now();
  const double processor_began = processor_seconds();
  work();
  const double processor = processor_seconds() - processor_began;
  return {std::chrono::duration<double>(Clock::now() - wall_began).count(), processor};
}

// The thread's time of one run, of as many as take `least_s` together.
template <class Run>
double seconds_per_run(double least_s, Run&& run) {
  for (long runs = 1;; runs *= 2) {
    const double began = thread_seconds();
    for (long i = 0; i < runs; i++) run();
    const double elapsed = thread_seconds() - began;
    if (elapsed >= least_s) return elapsed / static_cast<double>(runs);
  }
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

inline void print_list(const char* name, const std::vector<double>& values) {
  std::printf("\"%s\": [", name);
  for (const double& value : values) std::printf("%s%.9g", &value == &values[0] ? "" : ", ", value);
  std::printf("]");
}

}  // namespace rlt
