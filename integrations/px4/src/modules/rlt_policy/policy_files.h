// Policies as files of one folder, which come by MAVLink FTP:
//   policy.rltp     acts
//   candidate.rltp  is tried when somebody asks for it, and then kept or not
//   previous.rltp   acted before policy.rltp
// After a power cut at any moment, load_policy() finds the old or the new policy, whole.
// `Files` has
//   bool exists(const char* name);  bool remove(const char* name);
//   bool rename(const char* from, const char* to);   where `to` does not exist
//   template <class Take> bool read(const char* name, Take&& take);
// read() calls take(offset, bytes, count), in order, until it returns false.
#pragma once

#include <cstdint>

#include "rltools/policy/deployment.h"

namespace rlt::px4 {

constexpr const char* kPolicyFile = "policy.rltp";
constexpr const char* kCandidateFile = "candidate.rltp";
constexpr const char* kPreviousFile = "previous.rltp";

// The outcome of reading a file.
struct FileVerdict {
  bool is_there = true;
  bool was_read = false;  // to its end
  StageVerdict image = {SlotError::incomplete, {PolicyReason::accepted, 0}};
  bool accepted() const { return was_read && image.accepted(); }
};

// Make the file's bytes the candidate of the deployment.
template <class Files, class Deployment>
FileVerdict stage_file(Files& files, const char* name, Deployment& deployment) {
  FileVerdict verdict;
  verdict.image.error = deployment.stage();
  if (verdict.image.error != SlotError::none) return verdict;
  verdict.was_read =
      files.read(name, [&](std::uint32_t offset, const std::uint8_t* bytes, std::uint32_t count) {
        verdict.image.error = deployment.write(offset, bytes, count);
        return verdict.image.error == SlotError::none;
      });
  if (verdict.was_read && verdict.image.error == SlotError::none) {
    verdict.image = deployment.finish();
  }
  return verdict;
}

// Load the policy at start: policy.rltp acts, or else previous.rltp. The verdict is that of the
// first one that exists, unless the other one acts; none is there where none exists.
template <class Files, class Deployment>
FileVerdict load_policy(Files& files, Deployment& deployment) {
  FileVerdict first;
  first.is_there = false;
  const char* const names[] = {kPolicyFile, kPreviousFile};
  for (const char* name : names) {
    if (!files.exists(name)) continue;
    const FileVerdict verdict = stage_file(files, name, deployment);
    if (verdict.accepted()) {
      deployment.start_trial(0, 1000000);
      deployment.confirm(0);
      return verdict;
    }
    if (!first.is_there) first = verdict;
  }
  return first;
}

// Return whether candidate.rltp still is the image that was tried.
template <class Files>
bool is_candidate(Files& files, const std::uint8_t* image, std::uint32_t bytes) {
  std::uint32_t seen = 0;
  const bool equal = files.read(
      kCandidateFile, [&](std::uint32_t offset, const std::uint8_t* part, std::uint32_t count) {
        seen = offset + count;
        return seen <= bytes && __builtin_memcmp(image + offset, part, count) == 0;
      });
  return equal && seen == bytes;
}

// Rename candidate.rltp to policy.rltp, and that to previous.rltp.
template <class Files>
bool keep_candidate(Files& files) {
  if (!files.exists(kCandidateFile)) return false;
  if (files.exists(kPolicyFile)) {
    if (files.exists(kPreviousFile) && !files.remove(kPreviousFile)) return false;
    if (!files.rename(kPolicyFile, kPreviousFile)) return false;
  }
  return files.rename(kCandidateFile, kPolicyFile);
}

// Rename previous.rltp to policy.rltp, which is given up.
template <class Files>
bool restore_previous(Files& files) {
  if (!files.exists(kPreviousFile)) return false;
  if (files.exists(kPolicyFile) && !files.remove(kPolicyFile)) return false;
  return files.rename(kPreviousFile, kPolicyFile);
}

}  // namespace rlt::px4
