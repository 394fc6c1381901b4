#include "folder.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "error.h"
#include "io/file_lock.h"
#include "io/output_file.h"
#include "io/own_file.h"

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

FileIdentity identity_from(const Napi::Object& given) {
  return {unsigned_field(given, "device"), unsigned_field(given, "inode"),
          static_cast<int64_t>(unsigned_field(given, "size")),
          static_cast<int64_t>(unsigned_field(given, "modified"))};
}

}  // namespace

FolderPlace folder_place(const Napi::Value& value, const char* name) {
  if (!value.IsArray()) return FolderPlace(path_text(value, name));
  const auto pair = value.As<Napi::Array>();
  return FolderPlace(path_text(pair.Get(0u), name), path_text(pair.Get(1u), name));
}

Napi::Value create_folders(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    const FolderPlace place = folder_place(info[0], "folder");
    Folder::create_below(place, place.path + "/" + place.inside);
    return info.Env().Undefined();
  });
}

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
    const std::optional<FileIdentity> identity =
        info[2].IsUndefined() ? std::nullopt : std::optional(identity_from(object(info[2], "identity")));
    const bool removed =
        tilework::remove_below(folder_place(info[0], "folder"), path_text(info[1], "name"), identity);
    return Napi::Boolean::New(info.Env(), removed);
  });
}

Napi::Value read_own_file(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    const std::optional<std::string> content =
        tilework::read_own_file(folder_place(info[0], "folder"), path_text(info[1], "name"),
                                static_cast<size_t>(whole_number(info[2], "mostBytes")));
    if (!content) return info.Env().Undefined();
    return Napi::Buffer<char>::Copy(info.Env(), content->data(), content->size());
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

// tryLock(folder): "busy", "unknown", or an object that holds the lock until its release().
Napi::Value try_lock(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    std::unique_ptr<FolderLock> lock;
    const Lock state = FolderLock::try_take(folder_place(info[0], "folder"), lock);
    if (state != Lock::kTaken)
      return Napi::String::New(info.Env(), state == Lock::kBusy ? "busy" : "unknown");
    const auto held = std::make_shared<std::unique_ptr<FolderLock>>(std::move(lock));
    Napi::Object result = Napi::Object::New(info.Env());
    result.Set("release",
               Napi::Function::New(info.Env(), [held](const Napi::CallbackInfo&) { held->reset(); }));
    return result;
  });
}

}  // namespace tilework::binding
