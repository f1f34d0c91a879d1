// The files of the train application, over the memory of the training state itself:
// /checkpoint.rltc is read from and written to the live arrays. docs/protocol.md, "Checkpoint".
#pragma once

#include "app/file_server.h"
#include "app/train/checkpoint.h"
#include "app/train/state_bytes.h"
#include "rltools/rl/policy_of_training.h"

namespace rlt {

template <class E>
class TrainingFiles {
 public:
  using FileError = link::FileError;
  using PolicyImage = std::uint8_t[kPolicyImageBytes<E>];

  // What an upload has done to the training state since the last call of take_event().
  enum class Event : std::uint8_t {
    none,
    refused,      // nothing written, for reason()
    overwritten,  // the state is no longer that of a run
    damaged,      // written, but not a checkpoint, for reason()
    restored,     // the state is that of the checkpoint
  };

  TrainingFiles(Training<E>& training, PolicyImage& policy_image)
      : training_(training),
        policy_image_(policy_image),
        fingerprint_(fingerprint(training)),
        state_bytes_(state_bytes(training)) {}

  // The state has come to rest: files can be read.
  template <class Device>
  void publish(Device device) {
    std::uint8_t sha256[Sha256::kDigestBytes];
    hash_state(training_, sha256);
    header_ = make_checkpoint_header(fingerprint_, state_bytes_, steps_done(training_), sha256);
    build_policy_image(device, training_, sha256, policy_image_);
    readable_ = writable_ = true;
  }

  // The state is no longer at rest, or no longer that of a run. The server's session must be
  // closed.
  void withdraw(bool writable) {
    readable_ = false;
    writable_ = writable;
  }

  Event take_event() {
    const Event event = event_;
    event_ = Event::none;
    return event;
  }
  CheckpointReason reason() const { return reason_; }

  std::uint32_t fingerprint_of_experiment() const { return fingerprint_; }
  std::uint32_t checkpoint_bytes() const { return kCheckpointHeaderBytes + state_bytes_; }
  const CheckpointHeader& header() const { return header_; }

  // -- what a FileServer needs --------------------------------------------------------------------

  static constexpr int kFileCount = 2;
  static constexpr int kCheckpoint = 0;

  const char* name(int file) const {
    return file == kCheckpoint ? "checkpoint.rltc" : "policy.rltp";
  }
  std::uint32_t bytes(int file) const {
    return file == kCheckpoint ? checkpoint_bytes() : kPolicyImageBytes<E>;
  }

  FileError open_to_read(int) { return readable_ ? FileError::none : FileError::fail_errno; }

  FileError open_to_write(int file) {
    if (file != kCheckpoint) return FileError::file_protected;
    if (!writable_) return FileError::fail_errno;
    upload_ = Upload::header;
    received_bytes_ = 0;
    return FileError::none;
  }

  void read(int file, std::uint32_t offset, std::uint8_t* destination, std::uint32_t count) {
    if (file != kCheckpoint) {
      __builtin_memcpy(destination, policy_image_ + offset, count);
      return;
    }
    const std::uint32_t of_header = bytes_of_header(offset, count);
    const std::uint8_t* header = reinterpret_cast<const std::uint8_t*>(&header_);
    __builtin_memcpy(destination, header + offset, of_header);
    read_state(training_, offset + of_header - kCheckpointHeaderBytes, destination + of_header,
               count - of_header);
  }

  // The header comes first and in order; the state's bytes then in any order. A header that is
  // refused leaves the state as it is.
  FileError write(int, std::uint32_t offset, const std::uint8_t* source, std::uint32_t count) {
    const std::uint32_t of_header = bytes_of_header(offset, count);
    if (upload_ == Upload::header) {
      if (offset > received_bytes_ || of_header == 0) return FileError::fail;
      __builtin_memcpy(reinterpret_cast<std::uint8_t*>(&incoming_) + offset, source, of_header);
      if (offset + of_header > received_bytes_) received_bytes_ = offset + of_header;
      if (received_bytes_ < kCheckpointHeaderBytes) return FileError::none;
      const CheckpointReason reason = check_header(incoming_, fingerprint_, state_bytes_);
      if (reason != CheckpointReason::accepted) return refuse(reason);
      upload_ = Upload::state;
    }
    if (upload_ != Upload::state) return FileError::fail;
    if (count > of_header) {
      readable_ = false;
      event_ = Event::overwritten;
      overwritten_ = true;
      write_state(training_, offset + of_header - kCheckpointHeaderBytes, source + of_header,
                  count - of_header);
    }
    return FileError::none;
  }

  void close_written(int, bool finished) {
    if (upload_ != Upload::refused) {
      reason_ = finished && overwritten_ ? check_state() : CheckpointReason::incomplete;
      event_ = !overwritten_                           ? Event::refused
               : reason_ == CheckpointReason::accepted ? Event::restored
                                                       : Event::damaged;
    }
    upload_ = Upload::none;
    overwritten_ = false;
  }

 private:
  enum class Upload : std::uint8_t { none, header, state, refused };

  // How many of the bytes [offset, offset + count) belong to the header.
  static std::uint32_t bytes_of_header(std::uint32_t offset, std::uint32_t count) {
    if (offset >= kCheckpointHeaderBytes) return 0;
    const std::uint32_t left = kCheckpointHeaderBytes - offset;
    return count < left ? count : left;
  }

  FileError refuse(CheckpointReason reason) {
    upload_ = Upload::refused;
    event_ = Event::refused;
    reason_ = reason;
    return FileError::fail;
  }

  CheckpointReason check_state() {
    std::uint8_t sha256[Sha256::kDigestBytes];
    hash_state(training_, sha256);
    if (__builtin_memcmp(sha256, incoming_.sha256, sizeof(sha256)) != 0) {
      return CheckpointReason::wrong_sha256;
    }
    if (steps_done(training_) != incoming_.step) return CheckpointReason::wrong_step;
    if (!is_consistent(training_.replay, incoming_.step)) return CheckpointReason::inconsistent;
    if (!state_is_finite(training_)) return CheckpointReason::not_finite;
    return CheckpointReason::accepted;
  }

  Training<E>& training_;
  PolicyImage& policy_image_;
  const std::uint32_t fingerprint_;
  const std::uint32_t state_bytes_;
  CheckpointHeader header_{};
  CheckpointHeader incoming_{};
  std::uint32_t received_bytes_ = 0;  // of the incoming header
  Upload upload_ = Upload::none;
  bool readable_ = false;
  bool writable_ = true;
  bool overwritten_ = false;
  Event event_ = Event::none;
  CheckpointReason reason_ = CheckpointReason::accepted;
};

}  // namespace rlt
