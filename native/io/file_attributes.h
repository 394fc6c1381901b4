// What a file that replaces another takes over from it: owner, group, permissions, access control list and
// extended attributes, as far as this process may set them.
#pragma once

#include <sys/stat.h>

#include <string>

namespace tilework {

// `old` is the status of the replaced file, `old_descriptor` is -1 where that file may not be read: then its
// extended attributes and its list stay behind. What may not be set never gives anyone more access than
// before. Errors: a system error that names `asked` where the permissions cannot be set.
void hand_down_attributes(int old_descriptor, const struct stat& old, int descriptor,
                          const std::string& asked);

}  // namespace tilework
