// The contract of the place where policies act, as a file (docs/protocol.md, "Policies"): a host
// that has a policy for other channels can say which one differs.
#pragma once

#include "rltools/policy/format.h"

namespace rlt {

// The channels' records as in a policy image, observations first; step_interval_us; the numbers of
// observations and of actions.
class ContractFile {
 public:
  explicit ContractFile(const PolicyContract& contract) : contract_(contract) {}

  std::uint32_t size() const { return channel_count() * kRecordBytes + sizeof(Tail); }

  // The bytes [offset, offset + count), of no more than size().
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
  static constexpr std::uint32_t kRecordBytes = sizeof(PolicyImageChannel);
  static_assert(sizeof(Tail) == 8, "docs/protocol.md gives the contract's bytes");

  std::uint32_t channel_count() const {
    return static_cast<std::uint32_t>(contract_.observation_dim + contract_.action_dim);
  }

  // A channel's record, or what stands behind the last one.
  void fill(std::uint32_t record, std::uint8_t (&bytes)[kRecordBytes]) const {
    if (record < channel_count()) {
      const Channel& channel = channel_of(contract_, static_cast<int>(record));
      const PolicyImageChannel content = detail::record_of(channel);
      __builtin_memcpy(bytes, &content, sizeof(content));
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
