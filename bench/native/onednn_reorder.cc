#include "onednn_reorder.h"

#include <oneapi/dnnl/dnnl_debug.h>

#include <oneapi/dnnl/dnnl.hpp>
#include <optional>

namespace tilework::bench {
namespace {

using dnnl::memory;

// The library prints tags but does not read them.
std::optional<memory::format_tag> tag_of(const std::string& name) {
  for (int tag = dnnl_format_tag_any + 1; tag < dnnl_format_tag_last; ++tag) {
    if (name == dnnl_fmt_tag2str(static_cast<dnnl_format_tag_t>(tag)))
      return static_cast<memory::format_tag>(tag);
  }
  return std::nullopt;
}

std::optional<memory::data_type> data_type_of(const std::string& name) {
  for (const auto type : {memory::data_type::f32, memory::data_type::f16, memory::data_type::bf16,
                          memory::data_type::u8, memory::data_type::s8}) {
    if (name == dnnl_dt2str(memory::convert_to_c(type))) return type;
  }
  return std::nullopt;
}

class Reorder final : public OnednnReorder {
 public:
  Reorder(const memory::desc& from, const memory::desc& to, const uint8_t* source, uint8_t* destination)
      : engine_(dnnl::engine::kind::cpu, 0),
        stream_(engine_),
        // oneDNN's memory is never const; a reorder only reads this one.
        source_(from, engine_, const_cast<uint8_t*>(source)),
        destination_(to, engine_, destination),
        description_(engine_, from, engine_, to),
        reorder_(description_) {}

  size_t destination_bytes() const override { return destination_.get_desc().get_size(); }
  std::string kernel() const override { return description_.impl_info_str(); }
  void run() override {
    reorder_.execute(stream_, source_, destination_);
    stream_.wait();
  }

 private:
  dnnl::engine engine_;
  dnnl::stream stream_;
  memory source_;
  memory destination_;
  dnnl::reorder::primitive_desc description_;
  dnnl::reorder reorder_;
};

}  // namespace

std::unique_ptr<OnednnReorder> OnednnReorder::create(const std::string& dtype,
                                                     const std::vector<int64_t>& shape,
                                                     const std::string& from_tag, const std::string& to_tag,
                                                     const uint8_t* source, uint8_t* destination) {
  const auto type = data_type_of(dtype);
  const auto from = tag_of(from_tag);
  const auto to = tag_of(to_tag);
  if (!type || !from || !to) return nullptr;
  try {
    const memory::dims dims(shape.begin(), shape.end());
    return std::make_unique<Reorder>(memory::desc(dims, *type, *from), memory::desc(dims, *type, *to), source,
                                     destination);
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_unimplemented) return nullptr;
    throw;
  }
}

std::string onednn_version() {
  const dnnl_version_t& version = *dnnl::version();
  return std::to_string(version.major) + "." + std::to_string(version.minor) + "." +
         std::to_string(version.patch);
}

}  // namespace tilework::bench
