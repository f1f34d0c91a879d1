// 10,000 pushes, each over a link with its own disorder (lossy_world.h): a push is completed, or
// given up, and whatever moment it is, the policy before or the new one acts, whole, the new one
// for good only where the host has confirmed it.
#include <doctest/doctest.h>

#include "lossy_client.h"

using namespace lossy_world;

TEST_CASE("no transfer activates what it should not") {
  constexpr std::uint64_t kTransfers = 10'000;
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
  CHECK(outcomes["completed"] > 2000);
  CHECK(outcomes["completed"] < 8000);
  CHECK(outcomes.size() > 6);
  CHECK(resets > 2000);
}
