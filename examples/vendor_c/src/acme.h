/* What the files of the runtime share: the lock, handles, objects, and the functions that each file offers the others.
 *
 * One lock guards every object and every list. A call holds it from beginning to end and gives it up only while it
 * waits (`progress_wait`). After a wait an object is looked up again: another thread may have destroyed it.
 * Work itself runs on the threads of streams, without the lock.
 */
#ifndef ACME_H
#define ACME_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#pragma GCC visibility push(default)
#include "tessera.h"
#include "tessera_ext.h"
#pragma GCC visibility pop

enum { DEVICES = 8, MAX_RANK = 8, NAME_BYTES = 64 };
#define DEVICE_MEMORY ((size_t)256 << 20)
#define TARGET "sm_90"
enum { ABI_MAJOR = 1, ABI_MINOR = 0, VERSION_PATCH = 3 };

/* lock.c */
void runtime_lock(void);
void runtime_unlock(void);
void runtime_wait(pthread_cond_t* condition);
void progress_wait(void);   /* gives the lock up until something was done */
void progress_notify(void); /* something was done */

/* errors.c: statuses, and the text of the last failure of a thread */
tessStatus_t refuse(tessStatus_t status, const char* format, ...) __attribute__((format(printf, 2, 3)));
tessStatus_t invalid(const char* format, ...) __attribute__((format(printf, 1, 2)));
const char* last_error(void);
tessStatus_t answer_text(char* out, size_t capacity, size_t* needed, const char* text);

/* defects.c: whether the environment variable ACME_DEFECT names a defect */
bool defect(const char* name);
bool defect_once_in(const char* name, unsigned turns); /* the same at every so-manieth call */
void delay_of_trials(void);                            /* ACME_DELAY microseconds, before each piece of work */

/* handles.c: a table with generations, so that dead, foreign and invented handles are found out */
typedef enum { CONTEXT = 1, MESH, STREAM, EVENT, MODULE, KERNEL, PROFILER } Kind;

void* handle_create(Kind kind, void* object, void* owner); /* NULL where the table is full */
void* handle_object(Kind kind, const void* handle);        /* NULL where it is no live handle of the kind */
void handle_retire(const void* handle);  /* no call finds it any more; its owner still counts it */
void handle_release(const void* handle); /* the slot is free */
void* handle_first(Kind kind, const void* owner, bool with_retired); /* the first of an owner, any owner for NULL */
void* handle_next(Kind kind, const void* owner, bool with_retired, const void* after);
void* handle_object_of_any(const void* handle); /* retired or not, of whatever kind */

/* contexts.c */
typedef struct {
  void* handle;
  bool has_policy;
  tessNumericsPolicy policy;
} Context;

bool runtime_is_initialized(void);
tessStatus_t context_of(tessContext_t handle, const char* function, Context** out);

/* policy.c */
tessNumericsPolicy policy_in_force(const Context* context, const tessNumericsPolicy* of_module);

/* meshes.c: ranks count row-major over (tp, pp, dp, ep) */
typedef struct {
  void* handle;
  Context* context;
  void* context_handle;
  int ranks, devices[DEVICES], axes[4];
  unsigned device_mask;
} Mesh;

tessStatus_t mesh_of(tessMesh_t handle, const char* function, Mesh** out);
void mesh_destroy(void* handle);
int axis_of_name(const char* name); /* -1 where there is none */

/* memory.c: one address stands for a copy on each rank */
typedef struct Allocation {
  struct Allocation* next; /* by address */
  uintptr_t address;
  size_t bytes;
  Mesh* mesh;
  int ranks, devices[DEVICES];
  unsigned device_mask;
  unsigned char* copies[DEVICES];
} Allocation;

tessStatus_t memory_allocate(Mesh* mesh, size_t bytes, void** out);
Allocation* memory_of(const Mesh* mesh, const void* address, size_t bytes, size_t* offset);
unsigned char* memory_copy(const Allocation* allocation, const Mesh* mesh, int rank);
bool is_device_address(const void* address);
void memory_free_of(const Mesh* mesh);

/* host_memory.c */
void host_memory_free_all(void);

/* streams.c: work in the order of the calls, on a thread of the stream's own */
typedef struct Work Work;
typedef tessStatus_t (*WorkFunction)(void* arguments, char* text, size_t text_size);

struct Work {
  Work* next;
  WorkFunction run;
  void (*discard)(void* arguments); /* where the arguments hold more than themselves */
  void* arguments;                  /* of malloc */
  uint64_t ticket;
  void* profiler; /* a handle, or NULL */
  char name[NAME_BYTES];
  const char* category;
  size_t bytes;
  double occupancy;
  uint64_t enqueued, started, stopped; /* nanoseconds */
};

typedef struct {
  void* handle;
  Mesh* mesh;
  void* mesh_handle;
  pthread_t thread;
  pthread_cond_t wake;
  bool closing;
  Work *first, *last;
  uint64_t running; /* the ticket of what runs, or 0 */
  uint64_t last_stop;
  tessStatus_t error;
  char error_text[256];
  int again; /* the defect error_reported_twice has reported it once */
  int number;
} Stream;

tessStatus_t stream_of(tessStream_t handle, const char* function, Stream** out);
tessStatus_t stream_of_mesh(tessStream_t handle, const Mesh* mesh, const char* function, Stream** out);
tessStatus_t stream_submit(Stream* stream, const char* name, const char* category, WorkFunction run, void* arguments,
                           void (*discard)(void*), size_t bytes, double occupancy);
void streams_drain(const Context* context, const Mesh* mesh); /* of a mesh or of a context; what was queued till now */
void stream_destroy(void* handle);

/* profiler.c */
uint64_t now(void);
void* profiler_of_context(const Context* context);
void profiler_record(const Stream* stream, const Work* work);
void profiler_destroy(void* handle);

/* events.c */
void events_destroy_all(void);

/* arena.c: memory that is freed as a whole */
typedef struct Arena Arena;
Arena* arena_create(void);
void arena_destroy(Arena* arena);
void* arena_take(Arena* arena, size_t bytes); /* zeros; NULL where there is no memory */
char* arena_text(Arena* arena, const char* text, size_t length);

/* sha256.c */
void sha256(const void* data, size_t size, unsigned char digest[32]);

/* numbers.c: the dtypes of the ABI */
enum { FP8_E4M3 = 1, FP8_E5M2, FP16, BF16, FP32, FP64, INT8, INT16, INT32, INT64, BOOL, COMPLEX64, COMPLEX128 };

typedef union {
  double f;  /* of floats */
  int64_t i; /* of integers and bool */
} Number;

int dtype_of_name(const char* name); /* 0 where there is none */
const char* dtype_name(int dtype);
size_t dtype_size(int dtype);
bool dtype_is_float(int dtype);
bool dtype_is_complex(int dtype);
Number number_load(int dtype, const unsigned char* place);
void number_store(int dtype, unsigned char* place, Number value); /* rounds once, to nearest even */
Number number_add(int dtype, Number a, Number b);                 /* in the accumulator of the dtype */

/* reductions.c: orders of additions */
typedef enum { FOLD, RING, PAIRWISE } Order; /* RING begins with the second term: ring(1) */
Number reduce_sum(int dtype, Order order, const Number* terms, size_t count, Number* scratch);

/* json.c: canonical JSON alone */
typedef struct Json Json;
struct Json {
  enum { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_INTEGER, JSON_TEXT, JSON_LIST, JSON_OBJECT } type;
  int64_t integer;
  const char* text;
  size_t count;      /* of elements or members; of a text its bytes */
  Json** elements;   /* of a list or an object */
  const char** keys; /* of an object */
};

Json* json_read(Arena* arena, const char* text, size_t size); /* NULL where it is not canonical */
const Json* json_member(const Json* object, const char* name);

/* fatbin.c: the container */
typedef struct {
  unsigned char ir_hash[32];
  int major, minor;
  const char *metadata, *graph_ir; /* in the image */
  size_t metadata_size, graph_ir_size;
  bool has_target;
} Fatbin;

tessStatus_t fatbin_read(const unsigned char* image, size_t size, Fatbin* out);

/* metadata.c: the kernel table */
typedef struct {
  char* name;
  int type, offset, size; /* type 0 is a pointer */
  int dtype, rank;        /* of the tensor behind a pointer; dtype 0 where it is not told */
  int64_t extents[MAX_RANK];
  char* extent_names[MAX_RANK]; /* NULL where the number counts */
  bool written;
} Parameter;

typedef struct {
  char* name;
  size_t count, end, buffer_size;
  Parameter* parameters;
  int64_t block[3];
} KernelEntry;

typedef struct {
  size_t count;
  KernelEntry* kernels;
  bool has_policy;
  tessNumericsPolicy policy;
} Metadata;

bool metadata_read(Arena* arena, const char* text, size_t size, Metadata* out);

/* signatures.c */
bool signature_read(Arena* arena, const char* text, KernelEntry* out); /* the layout of `name(Q*, int B, ...)` */
tessStatus_t answer_written(FILE* stream, char** written, char* out, size_t capacity, size_t* needed);

/* graph_reader.c: Graph IR in MLIR's generic form */
typedef struct {
  int dtype; /* of a scalar or of the elements of a tensor; 0 is a type that this runtime does not know */
} Type;

typedef struct Attribute Attribute;
struct Attribute {
  Attribute* next;
  const char* name;
  enum { ATTRIBUTE_INTEGER, ATTRIBUTE_FLOAT, ATTRIBUTE_TEXT, ATTRIBUTE_BOOL, ATTRIBUTE_LIST, ATTRIBUTE_OTHER } kind;
  int64_t integer;
  double number;
  const char* text;
  size_t count;
  Attribute** elements;
};

typedef struct Operation Operation;
typedef struct {
  size_t parameter_count, operation_count;
  int* parameters; /* numbers of values */
  Type* parameter_types;
  Operation** operations;
} Block;

struct Operation {
  const char* name;
  size_t operand_count, result_count, region_count;
  int *operands, *results;
  Type* result_types;
  Attribute* attributes;
  Block** regions;
};

typedef struct {
  const char *name, *module;
  bool is_kernel;
  int value_count;
  Block* body;
} Function;

typedef struct {
  size_t count;
  Function* functions;
} Graph;

bool graph_read(Arena* arena, const char* text, size_t size, Graph* out);
const Attribute* attribute_of(const Operation* operation, const char* name);

/* interpreter.c */
typedef struct {
  int dtype, rank; /* rank 0 is a scalar */
  int64_t extents[MAX_RANK];
  size_t count;
  Number* elements; /* row-major; never changed once the operation that made them is done */
} Value;

typedef struct {
  Arena* arena;
  const Graph* graph;
  const Function* function;
  Value** values;
  Order sums; /* fold, or pairwise where the policy wants stable reductions */
  const char* problem;
} Frame;

bool is_supported(const Graph* graph, const Function* function);
bool run_function(Frame* frame, Value** arguments, size_t argument_count, Value** results, size_t result_count);

/* operations.c: one function an operation; false, with `problem` set, where execution fails */
typedef bool (*OperationFunction)(Frame* frame, const Operation* operation);
OperationFunction operation_function(const char* name);
Value* value_create(Arena* arena, int dtype, int rank, const int64_t* extents);
bool fail(Frame* frame, const char* problem);

/* contractions.c */
bool run_matmul(Frame* frame, const Operation* operation);
bool run_sum(Frame* frame, const Operation* operation);
bool run_softmax(Frame* frame, const Operation* operation);
bool run_transpose(Frame* frame, const Operation* operation);

/* indexing.c */
bool run_update(Frame* frame, const Operation* operation);
bool run_slice(Frame* frame, const Operation* operation);

/* modules.c */
typedef struct {
  void* handle;
  Context* context;
  Arena* arena;
  Metadata metadata;
  Graph graph;
  bool has_graph;
} Module;

typedef struct {
  Module* module;
  void* module_handle;
  const KernelEntry* entry;
  const Function* function;
} Kernel;

void module_destroy(void* handle);

#endif
