// Functions of the addon for files of a folder that are not open.
#pragma once

#include <napi.h>

#include "io/file_identity.h"
#include "io/folder.h"

namespace tilework::binding {

// {device, inode, size, modified}, each a BigInt.
Napi::Object to_javascript(Napi::Env env, const FileIdentity& identity);

// A path, or [path, inside]: the folder `inside` below that path. Errors: ERR_ARGUMENT.
FolderPlace folder_place(const Napi::Value& value, const char* name);

// createFolders([path, inside])
Napi::Value create_folders(const Napi::CallbackInfo& info);
// removeBelow(folder, name, identity | undefined): boolean
Napi::Value remove_below(const Napi::CallbackInfo& info);
// readOwnFile(folder, name, mostBytes): Uint8Array | undefined
Napi::Value read_own_file(const Napi::CallbackInfo& info);
// outputPaths(path): string[]
Napi::Value output_paths(const Napi::CallbackInfo& info);
// tryLock(folder): 'busy' | 'unknown' | {release()}
Napi::Value try_lock(const Napi::CallbackInfo& info);

}  // namespace tilework::binding
