// The one source file that is compiled again when the revision changes.
#include "app/link/revision.h"

#if __has_include("rlt_revision.h")
#include "rlt_revision.h"
#else
#define RLT_REVISION ""
#endif

namespace rlt {

const char kRevision[] = RLT_REVISION;

}  // namespace rlt
