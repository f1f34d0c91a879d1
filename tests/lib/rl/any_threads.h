// A device with one, two and three threads, in turn.
#pragma once

#include <doctest/doctest.h>

#include "rltools/devices/host_threads.h"

namespace training_run {

// check(device): with a pool of its own.
template <class Check>
void with_any_threads(const Check& check) {
  static rlt::threads::Pool pool;  // whose workers outlive the call
  for (const int threads : {1, 2, 3}) {
    CAPTURE(threads);
    rlt::HostThreads device;
    device.pool = &pool;
    REQUIRE(set_threads(device, threads));
    check(device);
  }
}

}  // namespace training_run
