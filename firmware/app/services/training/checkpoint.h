// The 64 bytes before the training state in /checkpoint.rltc (docs/protocol.md, "Checkpoint"), and
// their check.
#pragma once

#include "rltools/core/crc32.h"
#include "rltools/core/sha256.h"

namespace rlt {

// Little-endian; every field lies on a multiple of its size.
struct CheckpointHeader {
  char magic[4];
  std::uint16_t version;
  std::uint16_t header_bytes;
  std::uint32_t fingerprint;
  std::uint32_t payload_bytes;
  std::uint32_t step;
  std::uint32_t reserved;
  std::uint8_t sha256[Sha256::kDigestBytes];
  std::uint32_t crc32;  // of the bytes before
  std::uint32_t end;    // zero
};
constexpr std::uint32_t kCheckpointHeaderBytes = 64;
constexpr std::uint16_t kCheckpointVersion = 1;
static_assert(sizeof(CheckpointHeader) == kCheckpointHeaderBytes &&
                  offsetof(CheckpointHeader, crc32) == 56,
              "docs/protocol.md gives the header's bytes");

inline std::uint32_t header_checksum(const CheckpointHeader& header) {
  return crc32(&header, offsetof(CheckpointHeader, crc32));
}

inline CheckpointHeader make_checkpoint_header(std::uint32_t fingerprint,
                                               std::uint32_t payload_bytes, std::uint32_t step,
                                               const std::uint8_t (&sha256)[32]) {
  CheckpointHeader header{{'R', 'L', 'T', 'C'},
                          kCheckpointVersion,
                          kCheckpointHeaderBytes,
                          fingerprint,
                          payload_bytes,
                          step,
                          0,
                          {},
                          0,
                          0};
  __builtin_memcpy(header.sha256, sha256, sizeof(header.sha256));
  header.crc32 = header_checksum(header);
  return header;
}

// Why a checkpoint is refused.
enum class CheckpointReason : std::uint8_t {
  accepted,
  bad_magic,
  damaged_header,
  unknown_version,
  other_experiment,
  wrong_size,
  incomplete,
  wrong_sha256,
  wrong_step,
  inconsistent,
  not_finite,
};

// Return the text of a STATUSTEXT: at most 50 characters.
constexpr const char* checkpoint_reason_text(CheckpointReason reason) {
  switch (reason) {
    case CheckpointReason::accepted: return "checkpoint accepted";
    case CheckpointReason::bad_magic: return "checkpoint refused: it does not begin as one";
    case CheckpointReason::damaged_header: return "checkpoint refused: its header is damaged";
    case CheckpointReason::unknown_version: return "checkpoint refused: unknown format version";
    case CheckpointReason::other_experiment: return "checkpoint refused: of another experiment";
    case CheckpointReason::wrong_size: return "checkpoint refused: of another size";
    case CheckpointReason::incomplete: return "checkpoint refused: it was not sent whole";
    case CheckpointReason::wrong_sha256: return "checkpoint refused: its SHA-256 does not match";
    case CheckpointReason::wrong_step: return "checkpoint refused: its step does not match";
    case CheckpointReason::inconsistent: return "checkpoint refused: its replay is inconsistent";
    case CheckpointReason::not_finite: return "checkpoint refused: a number is not finite";
  }
  return "checkpoint refused";
}

inline CheckpointReason check_header(const CheckpointHeader& header, std::uint32_t fingerprint,
                                     std::uint32_t payload_bytes) {
  if (__builtin_memcmp(header.magic, "RLTC", 4) != 0) return CheckpointReason::bad_magic;
  if (header.crc32 != header_checksum(header)) return CheckpointReason::damaged_header;
  if (header.version != kCheckpointVersion || header.header_bytes != kCheckpointHeaderBytes) {
    return CheckpointReason::unknown_version;
  }
  if (header.fingerprint != fingerprint) return CheckpointReason::other_experiment;
  if (header.payload_bytes != payload_bytes) return CheckpointReason::wrong_size;
  return CheckpointReason::accepted;
}

}  // namespace rlt
