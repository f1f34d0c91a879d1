// The files of training, over the memory of the training state itself: /checkpoint.rltc is read
// from and written to the live arrays. /policy.rltp is the policy of that state, /best.rltp that of
// the best evaluation. docs/protocol.md, "Checkpoint".
#pragma once

#include "app/services/file_message.h"
#include "app/services/training/checkpoint_state.h"
#include "rltools/rl/policy_of_training.h"

namespace rlt {

namespace detail {

template <class E>
struct BestPolicy {
  std::uint8_t best[kPolicyImageBytes<E>];
  bool has_best = false;
  float best_mean = 0.0f;  // return of its evaluation
};
struct NoBestPolicy {};

}  // namespace detail

// The images of a run's policies: that of the state at rest, and where there is memory for it that
// of the best evaluation.
template <class E, bool KeepsBest>
struct PolicyImages : std::conditional_t<KeepsBest, detail::BestPolicy<E>, detail::NoBestPolicy> {
  std::uint8_t last[kPolicyImageBytes<E>];
};

// The files of a training. RLT_STATE, which Owner has, decides whether a file can be opened. Owner
// must provide:
//   bool is_at_rest() const                        there is a state that does not change
//   bool is_training() const
//   void upload_begins()                           the state is no longer that of a run
//   void upload_restored()                         the state is that of the checkpoint
//   void upload_refused(CheckpointReason)
template <class E, class Owner, bool KeepsBest>
class TrainingFiles {
 public:
  using Images = PolicyImages<E, KeepsBest>;

  TrainingFiles(Owner& owner, Training<E>& training, Images& images)
      : owner_(owner),
        training_(training),
        images_(images),
        fingerprint_(fingerprint(training)),
        state_bytes_(state_bytes(training)) {}

  // Make the files of the state, which has come to rest.
  template <class Device>
  void publish(Device device) {
    std::uint8_t sha256[Sha256::kDigestBytes];
    hash_state(training_, sha256);
    header_ = make_checkpoint_header(fingerprint_, state_bytes_, steps_done(training_), sha256);
    build_policy_image(device, training_, sha256, images_.last);
  }

  // Keep the policy if no evaluation since forget_best() had as large a mean return.
  template <class Device>
  void keep_if_best(Device device, float mean) {
    static_assert(KeepsBest);
    const bool is_number = mean == mean;
    if (!is_number || (images_.has_best && mean <= images_.best_mean)) return;
    std::uint8_t sha256[Sha256::kDigestBytes];
    hash_state(training_, sha256);
    build_policy_image(device, training_, sha256, images_.best);
    images_.has_best = true;
    images_.best_mean = mean;
  }
  void forget_best() {
    if constexpr (KeepsBest) images_.has_best = false;
  }

  std::uint32_t fingerprint_of_experiment() const { return fingerprint_; }
  std::uint32_t checkpoint_size() const { return kCheckpointHeaderBytes + state_bytes_; }
  const CheckpointHeader& header() const { return header_; }

  // -- what a FileServer needs --------------------------------------------------------------------

  static constexpr int kFileCount = KeepsBest ? 3 : 2;
  static constexpr int kCheckpoint = 0, kBest = 2;

  const char* name(int file) const {
    if (KeepsBest && file == kBest) return "best.rltp";
    return file == kCheckpoint ? "checkpoint.rltc" : "policy.rltp";
  }
  std::uint32_t size(int file) const {
    if constexpr (KeepsBest) {
      if (file == kBest && !images_.has_best) return 0;
    }
    return file == kCheckpoint ? checkpoint_size() : kPolicyImageBytes<E>;
  }

  FileError may_read(int file) const {
    if (!owner_.is_at_rest()) return FileError::fail_errno;
    if constexpr (KeepsBest) {
      if (file == kBest && !images_.has_best) return FileError::file_not_found;
    }
    return FileError::none;
  }
  FileError may_write(int file) const {
    if (file != kCheckpoint) return FileError::file_protected;
    return owner_.is_training() ? FileError::fail_errno : FileError::none;
  }

  FileError open_to_write(int) {
    upload_ = Upload::header;
    received_bytes_ = 0;
    return FileError::none;
  }

  void read(int file, std::uint32_t offset, std::uint8_t* destination, std::uint32_t count) {
    if constexpr (KeepsBest) {
      if (file == kBest) {
        __builtin_memcpy(destination, images_.best + offset, count);
        return;
      }
    }
    if (file != kCheckpoint) {
      __builtin_memcpy(destination, images_.last + offset, count);
      return;
    }
    const std::uint32_t of_header = bytes_of_header(offset, count);
    const std::uint8_t* header = reinterpret_cast<const std::uint8_t*>(&header_);
    __builtin_memcpy(destination, header + offset, of_header);
    read_state(training_, offset + of_header - kCheckpointHeaderBytes, destination + of_header,
               count - of_header);
  }

  // Write bytes of a checkpoint. The header comes first and in order; the state's bytes then in any
  // order. What comes before its turn is not answered: a client that has several writes under way
  // sends it again.
  FileError write(int, std::uint32_t offset, const std::uint8_t* source, std::uint32_t count) {
    if (upload_ == Upload::refused) return FileError::fail;
    const std::uint32_t of_header = bytes_of_header(offset, count);
    if (upload_ == Upload::header) {
      if (offset > received_bytes_ || of_header == 0) return FileError::unanswered;
      const FileError error = write_header(offset, source, of_header);
      if (upload_ != Upload::accepted) return error;
    }
    if (count > of_header) {
      if (upload_ == Upload::accepted) owner_.upload_begins();
      upload_ = Upload::state;
      write_state(training_, offset + of_header - kCheckpointHeaderBytes, source + of_header,
                  count - of_header);
    }
    return FileError::none;
  }

  // Close an upload. A header that is refused leaves the state as it is, and so does one without a
  // state behind it.
  void close_written(int, bool finished) {
    const Upload upload = upload_;
    upload_ = Upload::none;
    if (upload == Upload::refused) return;  // it was said when it happened
    const bool whole = finished && upload == Upload::state;
    const CheckpointReason reason =
        whole ? check_state(training_, incoming_) : CheckpointReason::incomplete;
    if (reason == CheckpointReason::accepted) return owner_.upload_restored();
    owner_.upload_refused(reason);
  }

 private:
  // from       by                                        to
  // any        open_to_write()                           header
  // header     write() of the header's last byte: fits   accepted
  //            it does not fit                           refused
  // accepted   write() of bytes of the state             state
  // any        close_written(), finished or broken off   none
  enum class Upload : std::uint8_t {
    none,
    header,    // of the header received_bytes_ have come
    accepted,  // the header fits; the state is as before
    state,     // the state is being overwritten
    refused,   // the header does not fit; the state is as before
  };

  FileError write_header(std::uint32_t offset, const std::uint8_t* source, std::uint32_t count) {
    __builtin_memcpy(reinterpret_cast<std::uint8_t*>(&incoming_) + offset, source, count);
    if (offset + count > received_bytes_) received_bytes_ = offset + count;
    if (received_bytes_ < kCheckpointHeaderBytes) return FileError::none;
    const CheckpointReason reason = check_header(incoming_, fingerprint_, state_bytes_);
    upload_ = reason == CheckpointReason::accepted ? Upload::accepted : Upload::refused;
    if (upload_ == Upload::accepted) return FileError::none;
    owner_.upload_refused(reason);
    return FileError::fail;
  }

  // Return the number of the bytes [offset, offset + count) that belong to the header.
  static std::uint32_t bytes_of_header(std::uint32_t offset, std::uint32_t count) {
    if (offset >= kCheckpointHeaderBytes) return 0;
    const std::uint32_t left = kCheckpointHeaderBytes - offset;
    return count < left ? count : left;
  }

  Owner& owner_;
  Training<E>& training_;
  Images& images_;
  const std::uint32_t fingerprint_;
  const std::uint32_t state_bytes_;
  CheckpointHeader header_{};
  CheckpointHeader incoming_{};
  std::uint32_t received_bytes_ = 0;  // of the incoming header
  Upload upload_ = Upload::none;
};

}  // namespace rlt
