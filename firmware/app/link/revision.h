// The source revision that the firmware was built from.
#pragma once

namespace rlt {

// At most 15 characters; empty where it is not known.
extern const char kRevision[];

}  // namespace rlt
