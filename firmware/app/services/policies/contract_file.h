// The contract under which policies act, as a file (docs/protocol.md, "Policies"): a host
// that has a policy for other channels can say which one differs.
#pragma once

#include "rltools/policy/format.h"

namespace rlt {

// The channels' records as in a policy image, observations first; those of what actions choose
// from; step_interval_us; the numbers of observations and of actions.
class ContractFile {
 public:
  explicit ContractFile(const PolicyContract& contract) : contract_(contract) {}

  std::uint32_t size() const { return record_count() * kRecordBytes + sizeof(Tail); }

  // Read the bytes [offset, offset + count), of no more than size().
  void read(std::uint32_t offset, std::uint8_t* destination, std::uint32_t count) const {
    while (count > 0) {
      const std::uint32_t record = offset / kRecordBytes, first = offset % kRecordBytes;
      std::uint8_t bytes[kRecordBytes];
      fill(record, bytes);
      const std::uint32_t left = kRecordBytes - first;
      const std::uint32_t taken = left < count ? left : count;
      __builtin_memcpy(destination, bytes + first, taken);
      destination += taken;
      offset += taken;
      count -= taken;
    }
  }

 private:
  struct Tail {
    std::uint32_t step_interval_us;
    std::uint16_t observation_dim, action_dim;
  };
  static constexpr std::uint32_t kRecordBytes = sizeof(PolicyImageChoice);
  static_assert(sizeof(Tail) == 8, "docs/protocol.md gives the contract's bytes");
  static_assert(sizeof(PolicyImageChannel) == 2 * kRecordBytes, "a channel takes two records");

  std::uint32_t channel_count() const {
    return static_cast<std::uint32_t>(contract_.observation_dim + contract_.action_dim);
  }

  std::uint32_t record_count() const {
    const int choices = choice_count(contract_.actions, contract_.action_dim);
    return 2 * channel_count() + static_cast<std::uint32_t>(choices);
  }

  // Fill in half of a channel's record, the name of a choice, or what stands behind the last one.
  void fill(std::uint32_t record, std::uint8_t (&bytes)[kRecordBytes]) const {
    if (record < 2 * channel_count()) {
      const Channel& channel = channel_of(contract_, static_cast<int>(record / 2));
      const PolicyImageChannel content = detail::record_of(channel);
      const auto* half =
          reinterpret_cast<const std::uint8_t*>(&content) + record % 2 * kRecordBytes;
      __builtin_memcpy(bytes, half, kRecordBytes);
      return;
    }
    if (record < record_count()) {
      std::uint32_t number = 2 * channel_count();
      detail::for_each_choice_record(contract_, [&](const PolicyImageChoice& choice) {
        if (number++ == record) __builtin_memcpy(bytes, &choice, kRecordBytes);
      });
      return;
    }
    const Tail tail{contract_.step_interval_us,
                    static_cast<std::uint16_t>(contract_.observation_dim),
                    static_cast<std::uint16_t>(contract_.action_dim)};
    __builtin_memcpy(bytes, &tail, sizeof(tail));
  }

  PolicyContract contract_;
};

}  // namespace rlt
