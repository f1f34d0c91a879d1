// Test: -O1
// 10,000 pushes, each over a link with its own disorder (lossy_world.h): a push is completed, or
// given up, and whatever moment it is, the policy before or the new one acts, whole, the new one
// for good only where the host has confirmed it.
#include <doctest/doctest.h>

#include "lossy_client.h"

using namespace lossy_world;

#if defined(__SANITIZE_ADDRESS__)
constexpr std::uint64_t kTransfers = 1'000;  // which takes as long
#else
constexpr std::uint64_t kTransfers = 10'000;
#endif

TEST_CASE("no transfer activates what it should not") {
  std::map<std::string, int> outcomes;
  std::uint64_t resets = 0;
  for (std::uint64_t seed = 0; seed < kTransfers; seed++) {
    INFO("seed " << seed);
    try {
      World world(seed);
      Client client(world, seed);
      std::string why = client.push();
      outcomes[why.empty() ? "completed" : why]++;
      if (!why.empty()) why = client.push();  // as a user would, at once
      const bool is_completed = why.empty();
      resets += world.resets;
      world.calm();
      if (is_completed && !world.is_second_active()) throw Violation("it is not active");
      // The board takes the policy whatever became of it before.
      const std::string again = Client(world, seed + kTransfers).push();
      if (!again.empty()) throw Violation("a second push fails: " + again);
      if (!world.is_second_active()) throw Violation("the second push is without effect");
    } catch (const std::logic_error& violation) {
      FAIL_CHECK(std::string(violation.what()));
    }
  }
  for (const auto& [outcome, count] : outcomes) MESSAGE(count << " " << outcome);
  const std::uint64_t completed = static_cast<std::uint64_t>(outcomes["completed"]);
  CHECK(completed > kTransfers / 4);
  CHECK(completed < kTransfers / 4 * 3);
  CHECK(outcomes.size() > 6);
  CHECK(resets > kTransfers / 5);
}
