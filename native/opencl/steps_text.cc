#include "opencl/steps_text.h"

#include <algorithm>
#include <array>
#include <variant>

#include "dtype/parameter_map.h"
#include "error.h"
#include "opencl/cast_text.h"
#include "opencl/offset_text.h"
#include "opencl/scaling_text.h"

namespace tilework::cl {
namespace {

// Nests that find the parameters; null if all elements share one pair.
const NestParameterMap* parameter_map_of(const ElementStep& step) {
  const auto* scaling = std::get_if<Scaling>(&step);
  return scaling == nullptr ? nullptr : dynamic_cast<const NestParameterMap*>(scaling->parameter_map());
}

bool has_scaling(std::span<const ElementStep> steps) {
  return std::any_of(steps.begin(), steps.end(),
                     [](const ElementStep& step) { return std::holds_alternative<Scaling>(step); });
}

// Arguments of scaled() after the codes. Limits are integers.
std::array<int64_t, 3> scaling_numbers(const Scaling& scaling) {
  return {static_cast<int64_t>(scaling.low()), static_cast<int64_t>(scaling.high()),
          scaling.rules() == QuantizeRules::kTmfile ? 1 : 0};
}

std::string text_of(const std::array<int64_t, 3>& numbers) {
  return std::to_string(numbers[0]) + ", " + std::to_string(numbers[1]) + ", " + std::to_string(numbers[2]);
}

// Pairs of codes.
void add_parameters(std::vector<int64_t>& table, const Scaling& scaling) {
  if (2 * scaling.entries() > kMaxDeviceTableEntries - static_cast<int64_t>(table.size())) {
    throw Error(ErrorCode::kLimit, "A scaling has " + std::to_string(scaling.entries()) +
                                       " parameter pairs; a device takes at most " +
                                       std::to_string(kMaxDeviceTableEntries / 2) +
                                       " for all scalings; convert on the CPU instead.");
  }
  for (int64_t i = 0; i < scaling.entries(); ++i) {
    table.push_back(static_cast<int64_t>(scaling.scale_code(i)));
    table.push_back(static_cast<int64_t>(scaling.offset_code(i)));
  }
}

// Declares the types of a step.
template <class Step>
std::string types_text(const Step& step) {
  return "    const Type from = " + type_text(step.from()) +
         ";\n    const Type to = " + type_text(step.to()) + ";\n";
}

std::string step_text(const Cast& cast) {
  const std::string options = text_of(cast_numbers(cast));
  return types_text(cast) + "    code = encode(to, decode(from, code), " + options + ");\n";
}

// Parameters are literals, or found by the function named `finder`.
std::string step_text(const Scaling& scaling, const std::string& finder, std::vector<int64_t>& table) {
  std::string text = types_text(scaling);
  std::string scale = std::to_string(scaling.scale_code(0)) + "ul";
  std::string offset = std::to_string(scaling.offset_code(0)) + "ul";
  if (!finder.empty()) {
    const std::string first = std::to_string(static_cast<int64_t>(table.size()));
    add_parameters(table, scaling);
    text +=
        "    __global const long* entry = table + " + first + " + 2 * (long)" + finder + "(slot, table);\n";
    scale = "(ulong)entry[0]";
    offset = "(ulong)entry[1]";
  }
  return text + "    code = scaled(" + std::to_string(static_cast<int64_t>(scaling.kind())) +
         ", from, to, code, " + scale + ", " + offset + ", " + text_of(scaling_numbers(scaling)) + ");\n";
}

constexpr const char* kTableSteps = R"cl(
Type type_at(__global const long* numbers) {
  Type type = {(int)numbers[0], (int)numbers[1], (int)numbers[2], (int)numbers[3], (int)numbers[4]};
  return type;
}

ulong convert(ulong code, INDEX slot, __global const long* table) {
  __global const long* step = table + 2;
  for (long i = 0; i < table[1]; ++i, step += STEP_NUMBERS) {
    const Type from = type_at(step + 1);
    const Type to = type_at(step + 6);
#if HAS_SCALING
    if (step[0] != CAST) {
      __global const long* entry = table + step[14];
      if (step[15] != 0) entry += 2 * source_offset(slot, table + step[15]);
      code = scaled((int)step[0], from, to, code, (ulong)entry[0], (ulong)entry[1], step[11], step[12],
                    (int)step[13]);
      continue;
    }
#endif
    code = encode(to, decode(from, code), (int)step[11], (int)step[12], (int)step[13]);
  }
  return code;
}
)cl";

// Entries of a step in a table: kind, two types, three numbers, offset of its parameters, and offset of the
// nests that find them, if any.
constexpr size_t kStepNumbers = 1 + 2 * kTypeNumbers + 3 + 2;
constexpr size_t kParametersNumber = kStepNumbers - 2;
constexpr size_t kNestsNumber = kStepNumbers - 1;
constexpr int64_t kCastKind = -1;

template <class Step>
void add_step(std::vector<int64_t>& table, int64_t kind, const Step& step,
              const std::array<int64_t, 3>& numbers) {
  table.push_back(kind);
  for (const Dtype dtype : {step.from(), step.to()}) {
    const auto type = type_numbers(dtype);
    table.insert(table.end(), type.begin(), type.end());
  }
  table.insert(table.end(), numbers.begin(), numbers.end());
  table.insert(table.end(), {0, 0});
}

}  // namespace

bool is_narrow(std::span<const ElementStep> steps) {
  return std::all_of(steps.begin(), steps.end(), [](const ElementStep& step) {
    const NestParameterMap* map = parameter_map_of(step);
    return map == nullptr || is_narrow(map->nests());
  });
}

bool fits_table(std::span<const ElementStep> steps) {
  return std::all_of(steps.begin(), steps.end(), [](const ElementStep& step) {
    const NestParameterMap* map = parameter_map_of(step);
    return map == nullptr || fits_table(map->nests());
  });
}

std::string literal_steps_text(std::span<const ElementStep> steps, std::vector<int64_t>& table) {
  if (steps.empty()) return "#define CONVERT(code, slot) (code)\n";
  std::string text = exact_numbers_text() + (has_scaling(steps) ? scaling_text() : "");
  std::string body;
  for (size_t i = 0; i < steps.size(); ++i) {
    body += "  {\n";
    if (const auto* cast = std::get_if<Cast>(&steps[i])) {
      body += step_text(*cast);
    } else {
      const NestParameterMap* map = parameter_map_of(steps[i]);
      const std::string name = map == nullptr ? "" : "parameter_entry" + std::to_string(i);
      if (map != nullptr) text += literal_offset_text(name, map->nests(), table);
      body += step_text(std::get<Scaling>(steps[i]), name, table);
    }
    body += "  }\n";
  }
  return text + "\nulong convert(ulong code, INDEX slot, __global const long* table) {\n" + body +
         "  return code;\n}\n#define CONVERT(code, slot) convert(code, slot, table)\n";
}

std::string table_steps_text(std::span<const ElementStep> steps) {
  if (steps.empty()) return "#define CONVERT(code, slot) (code)\n";
  const bool scales = has_scaling(steps);
  return std::string("#define HAS_SCALING ") + (scales ? "1" : "0") +
         "\n#define CAST (-1)\n#define STEP_NUMBERS " + std::to_string(kStepNumbers) + "\n" +
         exact_numbers_text() + (scales ? scaling_text() : "") + kTableSteps +
         "#define CONVERT(code, slot) convert(code, slot, table)\n";
}

void add_steps(std::vector<int64_t>& table, std::span<const ElementStep> steps) {
  table = {0, static_cast<int64_t>(steps.size())};
  for (const ElementStep& step : steps) {
    if (const auto* cast = std::get_if<Cast>(&step)) {
      add_step(table, kCastKind, *cast, cast_numbers(*cast));
    } else {
      const auto& scaling = std::get<Scaling>(step);
      add_step(table, static_cast<int64_t>(scaling.kind()), scaling, scaling_numbers(scaling));
    }
  }
  const auto end = [&table] { return static_cast<int64_t>(table.size()); };
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto* scaling = std::get_if<Scaling>(&steps[i]);
    if (scaling == nullptr) continue;
    const size_t numbers = 2 + i * kStepNumbers;
    table[numbers + kParametersNumber] = end();
    add_parameters(table, *scaling);
    const NestParameterMap* map = parameter_map_of(steps[i]);
    if (map == nullptr) continue;
    table[numbers + kNestsNumber] = end();
    add_nests(table, map->nests());
  }
  table.front() = end();
}

}  // namespace tilework::cl
