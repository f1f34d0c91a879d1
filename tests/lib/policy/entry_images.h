// An image that states what its policy may be handed: another one, and that.
#pragma once

#include <vector>

#include "rltools/policy/reader.h"

namespace entry_images {

using namespace rlt;

// Of an accepted image that states none.
inline std::vector<std::uint8_t> with_entry(std::vector<std::uint8_t> image,
                                            const EntryEnvelope& entry) {
  PolicyView view;
  if (!parse_policy(image.data(), image.size(), view).accepted() || view.states_entry) return {};
  const AliasingFloat* numbers = view.mean != nullptr ? view.mean : view.parameters;
  const auto place = reinterpret_cast<const std::uint8_t*>(numbers) - image.data();
  const PolicyImageEntry record = {entry.speed_m_s,  entry.offset_m, entry.tilt_rad,
                                   entry.rate_rad_s, entry.height_m, 0};
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&record);
  image.insert(image.begin() + place, bytes, bytes + sizeof(record));
  auto& header = *reinterpret_cast<PolicyImageHeader*>(image.data());
  header.flags |= kPolicyHasEntry;
  header.total_bytes += static_cast<std::uint32_t>(sizeof(record));
  header.crc32 = policy_image_crc32(image.data(), image.size());
  return image;
}

}  // namespace entry_images
