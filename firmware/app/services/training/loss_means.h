// Means of the losses since the last progress report.
#pragma once

#include "rltools/rl/training.h"

namespace rlt {

class LossMeans {
 public:
  void add(const StepReport& report) {
    if (report.updated) {
      critic_1_.add(report.critic_1_loss);
      critic_2_.add(report.critic_2_loss);
    }
    if (report.actor_updated) actor_.add(report.actor_loss);
  }

  void clear() { *this = {}; }

  // NaN where there was no update.
  float critic_1() const { return critic_1_.value(); }
  float critic_2() const { return critic_2_.value(); }
  float actor() const { return actor_.value(); }

 private:
  struct Mean {
    float sum = 0.0f;
    std::uint32_t count = 0;
    void add(float value) {
      sum += value;
      count++;
    }
    float value() const {
      return count == 0 ? __builtin_nanf("") : sum / static_cast<float>(count);
    }
  };
  Mean critic_1_, critic_2_, actor_;
};

}  // namespace rlt
