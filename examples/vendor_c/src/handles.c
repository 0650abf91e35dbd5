/* Handles: numbers of a table, no pointers, so that any number a caller passes can be judged (feature checked-handles).
 *
 *   bits 63..52  a mark, which makes the number no address of this machine's programs
 *   bits 51..48  the kind
 *   bits 47..24  the generation of the slot, so that a dead handle is not taken for its successor
 *   bits 23..0   the slot
 */
#include "acme.h"

#include <stdlib.h>

enum { SLOTS = 512 };
#define MARK ((uint64_t)0xACE << 52)
#define GENERATIONS ((uint64_t)1 << 24)

typedef struct {
  Kind kind; /* 0 where the slot is free */
  bool retired;
  uint64_t generation;
  void *object, *owner;
} Slot;

static Slot slots[SLOTS];
static size_t used; /* slots beyond were never used */
static size_t next_slot;

static void* number_of(size_t index) {
  const Slot* slot = &slots[index];
  return (void*)(uintptr_t)(MARK | (uint64_t)slot->kind << 48 | slot->generation << 24 | index);
}

static Slot* slot_of(const void* handle) {
  uint64_t number = (uintptr_t)handle, index = number & 0xFFFFFF;
  if (index >= used || slots[index].kind == 0) return NULL;
  return number_of(index) == handle ? &slots[index] : NULL;
}

/* Slots are used in turn, not the last one freed first: a generation lasts as long as possible. */
void* handle_create(Kind kind, void* object, void* owner) {
  for (size_t tried = 0; tried < SLOTS; tried++) {
    size_t index = next_slot;
    next_slot = (next_slot + 1) % SLOTS;
    Slot* slot = &slots[index];
    if (slot->kind) continue;
    uint64_t generation = slot->generation % (GENERATIONS - 1) + 1;
    *slot = (Slot){.kind = kind, .generation = generation, .object = object, .owner = owner};
    if (index >= used) used = index + 1;
    return number_of(index);
  }
  return NULL;
}

void* handle_object(Kind kind, const void* handle) {
  const Slot* slot = slot_of(handle);
  if (!slot && handle && defect("invented_handles_accepted")) slot = slot_of(handle_first(kind, NULL, false));
  if (!slot || slot->retired) return NULL;
  if (slot->kind != kind) return NULL;
  return slot->object;
}

void* handle_object_of_any(const void* handle) {
  const Slot* slot = slot_of(handle);
  return slot ? slot->object : NULL;
}

void handle_retire(const void* handle) {
  Slot* slot = slot_of(handle);
  if (slot) slot->retired = true;
}

void handle_release(const void* handle) {
  Slot* slot = slot_of(handle);
  if (!slot) return;
  slot->kind = 0;
  slot->object = slot->owner = NULL;
  progress_notify();
}

static void* first_from(size_t index, Kind kind, const void* owner, bool with_retired) {
  for (; index < used; index++) {
    const Slot* slot = &slots[index];
    bool wanted = slot->kind == kind && (with_retired || !slot->retired) && (!owner || slot->owner == owner);
    if (wanted) return number_of(index);
  }
  return NULL;
}

void* handle_first(Kind kind, const void* owner, bool with_retired) {
  return first_from(0, kind, owner, with_retired);
}

void* handle_next(Kind kind, const void* owner, bool with_retired, const void* after) {
  return first_from(((uintptr_t)after & 0xFFFFFF) + 1, kind, owner, with_retired);
}
