/* The native run of a WSP package on cpu_sim: one event loop over integer time, as docs/wsp.md has it.
 *
 * A program is a `Machine` before its first instant, in tables that are written from a package; everything else is here, in
 * C99 without dependencies. What tables leave out is 0. An error of the program ends its run by `wsp_fail`.
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
typedef struct Machine Machine;
typedef struct Process Process;
typedef struct Task Task;

#define EACH(each, count) (uint32_t each = 0; each < (count); each++) /* for EACH(place, count) ... */
#define EACH_OF(each, list) (const uint32_t *each = (list).items; each && each < (list).items + (list).count; each++)
/* for EACH_IN(type, item, list) ...: the addresses of the elements of a vector in turn. */
#define EACH_IN(type, each, list) \
    (type *each = (list).items; each && each < (type *)(list).items + (list).count; each++)

/* Numbers of a table, and a table, which is NULL without entries. */
typedef struct { uint32_t count; const uint32_t *items; } List;
#define TABLE(type, name) uint32_t name##_count; type *name

/* A list that grows. One of entries may be a heap, smallest (time, kind, number) first. */
typedef struct { void *items; size_t count, room; } Vector;
typedef struct { u64 time, number, value; void *subject; int kind; } Entry;

/* The resources; those before READY_QUEUE are pools that all workers share. */
enum { TASK_RING, TENSORMAP_POOL, DEPLIST_POOL, HEAP_ARENA, READY_QUEUE, RESOURCES };
typedef struct { const char *name; u64 size, used, high_water; } Resource;

/* Why a process or task waits (section 3.4.2). TASK_WAIT is no stall; the first RESOURCES are those of resources. */
enum {
    TASK_RING_FULL, TENSORMAP_POOL_FULL, DEPLIST_POOL_FULL, HEAP_ARENA_FULL, READY_QUEUE_FULL,
    CHANNEL_EMPTY_WAIT, CHANNEL_FULL_WAIT, TASK_WAIT, NOT_WAITING
};
enum { STALL_REASONS = TASK_WAIT };
typedef struct { const char *name; u64 count, cycles; } Stall;
typedef struct { int reason; u64 since; const char *subject; } Waiting;

/* What a take from a channel gives: a token, the end of the channel, or nothing yet. */
enum { NOTHING, TOKEN, CLOSED };
typedef struct { int what; u64 value; } Token;

/* Its producers are the processes that have not closed it, and the tasks in flight that signal it. */
typedef struct {
    const char *name;
    u64 latency, capacity, taken;
    uint32_t producers;
    bool seen_closed;
    Vector tokens, takers, senders; /* heaps */
} Channel;

/* The task in flight that wrote the tensor last, and those that read it since, are found at it. */
typedef enum { I8, I16, I32, I64, U8, U16, U32, U64, FP32, FP64, BOOL } Dtype;
typedef struct {
    const char *name;
    Dtype dtype;
    unsigned width; /* of an element, in bytes */
    u64 count;
    uint8_t *data;
    Task *writer;
    Vector readers;
} Tensor;

enum {
    CONSTANT, SYMBOL, SLOT, INPUT_TASK, INPUT_KEY, ADD, SUB, MUL, DIV, MOD, AND, OR, XOR, SHL, SHR, EQ, NE, LT, LE, GT, GE,
    MIN, MAX, NOT, SELECT
};
typedef struct Expression { int op; u64 value; const struct Expression *operands[3]; } Expression;
typedef struct { const char *name; u64 value; } Slot;

/* An instruction of a kernel; operands are tensors by the place of their parameter, scalars by theirs, or constants. */
enum {
    KERNEL_FILL, KERNEL_IOTA, KERNEL_COPY, KERNEL_ADD, KERNEL_SUB, KERNEL_MUL, KERNEL_MIN, KERNEL_MAX, KERNEL_SUM
};
enum { OF_CONSTANT, OF_TENSOR, OF_SCALAR };
typedef struct { int kind; u64 value; } Operand;
typedef struct { int op; uint32_t destination; Operand operands[2]; } Instruction;
typedef struct { const char *name; TABLE(const Instruction, instructions); u64 runs, cycles; } Kernel;

/* A statement of a process: its kind, its path, its members as `statements.py` names them, and of `run` and `task` those of
 * a `CallSite`. The statements of a body follow theirs: the turns of a repeat are a statement of their own before it, after
 * the body of these or of a consume a JUMP leads back, and after that of a scope stands END_SCOPE; at the end the process
 * leaves the channels that it produces. */
typedef enum {
    RUN, TASK, SEND, RECEIVE, CONSUME, CLOSE, SCOPE, COND, REPEAT, LOAD, WAIT, TURN, END_SCOPE, JUMP, LEAVE, END
} StatementKind;
typedef struct {
    StatementKind kind;
    const char *path;
    ptrdiff_t jump; /* to the statement after the body, or as JUMP says */
    const Expression *key, *value, *when, *count, *element;
    uint32_t channel, into, slot, tensor, index; /* the index may be NONE */
    uint32_t kernel;
    u64 cycles, heap, turn, turns;
    TABLE(const Expression *const, scalars);
    List tensors, reads, writes, waits, signals;
} Statement;

#define NONE UINT32_MAX

/* A scope, and what it holds of complete tasks; `serial` counts from 1, and tells it from others. */
typedef struct { u64 serial, held[READY_QUEUE]; } Scope;

struct Process {
    const char *name;
    TABLE(Statement, statements);
    u64 without_scopes, time, missing; /* the tasks that it waits for */
    bool done, runnable, *closed;      /* by channel */
    Waiting waiting;
    Token taken;
    u64 *operands; /* the key of a task, then the scalars of a call */
    Vector scopes;
    Statement *at; /* and how far it has come: 0 where it begins */
    int phase;
};

typedef struct {
    Vector ready; /* a heap */
    u64 places, busy, tasks, time;
    Task *task;
} Worker;

struct Task {
    Task *before, *after; /* in flight, by number */
    u64 number, mark;     /* of the last search that found it */
    const Statement *statement;
    Process *process;
    Worker *worker;
    u64 scope_serial, holds[READY_QUEUE], missing, time_started;
    uint32_t sent;
    Waiting waiting;
    Vector dependents; /* the processes and tasks that wait for it */
    u64 *scalars;
};

/* A number that the command line may set: `--symbol NAME=` and the like. */
typedef struct { const char *option, *name; u64 least, most, *value; } Input;

typedef struct { const char *code, *process, *statement; char message[600]; } Failure;

struct Machine {
    uint32_t most_scalars;
    const Expression *worker; /* of the dispatch policy */
    TABLE(Kernel, kernels);
    TABLE(Channel, channels);
    TABLE(Process, processes);
    TABLE(Slot, slots);
    TABLE(const Input, inputs);
    TABLE(Tensor, tensors);
    TABLE(Worker, workers);
    TABLE(u64, symbols);
    Resource resources[RESOURCES];
    Stall stalls[NOT_WAITING]; /* and waits for tasks */
    u64 max_steps, enough, instants; /* a run ends at the first, and is left at the others */
    bool observed;
    u64 now, steps, turn_steps, mark_of_progress; /* of the process that goes on */
    Process *current, *spinning;
    jmp_buf failed;
    Failure failure;
    Vector events; /* a heap */
    Task tasks;    /* the head of the list of those in flight */
    Vector free_tasks, found, assignments;
    u64 mark, scopes, task_input, key_input;
};

extern Machine wsp_machine;

#endif
