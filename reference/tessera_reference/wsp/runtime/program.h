/* The native run of a WSP package on cpu_sim: one event loop over integer time, as docs/wsp.md has it.
 *
 * A program is a `ProgramInfo`, tables that are written from a package; everything else is here, in C99 without
 * dependencies. An error of the program ends its run by `wsp_fail`.
 */
#ifndef WSP_PROGRAM_H
#define WSP_PROGRAM_H

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t u64;
#define EACH(each, count) (uint32_t each = 0; each < (count); each++) /* for EACH(place, count) ... */
#define EACH_OF(each, list) (const uint32_t *each = (list).items; each && each < (list).items + (list).count; each++)

/* The resources; those before READY_QUEUE are pools that all workers share. */
enum { TASK_RING, TENSORMAP_POOL, DEPLIST_POOL, HEAP_ARENA, READY_QUEUE, RESOURCES };

/* A generated program: nested tables, those without entries NULL. */

#define TABLE(type, name) uint32_t name##_count; const type *name
typedef struct { uint32_t count; const uint32_t *items; } List;
typedef struct { const char *name; u64 latency; } ChannelInfo;
typedef enum { I8, I16, I32, I64, U8, U16, U32, U64, FP32, FP64, BOOL } Dtype;
typedef struct { const char *name; Dtype dtype; u64 count, bytes; const uint8_t *initial; } TensorInfo;
typedef enum { SYMBOL_INPUT, RESOURCE_INPUT } InputKind;
typedef struct { InputKind kind; const char *name; u64 least, most, value; } InputInfo;

enum {
    CONSTANT, SYMBOL, SLOT, INPUT_TASK, INPUT_KEY, ADD, SUB, MUL, DIV, MOD, AND, OR, XOR, SHL, SHR, EQ, NE, LT, LE, GT, GE,
    MIN, MAX, NOT, SELECT
};
typedef struct Expression { int op; u64 value; const struct Expression *operands[3]; } Expression;

/* An instruction of a kernel; operands are tensors by the place of their parameter, scalars by theirs, or constants. */
enum {
    KERNEL_FILL, KERNEL_IOTA, KERNEL_COPY, KERNEL_ADD, KERNEL_SUB, KERNEL_MUL, KERNEL_MIN, KERNEL_MAX, KERNEL_SUM
};
enum { OF_CONSTANT, OF_TENSOR, OF_SCALAR };
typedef struct { int kind; u64 value; } Operand;
typedef struct { int op; uint32_t destination; Operand operands[2]; } Instruction;
typedef struct { const char *name; TABLE(Instruction, instructions); } KernelInfo;

/* A call of a kernel at a `run` or `task` statement. */
typedef struct {
    uint32_t kernel;
    u64 cycles, heap;
    TABLE(Expression *, scalars);
    List tensors, reads, writes, waits, signals;
} Site;

/* A statement of a process: its kind, its path, and its members as `statements.py` names them. The statements of a body
 * follow theirs: after the body of a consume or repeat a JUMP leads back, after that of a scope stands END_SCOPE. */
typedef enum {
    RUN, TASK, SEND, RECEIVE, CONSUME, CLOSE, SCOPE, COND, REPEAT, LOAD, WAIT, END_SCOPE, JUMP, END
} StatementKind;
typedef struct {
    StatementKind kind;
    const char *path;
    ptrdiff_t jump; /* to the statement after the body, or as JUMP says */
    const Site *site;
    const Expression *key, *value, *when, *count, *element;
    uint32_t channel, into, slot, tensor, index; /* the index may be NONE */
} Statement;

#define NONE UINT32_MAX

typedef struct { const char *name; TABLE(Statement, statements); List produces; } ProcessInfo;

/* The inputs are the symbols, then the sizes of resources, the capacities of channels, and for each process whether it is
 * executed without its scopes. `worker` is the expression of the dispatch policy. */
typedef struct {
    uint32_t symbols_count, workers, most_scalars;
    const Expression *worker;
    TABLE(KernelInfo, kernels);
    TABLE(ChannelInfo, channels);
    TABLE(ProcessInfo, processes);
    TABLE(char *const, slots);
    TABLE(InputInfo, inputs);
    TABLE(TensorInfo, tensors);
} ProgramInfo;

extern const ProgramInfo *const wsp_programs[];
extern const size_t wsp_program_count;

#endif
