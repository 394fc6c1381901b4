// Functions of the addon for files of a folder that are not open.
#pragma once

#include <napi.h>

#include "io/file_identity.h"

namespace tilework::binding {

// {device, inode, size, modified}, each a BigInt.
Napi::Object to_javascript(Napi::Env env, const FileIdentity& identity);

// removeBelow(folder, name, identity): boolean
Napi::Value remove_below(const Napi::CallbackInfo& info);
// readOwnFile(path, mostBytes): Uint8Array | undefined
Napi::Value read_own_file(const Napi::CallbackInfo& info);
// outputPaths(path): string[]
Napi::Value output_paths(const Napi::CallbackInfo& info);
// tryLock(folder): 'busy' | 'unknown' | {release()}
Napi::Value try_lock(const Napi::CallbackInfo& info);

}  // namespace tilework::binding
