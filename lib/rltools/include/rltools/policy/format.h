// The deployable policy image's records, byte by byte as docs/policy_image.md has them, and the
// reasons for which a device refuses an image. Little-endian; every record is a multiple of four
// bytes. Format 1 has dense layers only, format 2 recurrent ones too.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rltools/core/crc32.h"
#include "rltools/policy/contract.h"

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the policy image is read in place: the processor must be little-endian"
#endif

namespace rlt {

constexpr char kPolicyMagic[4] = {'R', 'L', 'T', 'P'};
constexpr std::uint16_t kPolicyVersion = 1, kRecurrentPolicyVersion = 2;
// The header's flags.
constexpr std::uint32_t kPolicyHasNormalizer = 1, kPolicyHasChoices = 2, kPolicyHasEntry = 4;
constexpr std::uint32_t kPolicyAssumptions = kStepIntervalAssumed | kSafeActionAssumed;
constexpr std::uint32_t kPolicyFlags =
    kPolicyHasNormalizer | kPolicyHasChoices | kPolicyHasEntry | kPolicyAssumptions;
// Examples that this library writes; a reader takes any number above 0. Those of a recurrent policy
// are two sequences.
constexpr std::uint16_t kPolicyExampleCount = 8, kRecurrentExampleCount = 16;
constexpr std::uint32_t kSecondSequence = 10;  // the example with which it begins
constexpr std::size_t kPolicyNameBytes =
    32;  // of experiment and environment, with the terminating zero
constexpr std::size_t kChannelNameBytes = 24;
constexpr std::size_t kChannelUnitBytes = 16;
constexpr const char* kChoiceUnit = "choice";  // of an action that is one
constexpr int kMaxChoices = 256;               // of one action

// The records lie in an array of bytes: may_alias lets them be read there.
struct __attribute__((__may_alias__)) PolicyImageHeader {
  char magic[4];
  std::uint16_t version;
  std::uint16_t header_bytes;
  std::uint32_t total_bytes;
  std::uint32_t crc32;  // of all bytes of the image but these four
  std::uint16_t observation_dim;
  std::uint16_t action_dim;
  std::uint16_t layer_count;
  std::uint16_t example_count;
  std::uint32_t flags;
  std::uint32_t step_interval_us;
  std::uint32_t step;
  std::uint32_t seed;
  std::uint32_t fingerprint;
  std::uint32_t reserved;
  std::uint8_t state_sha256[32];
  char experiment[kPolicyNameBytes];
  char environment[kPolicyNameBytes];
};

// When a policy's hidden state is set to zero; between these it is held.
enum PolicyStateReset : std::uint16_t {
  kResetAtActivation = 1,  // always
  kResetAtFault = 2,       // an input or an output cannot be used
  kResetAtStaleInput = 4,  // there is no newer input
  kResetAtPause = 8,       // the policy has not acted for more than max_pause_us
  kResetAtAll = 15,
};

// Behind the header of format 2.
struct __attribute__((__may_alias__)) PolicyImageRecurrence {
  std::uint32_t trained_interval_us;  // the step that moves the hidden state on
  std::uint32_t max_pause_us;
  std::uint16_t state_dim;
  std::uint16_t reset_at;  // PolicyStateReset
  std::uint32_t reserved;
};

enum class PolicyLayerKind : std::uint8_t { dense, gru, lstm };

struct __attribute__((__may_alias__)) PolicyImageLayer {
  std::uint16_t input_dim;
  std::uint16_t output_dim;
  std::uint8_t activation;
  std::uint8_t kind;  // PolicyLayerKind; of a recurrent layer the activation is 0
  std::uint8_t reserved[2];
};

struct __attribute__((__may_alias__)) PolicyImageChannel {
  char name[kChannelNameBytes];
  char unit[kChannelUnitBytes];
  float minimum;
  float maximum;
};

// The name of one thing that an action may choose.
struct __attribute__((__may_alias__)) PolicyImageChoice {
  char name[kChannelNameBytes];
};

// The states in which the policy may be handed the vehicle: EntryEnvelope.
struct __attribute__((__may_alias__)) PolicyImageEntry {
  float speed_m_s;
  float offset_m;
  float tilt_rad;
  float rate_rad_s;
  float height_m;
  std::uint32_t reserved;
};

static_assert(sizeof(PolicyImageHeader) == 144 && offsetof(PolicyImageHeader, state_sha256) == 48,
              "docs/policy_image.md gives the header's bytes");
static_assert(sizeof(PolicyImageRecurrence) == 16, "docs/policy_image.md gives its bytes");
static_assert(sizeof(PolicyImageLayer) == 8, "docs/policy_image.md gives the layer's bytes");
static_assert(sizeof(PolicyImageChannel) == 48, "docs/policy_image.md gives the channel's bytes");
static_assert(sizeof(PolicyImageChoice) == 24, "docs/policy_image.md gives the choice's bytes");
static_assert(sizeof(PolicyImageEntry) == 24, "docs/policy_image.md gives the envelope's bytes");

// Return the bytes of the header and of the records behind it.
constexpr std::uint16_t policy_header_bytes(bool is_recurrent) {
  return sizeof(PolicyImageHeader) +
         (is_recurrent ? sizeof(PolicyImageRecurrence) : std::size_t{0});
}

inline bool is_of_kind(const PolicyImageLayer& layer, PolicyLayerKind kind) {
  return layer.kind == static_cast<std::uint8_t>(kind);
}
inline bool is_recurrent(const PolicyImageLayer& layer) {
  return is_of_kind(layer, PolicyLayerKind::gru) || is_of_kind(layer, PolicyLayerKind::lstm);
}
// Return the numbers of a recurrent layer's hidden state. An LSTM keeps its cells besides its
// outputs.
inline int state_dim(const PolicyImageLayer& layer) {
  return is_of_kind(layer, PolicyLayerKind::lstm) ? 2 * layer.output_dim : layer.output_dim;
}

// Return whether the record behind the header of format 2 is right, for a tick of this length.
inline bool is_recurrence(const PolicyImageRecurrence& recurrence, std::uint32_t interval_us) {
  return is_step_interval(recurrence.trained_interval_us) &&
         recurrence.trained_interval_us % interval_us == 0 &&
         recurrence.max_pause_us >= interval_us && is_step_interval(recurrence.max_pause_us) &&
         recurrence.state_dim != 0 && (recurrence.reset_at & kResetAtActivation) != 0 &&
         recurrence.reset_at <= kResetAtAll && recurrence.reserved == 0;
}

// Why an image is refused, in the order in which a reader checks.
enum class PolicyReason : std::uint8_t {
  accepted,
  misaligned,
  too_short,
  bad_magic,
  unknown_version,
  wrong_size,
  wrong_crc,
  malformed,
  not_finite,
  other_contract,
  too_large,
  example_not_reproduced,
  history_too_long,  // found with other_contract
  state_not_kept,    // likewise
};
constexpr int kPolicyReasonCount = 14;

constexpr const char* policy_reason_text(PolicyReason reason) {
  switch (reason) {
    case PolicyReason::accepted: return "accepted";
    case PolicyReason::misaligned: return "the image does not lie on a four-byte boundary";
    case PolicyReason::too_short: return "too short to hold a header";
    case PolicyReason::bad_magic: return "not a policy image";
    case PolicyReason::unknown_version: return "written in another version of the format";
    case PolicyReason::wrong_size: return "not as long as its header says";
    case PolicyReason::wrong_crc: return "damaged, its checksum does not match";
    case PolicyReason::malformed: return "a table contradicts itself";
    case PolicyReason::not_finite: return "a number is not finite";
    case PolicyReason::other_contract: return "made for other observations, actions or rate";
    case PolicyReason::too_large: return "needs more memory than there is";
    case PolicyReason::example_not_reproduced: return "an example gives other bits here";
    case PolicyReason::history_too_long: return "asks for older actions than are kept";
    case PolicyReason::state_not_kept: return "has a hidden state, which is not kept here";
  }
  return "unknown reason";
}

// Return the checksum of an image: CRC-32 of all its bytes but the four that hold the checksum.
inline std::uint32_t policy_image_crc32(const std::uint8_t* image, std::size_t count) {
  constexpr std::size_t kField = offsetof(PolicyImageHeader, crc32);
  const std::uint32_t first = crc32(image, kField);
  return crc32(image + kField + 4, count - kField - 4, first);
}

namespace detail {

// Longer texts than any field takes; their length counts as this.
constexpr std::size_t kMaxTextLength = 255;

// Return the length of a text. Not by the loop that GCC takes for strlen: GCC 14 warns falsely of
// one whose text was put together at compile time.
constexpr std::size_t text_length(const char* text) {
  std::size_t length = 0;
  while (length < kMaxTextLength && text[length] != '\0') length++;
  return length;
}

// Copy `length` bytes of text into a field of zeros, cut so that a terminating zero remains.
template <std::size_t Capacity>
inline void copy_text(char (&field)[Capacity], const char* text, std::size_t length) {
  // GCC 12 warns falsely where it knows the text, and that it was put together at compile time.
#if !defined(__clang__)
  __asm__("" : "+r"(text));
#endif
  const std::size_t copied = length < Capacity ? length : Capacity - 1;
  for (std::size_t i = 0; i < Capacity; i++) field[i] = '\0';
  __builtin_memcpy(field, text, copied);
}

template <std::size_t Capacity>
inline void copy_text(char (&field)[Capacity], const char* text) {
  copy_text(field, text, text_length(text));
}

inline PolicyImageChannel record_of(const Channel& channel) {
  PolicyImageChannel record;
  copy_text(record.name, channel.name);
  copy_text(record.unit, choice_count(channel) > 0 ? kChoiceUnit : channel.unit);
  record.minimum = channel.minimum;
  record.maximum = channel.maximum;
  return record;
}

// Call visit(record) for each name that the actions may choose, action after action.
template <class Visit>
inline void for_each_choice_record(const PolicyContract& contract, Visit&& visit) {
  for (int i = 0; i < contract.action_dim; i++) {
    for_each_choice(contract.actions[i], [&](const char* name, int length) {
      PolicyImageChoice record;
      copy_text(record.name, name, static_cast<std::size_t>(length));
      visit(record);
    });
  }
}

}  // namespace detail

// Return the checksum that tells one contract from another: CRC-32 of the channels' records,
// observations first, then of the records of what the actions choose from, then of the step
// interval.
inline std::uint32_t contract_crc32(const PolicyContract& contract) {
  std::uint32_t sum = 0;
  for (int i = 0; i < contract.observation_dim + contract.action_dim; i++) {
    const PolicyImageChannel record = detail::record_of(channel_of(contract, i));
    sum = crc32(&record, sizeof(record), sum);
  }
  detail::for_each_choice_record(contract, [&sum](const PolicyImageChoice& record) {
    sum = crc32(&record, sizeof(record), sum);
  });
  return crc32(&contract.step_interval_us, sizeof(contract.step_interval_us), sum);
}

}  // namespace rlt
