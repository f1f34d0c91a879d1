// Tasks and ranges, on a device without workers and on one with three, which does its tasks one
// after another, from the last on.
#include <doctest/doctest.h>

#include <cstddef>
#include <type_traits>
#include <vector>

#include "rltools/core/tasks.h"

namespace rlt {

struct OneOfThree : Generic {};
struct ThreeWorkers : OneOfThree {
  static constexpr int kMaxParts = 3;
  using OneWorker = OneOfThree;
  int* runs = nullptr;  // how often tasks were handed over
};

template <class Task>
ThreeWorkers run_tasks(ThreeWorkers device, int count, Task&& task) {
  ++*device.runs;
  for (int index = count - 1; index >= 0; index--) task(index);
  return device;
}
template <class Task>
ThreeWorkers run_long_tasks(ThreeWorkers device, int count, Task&& task) {
  *device.runs += 100;
  for (int index = count - 1; index >= 0; index--) task(index);
  return device;
}

}  // namespace rlt

using namespace rlt;

namespace {

struct Seen {
  int first, count;
  bool is_one_worker;
};

// The ranges of Count elements, in the order of the calls; `runs` counts handovers.
template <int Count, int Parts, int Multiple>
std::vector<Seen> ranges(int& runs) {
  ThreeWorkers device;
  device.runs = &runs;
  std::vector<Seen> seen;
  for_ranges<Count, Parts, Multiple>(device, [&](auto part, auto range) {
    using R = decltype(range);
    seen.push_back({R::kFirst, R::kCount, std::is_same_v<decltype(part), OneOfThree>});
  });
  return seen;
}

// Each element belongs to one range, no range is empty, and each begins at a multiple.
template <int Count, int Multiple>
void check_shared() {
  CAPTURE(Count);
  CAPTURE(Multiple);
  int runs = 0;
  const std::vector<Seen> seen = ranges<Count, 3, Multiple>(runs);
  CHECK(runs == 1);
  REQUIRE(seen.size() == 3);
  int end = Count;
  for (const Seen& range : seen) {
    CHECK(range.count > 0);
    CHECK(range.first % Multiple == 0);
    CHECK(range.first + range.count == end);
    CHECK(range.is_one_worker);  // workers do not nest
    end = range.first;
  }
  CHECK(end == 0);
}

template <int Rows, long MultiplyAddsPerRow>
int runs_for_rows() {
  int runs = 0, rows = 0;
  ThreeWorkers device;
  device.runs = &runs;
  for_rows<Rows, MultiplyAddsPerRow>(device,
                                     [&](auto, auto range) { rows += decltype(range)::kCount; });
  CHECK(rows == Rows);
  return runs;
}

}  // namespace

TEST_CASE("without workers each task is done once, in order") {
  std::vector<int> done;
  run_tasks(Generic{}, 4, [&](int index) { done.push_back(index); });
  CHECK(done == std::vector<int>{0, 1, 2, 3});
  done.clear();
  for_each_task<3>(Generic{}, [&](auto device, auto index) {
    static_assert(std::is_same_v<decltype(device), Generic>);
    done.push_back(decltype(index)::value);
  });
  CHECK(done == std::vector<int>{0, 1, 2});
}

TEST_CASE("each task of a device with workers is done once, by one worker") {
  int runs = 0;
  ThreeWorkers device;
  device.runs = &runs;
  std::vector<int> done;
  for_each_task<5>(device, [&](auto part, auto index) {
    CHECK(std::is_same_v<decltype(part), OneOfThree>);
    done.push_back(decltype(index)::value);
  });
  CHECK(done == std::vector<int>{4, 3, 2, 1, 0});
  CHECK(runs == 1);
}

TEST_CASE("shared ranges cover all elements once, in whole multiples") {
  check_shared<3, 1>();
  check_shared<100, 1>();
  check_shared<101, 1>();
  check_shared<48, 16>();
  check_shared<49, 16>();
  check_shared<4545, 16>();
}

TEST_CASE("what is not shared, or too little for every worker, is one range of the whole device") {
  int runs = 0;
  for (const auto& seen : {ranges<100, 1, 1>(runs), ranges<2, 3, 1>(runs), ranges<47, 3, 16>(runs),
                           ranges<1, 3, 1>(runs)}) {
    REQUIRE(seen.size() == 1);
    CHECK(seen[0].first == 0);
    CHECK_FALSE(seen[0].is_one_worker);
  }
  CHECK(runs == 0);
  int calls = 0;
  for_ranges<100, parts_of_product<Generic>(1L << 40)>(Generic{}, [&](auto, auto range) {
    CHECK(decltype(range)::kCount == 100);
    calls++;
  });
  CHECK(calls == 1);
}

TEST_CASE("an index known at run time is a long task, of one worker") {
  int runs = 0;
  ThreeWorkers device;
  device.runs = &runs;
  for (const int count : {0, 1, 4}) {
    std::vector<int> with_workers, without;
    for_each_index(device, count, [&](auto part, int index) {
      CHECK(std::is_same_v<decltype(part), OneOfThree>);
      with_workers.insert(with_workers.begin(), index);
    });
    for_each_index(Generic{}, count, [&](auto part, int index) {
      CHECK(std::is_same_v<decltype(part), Generic>);
      without.push_back(index);
    });
    CHECK(without.size() == static_cast<std::size_t>(count));
    for (int i = 0; i < count; i++) CHECK(without[static_cast<std::size_t>(i)] == i);
    CHECK(with_workers == without);
  }
  CHECK(runs == 300);
}

TEST_CASE("work is divided into two parts from a bound on, and into more where each is large") {
  CHECK(parts_of<ThreeWorkers>(99, 100, 1000) == 1);
  CHECK(parts_of<ThreeWorkers>(100, 100, 1000) == 2);
  CHECK(parts_of<ThreeWorkers>(2999, 100, 1000) == 2);
  CHECK(parts_of<ThreeWorkers>(3000, 100, 1000) == 3);
  CHECK(parts_of<ThreeWorkers>(1000000, 100, 1000) == 3);
  CHECK(parts_of<OneOfThree>(1000000, 100, 1000) == 1);
}

TEST_CASE("rows are shared where all of them together are enough work") {
  CHECK(runs_for_rows<100, kMinMultiplyAddsToShare / 100>() == 1);
  CHECK(runs_for_rows<100, kMinMultiplyAddsToShare / 100 - 1>() == 0);
}
