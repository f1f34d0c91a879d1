// Test: threads
// What boards of a processor family share, as far as it can be tried on the host: the queue between
// interrupt and program, a port whose host may not read, and counters of 32 bits.
#include <doctest/doctest.h>

#include <thread>
#include <vector>

#include "processors/counter.h"
#include "processors/patient_port.h"
#include "processors/ring_buffer.h"
#include "processors/stack_paint.h"

using rlt::CountExtender;
using rlt::extend_count;
using rlt::paint_stack;
using rlt::painted_stack_use;
using rlt::PatientPort;
using rlt::RingBuffer;

TEST_CASE("ring buffer: bytes come out in order, and a full one refuses") {
  RingBuffer<8> ring;
  std::uint8_t next_in = 0, next_out = 0;
  for (int round = 0; round < 1000; round++) {
    int put = 0;
    while (put < round % 9 && ring.put(next_in)) put++, next_in++;
    CHECK(ring.is_empty() == (next_in == next_out));
    CHECK(ring.is_full() == (static_cast<std::uint8_t>(next_in - next_out) == 8));
    if (ring.is_full()) CHECK_FALSE(ring.put(99));
    std::uint8_t bytes[8];
    const std::size_t count = ring.take(bytes, static_cast<std::size_t>(round % 5));
    CHECK(count <= static_cast<std::size_t>(round % 5));
    for (std::size_t i = 0; i < count; i++) CHECK(bytes[i] == next_out++);
  }
}

TEST_CASE("ring buffer: it takes as many bytes as it has, and no more") {
  RingBuffer<8> ring;
  for (int i = 0; i < 8; i++) CHECK(ring.put(static_cast<std::uint8_t>(i)));
  CHECK(ring.is_full());
  CHECK_FALSE(ring.put(8));
  std::uint8_t bytes[8];
  CHECK(ring.take(bytes, sizeof bytes) == 8);
  CHECK(ring.put(9));
}

TEST_CASE(
    "stack: what still holds the paint was never used, and what lies above is not looked at") {
  std::uint32_t memory[10];
  paint_stack(memory, memory + 10);
  CHECK(painted_stack_use(memory, memory + 8).capacity_bytes == 32);
  CHECK(painted_stack_use(memory, memory + 8).peak_bytes == 0);
  memory[9] = 0;
  CHECK(painted_stack_use(memory, memory + 8).peak_bytes == 0);
  memory[7] = 0;
  CHECK(painted_stack_use(memory, memory + 8).peak_bytes == 4);
  memory[0] = 0;
  CHECK(painted_stack_use(memory, memory + 8).peak_bytes == 32);
}

TEST_CASE("port: a host that does not read is waited for once, and what it reads is whole") {
  PatientPort<std::uint32_t> port(1000);
  std::uint32_t now = 0xffffff00u;  // the clock wraps while it waits
  std::size_t room = 5;
  std::vector<std::uint8_t> taken;
  const std::uint8_t bytes[] = {1, 2, 3, 4};
  const auto write = [&] {
    const std::uint32_t begun = now;
    port.write(
        bytes, 4, [&] { return room == 0; }, [&] { return now += 10; },
        [&](std::uint8_t byte) { taken.push_back(byte), room--; });
    return now - begun;
  };
  CHECK(write() < 100);
  const std::uint32_t waited = write();  // for room for three
  CHECK(waited > 1000);
  CHECK(waited <= 1030);
  CHECK(taken == std::vector<std::uint8_t>{1, 2, 3, 4, 1});
  for (int i = 0; i < 3; i++) CHECK(write() < 100);
  room = 2;  // it reads again, but not enough
  CHECK(write() < 100);
  CHECK(taken.size() == 7);
  room = 4;
  CHECK(write() < 100);
  CHECK(taken.size() == 11);
  CHECK(taken.back() == 4);
  CHECK(write() > 1000);  // it is waited for anew
}

TEST_CASE("ring buffer: a writer and a reader at once") {
  constexpr std::uint32_t kCount = 200'000;
  RingBuffer<64> ring;
  std::thread writer([&ring] {
    for (std::uint32_t i = 0; i < kCount;) {
      if (ring.put(static_cast<std::uint8_t>(i * 7))) {
        i++;
      } else {
        std::this_thread::yield();
      }
    }
  });
  std::uint32_t taken = 0, wrong = 0;
  while (taken < kCount) {
    std::uint8_t bytes[17];
    const std::size_t count = ring.take(bytes, sizeof bytes);
    if (count == 0) std::this_thread::yield();
    for (std::size_t i = 0; i < count; i++, taken++) {
      wrong += bytes[i] != static_cast<std::uint8_t>(taken * 7);
    }
  }
  writer.join();
  CHECK(wrong == 0);
  CHECK(ring.is_empty());
}

TEST_CASE("a count of 32 bits is extended by a coarse one, however long ago it was asked for") {
  constexpr std::uint64_t kUnit = 250'000;  // of the coarse counter
  for (const std::uint64_t count :
       {std::uint64_t{0}, std::uint64_t{1}, kUnit - 1, kUnit, std::uint64_t{0xffffffff},
        std::uint64_t{0x100000000}, std::uint64_t{0x100000001}, std::uint64_t{0x1fffffff0},
        std::uint64_t{1} << 40, (std::uint64_t{1} << 47) + 12345}) {
    const std::uint64_t coarse = count / kUnit * kUnit;
    CHECK(extend_count(static_cast<std::uint32_t>(count), coarse) == count);
    // The coarse counter is read first, and may be a unit behind, or ahead after rounding.
    if (coarse > 0) CHECK(extend_count(static_cast<std::uint32_t>(count), coarse - kUnit) == count);
    CHECK(extend_count(static_cast<std::uint32_t>(count), coarse + kUnit) == count);
  }
}

TEST_CASE("a count of 32 bits is added up where it is asked for often enough") {
  CountExtender extender;
  std::uint64_t count = 0;
  for (int i = 0; i < 1000; i++) {
    count += 3'000'000'000u;
    CHECK(extender.extend(static_cast<std::uint32_t>(count)) == count);
  }
}
