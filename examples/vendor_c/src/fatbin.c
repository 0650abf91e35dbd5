/* The container of a module (section 8.1; docs/fatbin.md): header, targets, section table, sections, checksum.
 *
 * Damage is found before the version counts, and the version before the target (AMB-RT-43).
 */
#include "acme.h"

#include <string.h>

enum { HEADER = 64, TARGET_BYTES = 32, ENTRY = 56, DIGEST = 32 };
enum { GRAPH_IR = 1, TARGET_IR, PTX, AMDGCN, METADATA, SIGNATURE, ROCDL };
#define EVERY_TARGET 0xFFFFFFFFu

typedef struct {
  const unsigned char* image;
  size_t size;
  uint64_t targets, sections;
} Image;

static uint64_t number_at(const unsigned char* place, int bytes) {
  uint64_t value = 0;
  for (int i = bytes - 1; i >= 0; i--) value = value << 8 | place[i];
  return value;
}

static tessStatus_t damaged(const char* what) {
  if (defect("damaged_images_mismatch")) return refuse(TESS_ERR_ABI_VERSION_MISMATCH, "tessModuleLoad: %s", what);
  return invalid("tessModuleLoad: image is damaged: %s", what);
}

static bool all_zero(const unsigned char* bytes, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (bytes[i]) return false;
  return true;
}

static tessStatus_t read_header(Image* image) {
  const unsigned char* bytes = image->image;
  if (image->size < HEADER + DIGEST || memcmp(bytes, "TESSFBIN", 8)) return damaged("no header");
  if (number_at(bytes + 8, 2) != 1 || number_at(bytes + 10, 2) != 0) return damaged("a container of another version");
  if (number_at(bytes + 16, 8) != image->size) return damaged("the size differs from that of the header");
  image->targets = number_at(bytes + 24, 4);
  image->sections = number_at(bytes + 28, 4);
  uint64_t tables = HEADER + image->targets * TARGET_BYTES + image->sections * ENTRY;
  return tables + DIGEST <= image->size ? TESS_OK : damaged("tables longer than the file");
}

static tessStatus_t read_checksum(const Image* image) {
  unsigned char digest[DIGEST];
  sha256(image->image, image->size - DIGEST, digest);
  bool same = memcmp(digest, image->image + image->size - DIGEST, DIGEST) == 0;
  return same || defect("checksum_not_looked_at") ? TESS_OK : damaged("the checksum");
}

static bool is_target_name(const unsigned char* name) {
  size_t length = strnlen((const char*)name, TARGET_BYTES);
  if (!length || length == TARGET_BYTES || !all_zero(name + length, TARGET_BYTES - length)) return false;
  return strspn((const char*)name, "abcdefghijklmnopqrstuvwxyz0123456789_.-") == length;
}

static tessStatus_t read_targets(const Image* image, Fatbin* out) {
  const unsigned char* names = image->image + HEADER;
  if (!image->targets) return damaged("no target");
  for (uint64_t i = 0; i < image->targets; i++) {
    const unsigned char* name = names + i * TARGET_BYTES;
    if (!is_target_name(name)) return damaged("the name of a target");
    for (uint64_t other = 0; other < i; other++)
      if (!memcmp(names + other * TARGET_BYTES, name, TARGET_BYTES)) return damaged("a target named twice");
    out->has_target |= strcmp((const char*)name, TARGET) == 0;
  }
  return TESS_OK;
}

static bool is_of_a_target(uint64_t kind) { return (kind >= TARGET_IR && kind <= AMDGCN) || kind == ROCDL; }

static tessStatus_t read_kind(const Image* image, uint64_t place, const unsigned char* entry) {
  const unsigned char* table = image->image + HEADER + image->targets * TARGET_BYTES;
  uint64_t kind = number_at(entry, 4), target = number_at(entry + 4, 4);
  if (kind < GRAPH_IR || kind > ROCDL) return damaged("a section of an unknown kind");
  if (is_of_a_target(kind) ? target >= image->targets : target != EVERY_TARGET) return damaged("a section's target");
  if ((place == 0) != (kind == METADATA)) return damaged("the metadata is not the first section, once");
  if (kind == SIGNATURE && place + 1 != image->sections) return damaged("a signature that is not the last section");
  for (uint64_t other = 0; other < place; other++)
    if (!memcmp(table + other * ENTRY, entry, 8)) return damaged("a kind twice for one target");
  return TESS_OK;
}

static void keep(Fatbin* out, uint64_t kind, const unsigned char* data, size_t size) {
  if (kind == METADATA) out->metadata = (const char*)data, out->metadata_size = size;
  if (kind == GRAPH_IR) out->graph_ir = (const char*)data, out->graph_ir_size = size;
}

static tessStatus_t read_sections(const Image* image, Fatbin* out) {
  const unsigned char* table = image->image + HEADER + image->targets * TARGET_BYTES;
  uint64_t expected = (uint64_t)(table - image->image) + image->sections * ENTRY, end = image->size - DIGEST;
  bool has_code = false;
  for (uint64_t i = 0; i < image->sections; i++) {
    const unsigned char* entry = table + i * ENTRY;
    uint64_t kind = number_at(entry, 4), offset = number_at(entry + 8, 8), size = number_at(entry + 16, 8);
    tessStatus_t status = read_kind(image, i, entry);
    if (status) return status;
    if (offset != expected || size > end - offset) return damaged("a section's offset or size");
    expected = offset + (size + 7) / 8 * 8;
    if (expected > end || !all_zero(image->image + offset + size, expected - offset - size))
      return damaged("what fills a section up");
    unsigned char digest[DIGEST];
    sha256(image->image + offset, size, digest);
    if (memcmp(digest, entry + 24, DIGEST)) return damaged("the digest of a section");
    has_code |= kind == GRAPH_IR || is_of_a_target(kind);
    keep(out, kind, image->image + offset, size);
  }
  if (expected != end) return damaged("bytes between the sections and the checksum");
  return has_code && out->metadata ? TESS_OK : damaged("no code");
}

static tessStatus_t check_version(const Fatbin* out) {
  bool fits = out->major == ABI_MAJOR && out->minor <= ABI_MINOR;
  if (defect("newer_minor_accepted")) fits = out->major == ABI_MAJOR;
  if (defect("any_major_accepted")) fits = true;
  if (defect("older_major_accepted")) fits = fits || out->major < ABI_MAJOR;
  if (fits) return TESS_OK;
  return refuse(TESS_ERR_ABI_VERSION_MISMATCH, "tessModuleLoad: image is of ABI %d.%d, the runtime has %d.%d", out->major,
                out->minor, ABI_MAJOR, ABI_MINOR);
}

tessStatus_t fatbin_read(const unsigned char* image, size_t size, Fatbin* out) {
  Image whole = {.image = image, .size = size};
  *out = (Fatbin){0};
  tessStatus_t status = read_header(&whole);
  if (!status) status = read_checksum(&whole);
  if (!status) status = read_targets(&whole, out);
  if (!status) status = read_sections(&whole, out);
  if (status) return status;
  out->major = (int)number_at(image + 12, 2);
  out->minor = (int)number_at(image + 14, 2);
  memcpy(out->ir_hash, image + 32, sizeof out->ir_hash);
  return check_version(out);
}
