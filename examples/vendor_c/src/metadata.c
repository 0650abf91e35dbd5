/* The metadata of a module: its kernel table, parameter layouts and policy (section 8.1; docs/fatbin.md).
 *
 * Every member that the schema names has to be there and no other one; offsets have to be those of section 10.1.
 */
#include "acme.h"

#include <string.h>

static bool has_members(const Json* object, size_t count, const char* const* names) {
  if (object->type != JSON_OBJECT || object->count != count) return false;
  for (size_t i = 0; i < count; i++)
    if (!json_member(object, names[i])) return false;
  return true;
}
#define HAS_MEMBERS(object, ...)                                                            \
  has_members(object, sizeof((const char* const[]){__VA_ARGS__}) / sizeof(const char*), \
              (const char* const[]){__VA_ARGS__})

static bool is_identifier(const Json* text) {
  static const char* const keywords[] = {
      "auto",     "break",    "case",     "char",     "const",      "continue",  "default",       "do",
      "double",   "else",     "enum",     "extern",   "float",      "for",       "goto",          "if",
      "inline",   "int",      "long",     "register", "restrict",   "return",    "short",         "signed",
      "sizeof",   "static",   "struct",   "switch",   "typedef",    "union",     "unsigned",      "void",
      "volatile", "while",    "_Alignas", "_Alignof", "_Atomic",    "_Bool",     "_Complex",      "_Generic",
      "_Imaginary", "_Noreturn", "_Static_assert", "_Thread_local"};
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
  if (text->type != JSON_TEXT || !text->count || strspn(text->text, letters) != text->count) return false;
  if (text->text[0] >= '0' && text->text[0] <= '9') return false;
  for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
    if (strcmp(keywords[i], text->text) == 0) return false;
  return true;
}

static bool is_natural(const Json* value) { return value->type == JSON_INTEGER && value->integer >= 0; }
static bool is_bool(const Json* value) { return value->type == JSON_TRUE || value->type == JSON_FALSE; }
static bool is_text(const Json* value, const char* text) {
  return value->type == JSON_TEXT && value->count == strlen(text) && strcmp(value->text, text) == 0;
}
static bool is_one_of(const Json* value, size_t count, const char* const* texts) {
  for (size_t i = 0; i < count; i++)
    if (is_text(value, texts[i])) return true;
  return false;
}

static bool read_extents(const Json* value, int64_t out[3]) {
  if (value->type != JSON_LIST || value->count != 3) return false;
  for (size_t i = 0; i < 3; i++) {
    if (!is_natural(value->elements[i])) return false;
    out[i] = value->elements[i]->integer;
    if (out[i] < 1 || out[i] > INT32_MAX) return false;
  }
  return true;
}

static bool read_shape(const Json* shape, Parameter* out) {
  if (shape->type != JSON_LIST || shape->count > MAX_RANK) return false;
  out->rank = (int)shape->count;
  for (size_t i = 0; i < shape->count; i++) {
    const Json* extent = shape->elements[i];
    if (is_identifier(extent)) out->extent_names[i] = (char*)extent->text;
    else if (is_natural(extent)) out->extents[i] = extent->integer;
    else return false;
  }
  return true;
}

static bool read_pointer(const Json* value, Parameter* out) {
  const Json *dtype = json_member(value, "dtype"), *shape = json_member(value, "shape");
  out->size = 8;
  out->written = json_member(value, "written")->type == JSON_TRUE;
  if (dtype->type == JSON_NULL || shape->type == JSON_NULL) return dtype->type == shape->type;
  if (dtype->type != JSON_TEXT || !read_shape(shape, out)) return false;
  out->dtype = is_text(dtype, "tf32") ? FP32 : dtype_of_name(dtype->text);
  return out->dtype != 0;
}

static bool read_scalar(const Json* value, Parameter* out) {
  const Json* type = json_member(value, "type");
  out->type = type->type == JSON_TEXT ? dtype_of_name(type->text) : 0;
  out->size = out->type ? (int)dtype_size(out->type) : 0;
  return out->type && json_member(value, "dtype")->type == JSON_NULL && json_member(value, "shape")->type == JSON_NULL &&
         json_member(value, "written")->type == JSON_FALSE;
}

static bool read_parameter(const Json* value, size_t* end, Parameter* out) {
  if (!HAS_MEMBERS(value, "name", "type", "dtype", "shape", "written", "offset", "size")) return false;
  if (!is_identifier(json_member(value, "name")) || !is_bool(json_member(value, "written"))) return false;
  out->name = (char*)json_member(value, "name")->text;
  bool is_pointer = is_text(json_member(value, "type"), "ptr");
  if (!(is_pointer ? read_pointer(value, out) : read_scalar(value, out))) return false;
  size_t alignment = out->size < 8 ? (size_t)out->size : 8;
  size_t offset = (*end + alignment - 1) / alignment * alignment;
  const Json *given = json_member(value, "offset"), *size = json_member(value, "size");
  if (!is_natural(given) || (uint64_t)given->integer != offset) return false;
  if (!is_natural(size) || size->integer != out->size) return false;
  out->offset = (int)offset;
  *end = offset + (size_t)out->size;
  return true;
}

static bool names_differ(const char* name, size_t before, const Parameter* parameters) {
  for (size_t i = 0; i < before; i++)
    if (strcmp(parameters[i].name, name) == 0) return false;
  return true;
}

static bool read_kernel(Arena* arena, const Json* value, KernelEntry* out) {
  int64_t grid[3];
  if (!HAS_MEMBERS(value, "name", "module", "parameters", "grid", "block", "shared_bytes", "dynamic_shared", "level",
                   "buffer_size"))
    return false;
  const Json *parameters = json_member(value, "parameters"), *size = json_member(value, "buffer_size");
  const Json *level = json_member(value, "level"), *given = json_member(value, "grid");
  bool plain = is_identifier(json_member(value, "name")) && json_member(value, "module")->type == JSON_TEXT &&
               parameters->type == JSON_LIST && is_natural(json_member(value, "shared_bytes")) &&
               is_bool(json_member(value, "dynamic_shared")) &&
               is_one_of(level, 2, (const char* const[]){"program", "tile"}) && is_natural(size) &&
               (given->type == JSON_NULL || read_extents(given, grid)) &&
               read_extents(json_member(value, "block"), out->block);
  if (!plain) return false;
  out->name = (char*)json_member(value, "name")->text;
  out->count = parameters->count;
  out->parameters = arena_take(arena, out->count * sizeof *out->parameters);
  for (size_t i = 0; out->parameters && i < out->count; i++) {
    if (!read_parameter(parameters->elements[i], &out->end, &out->parameters[i])) return false;
    if (!names_differ(out->parameters[i].name, i, out->parameters)) return false;
  }
  out->buffer_size = (out->end + 7) / 8 * 8;
  return out->parameters && (uint64_t)size->integer == out->buffer_size;
}

static bool read_policy(const Json* value, Metadata* out) {
  static const char* const names[] = {"stableReductions", "deterministic", "rngStateless", "allowFastMath"};
  int* const fields[] = {&out->policy.stableReductions, &out->policy.deterministic, &out->policy.rngStateless,
                         &out->policy.allowFastMath};
  if (value->type == JSON_NULL) return true;
  if (!has_members(value, 4, names)) return false;
  for (size_t i = 0; i < 4; i++) {
    const Json* field = json_member(value, names[i]);
    if (!is_natural(field) || field->integer > 1) return false;
    *fields[i] = (int)field->integer;
  }
  return out->has_policy = true;
}

static bool is_said(const Json* value) { return value->type == JSON_NULL || value->type == JSON_TEXT; }
static bool is_kept(const Json* value) { return is_said(value) || value->type == JSON_INTEGER; }

static bool is_plan(const Json* value) {
  static const char* const said[] = {"axis", "function", "subgroup", "path", "scope"};
  static const char* const kept[] = {"priority", "overlap", "qos"};
  if (!HAS_MEMBERS(value, "collective", "axis", "algorithm", "source", "function", "subgroup", "bytes", "chunk_bytes",
                   "wire", "path", "scope", "priority", "overlap", "qos"))
    return false;
  for (size_t i = 0; i < 5; i++)
    if (!is_said(json_member(value, said[i]))) return false;
  for (size_t i = 0; i < 3; i++)
    if (!is_kept(json_member(value, kept[i]))) return false;
  const Json *bytes = json_member(value, "bytes"), *chunk = json_member(value, "chunk_bytes");
  const Json* wire = json_member(value, "wire");
  static const char* const collectives[] = {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all"};
  static const char* const algorithms[] = {"auto", "ring", "tree", "halving_doubling", "hierarchical", "direct"};
  return is_one_of(json_member(value, "collective"), 5, collectives) &&
         is_one_of(json_member(value, "algorithm"), 6, algorithms) &&
         is_one_of(json_member(value, "source"), 2, (const char* const[]){"hint", "default"}) &&
         (bytes->type == JSON_NULL || is_natural(bytes)) &&
         (chunk->type == JSON_NULL || (is_natural(chunk) && chunk->integer > 0)) &&
         (wire->type == JSON_NULL || is_text(wire, "tf32") || (wire->type == JSON_TEXT && dtype_of_name(wire->text)));
}

static bool is_fusion_group(const Json* value) {
  if (!HAS_MEMBERS(value, "kernel", "operations") || !is_identifier(json_member(value, "kernel"))) return false;
  const Json* operations = json_member(value, "operations");
  for (size_t i = 0; operations->type == JSON_LIST && i < operations->count; i++)
    if (operations->elements[i]->type != JSON_TEXT) return false;
  return operations->type == JSON_LIST;
}

static bool is_tile_shape(const Json* value) {
  if (!HAS_MEMBERS(value, "kernel", "operation", "extents")) return false;
  const Json* extents = json_member(value, "extents");
  for (size_t i = 0; extents->type == JSON_OBJECT && i < extents->count; i++) {
    Json name = {.type = JSON_TEXT, .text = extents->keys[i], .count = strlen(extents->keys[i])};
    if (!is_identifier(&name) || !is_natural(extents->elements[i]) || !extents->elements[i]->integer) return false;
  }
  return extents->type == JSON_OBJECT && is_identifier(json_member(value, "kernel")) &&
         json_member(value, "operation")->type == JSON_TEXT;
}

static bool every(const Json* list, bool (*holds)(const Json*)) {
  if (list->type != JSON_LIST) return false;
  for (size_t i = 0; i < list->count; i++)
    if (!holds(list->elements[i])) return false;
  return true;
}

bool metadata_read(Arena* arena, const char* text, size_t size, Metadata* out) {
  const Json* whole = json_read(arena, text, size);
  if (!whole || !HAS_MEMBERS(whole, "kernels", "policy", "collective_plans", "explanation")) return false;
  const Json *kernels = json_member(whole, "kernels"), *told = json_member(whole, "explanation");
  if (!read_policy(json_member(whole, "policy"), out) || !every(json_member(whole, "collective_plans"), is_plan))
    return false;
  if (!HAS_MEMBERS(told, "fusion_groups", "tile_shapes") || !every(json_member(told, "fusion_groups"), is_fusion_group) ||
      !every(json_member(told, "tile_shapes"), is_tile_shape) || kernels->type != JSON_LIST)
    return false;
  out->count = kernels->count;
  out->kernels = arena_take(arena, out->count * sizeof *out->kernels);
  for (size_t i = 0; out->kernels && i < out->count; i++) {
    if (!read_kernel(arena, kernels->elements[i], &out->kernels[i])) return false;
    for (size_t other = 0; other < i; other++)
      if (!strcmp(out->kernels[other].name, out->kernels[i].name)) return false;
  }
  return out->kernels != NULL;
}
