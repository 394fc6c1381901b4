#include "folder.h"

#include <string>
#include <vector>

#include "arguments.h"
#include "error.h"
#include "io/file_lock.h"
#include "io/output_file.h"

namespace tilework::binding {
namespace {

// Numbers of inodes have 64 bits.
uint64_t unsigned_field(const Napi::Object& from, const char* name) {
  const Napi::Value value = from.Get(name);
  bool lossless = false;
  const uint64_t number = value.IsBigInt() ? value.As<Napi::BigInt>().Uint64Value(&lossless) : 0;
  if (!lossless)
    throw Error(ErrorCode::kArgument, std::string("'") + name + "' must be a BigInt of 64 bits.");
  return number;
}

}  // namespace

Napi::Object to_javascript(Napi::Env env, const FileIdentity& identity) {
  Napi::Object result = Napi::Object::New(env);
  result.Set("device", Napi::BigInt::New(env, identity.device));
  result.Set("inode", Napi::BigInt::New(env, identity.inode));
  result.Set("size", Napi::BigInt::New(env, static_cast<uint64_t>(identity.size)));
  result.Set("modified", Napi::BigInt::New(env, static_cast<uint64_t>(identity.modified)));
  return result;
}

Napi::Value remove_below(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    const Napi::Object given = object(info[2], "identity");
    const FileIdentity identity{unsigned_field(given, "device"), unsigned_field(given, "inode"),
                                static_cast<int64_t>(unsigned_field(given, "size")),
                                static_cast<int64_t>(unsigned_field(given, "modified"))};
    const bool removed =
        tilework::remove_below(path_text(info[0], "folder"), path_text(info[1], "name"), identity);
    return Napi::Boolean::New(info.Env(), removed);
  });
}

Napi::Value output_paths(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    const std::vector<std::string> paths = OutputFile::paths_of(path_text(info[0], "path"));
    Napi::Array result = Napi::Array::New(info.Env(), paths.size());
    for (uint32_t at = 0; at < paths.size(); ++at) result.Set(at, paths[at]);
    return result;
  });
}

Napi::Value try_lock(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    const char* const names[] = {"taken", "busy", "unknown"};
    const auto lock = tilework::try_lock(static_cast<int>(whole_number(info[0], "descriptor")));
    return Napi::String::New(info.Env(), names[static_cast<size_t>(lock)]);
  });
}

}  // namespace tilework::binding
