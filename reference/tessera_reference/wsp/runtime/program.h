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
#define EACH_OF(each, list) (const uint32_t *each = m->info->numbers + (list).first; \
                             each < m->info->numbers + (list).first + (list).count; each++)

/* The resources; those before READY_QUEUE are pools that all workers share. */
enum { TASK_RING, TENSORMAP_POOL, DEPLIST_POOL, HEAP_ARENA, READY_QUEUE, RESOURCES };

/* The tables of a generated program. A list is a part of `numbers`. */

typedef struct { uint32_t first, count; } List;
typedef struct { const char *name; u64 latency; } ChannelInfo;
typedef enum { I8, I16, I32, I64, U8, U16, U32, U64, FP32, FP64, BOOL } Dtype;
typedef struct { const char *name; Dtype dtype; u64 count, bytes; const uint8_t *initial; } TensorInfo;
typedef enum { SYMBOL_INPUT, RESOURCE_INPUT } InputKind;
typedef struct { InputKind kind; const char *name; u64 least, most, value; } InputInfo;

/* An expression; operands are expressions by their places. */
enum {
    CONSTANT, SYMBOL, SLOT, INPUT_TASK, INPUT_KEY, ADD, SUB, MUL, DIV, MOD, AND, OR, XOR, SHL, SHR, EQ, NE, LT, LE, GT, GE,
    MIN, MAX, NOT, SELECT
};
typedef struct { int op; u64 value; uint32_t operands[3]; } Expression;

/* An instruction of a kernel; operands are tensors by the place of their parameter, scalars by theirs, or constants. */
enum {
    KERNEL_FILL, KERNEL_IOTA, KERNEL_COPY, KERNEL_ADD, KERNEL_SUB, KERNEL_MUL, KERNEL_MIN, KERNEL_MAX, KERNEL_SUM
};
enum { OF_CONSTANT, OF_TENSOR, OF_SCALAR };
typedef struct { int kind; u64 value; } Operand;
typedef struct { int op; uint32_t destination; Operand operands[2]; } Instruction;
typedef struct { const char *name; List instructions; } KernelInfo; /* among `instructions` */

/* A call of a kernel at a `run` or `task` statement. */
typedef struct { uint32_t kernel; u64 cycles, heap; List tensors, scalars, reads, writes, waits, signals; } Site;

/* A statement of a process: its kind, its path, and its members as `statements.py` names them; numbers are places of
 * channels, slots, tensors and expressions, bodies are among `statements`, `reads` has the tensor of a load. */
typedef enum { RUN, TASK, SEND, RECEIVE, CONSUME, CLOSE, SCOPE, COND, REPEAT, LOAD, WAIT } StatementKind;
typedef struct {
    StatementKind kind;
    const char *path;
    uint32_t site, key, channel, value, into, when, count, index, slot, tensor, element;
    List body, then, otherwise, reads;
} Statement;
#define NONE UINT32_MAX

typedef struct { const char *name; List body, produces; } ProcessInfo;

#define TABLE(type, name) uint32_t name##_count; const type *name

/* The inputs are the symbols, then the sizes of resources, the capacities of channels, and for each process whether it is
 * executed without its scopes. `worker` is the expression of the dispatch policy. */
typedef struct {
    uint32_t symbols_count, workers, worker, most_scalars;
    TABLE(KernelInfo, kernels);
    TABLE(Instruction, instructions);
    TABLE(ChannelInfo, channels);
    TABLE(ProcessInfo, processes);
    TABLE(Statement, statements);
    TABLE(Site, sites);
    TABLE(Expression, expressions);
    TABLE(uint32_t, numbers);
    TABLE(char *const, slots);
    TABLE(InputInfo, inputs);
    TABLE(TensorInfo, tensors);
} ProgramInfo;

extern const ProgramInfo *const wsp_programs[];
extern const size_t wsp_program_count;

#endif
