/* The native run of a WSP package on cpu_sim: one event loop over integer time, as docs/wsp.md has it.
 *
 * A generated program describes itself by a `ProgramInfo`: tables, one state machine a process, one function a kernel
 * call. Everything else is here, in C99 without dependencies. An error of the program ends its run by `wsp_fail`.
 */
#ifndef WSP_RUNTIME_H
#define WSP_RUNTIME_H

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

/* Why a process or task waits (section 3.4.2). TASK_WAIT is no stall; the first RESOURCES are those of resources. */
enum {
    TASK_RING_FULL, TENSORMAP_POOL_FULL, DEPLIST_POOL_FULL, HEAP_ARENA_FULL, READY_QUEUE_FULL,
    CHANNEL_EMPTY_WAIT, CHANNEL_FULL_WAIT, TASK_WAIT, NOT_WAITING
};
enum { TASK_RING, TENSORMAP_POOL, DEPLIST_POOL, HEAP_ARENA, READY_QUEUE, RESOURCES };
enum { STALL_REASONS = TASK_WAIT };

/* What a generated program says of itself. */

typedef struct { const char *name; u64 capacity, latency; } ChannelInfo;

typedef enum { I8, I16, I32, I64, U8, U16, U32, U64, FP32, FP64, BOOL } Dtype;

typedef struct { const char *name; Dtype dtype; u64 count, bytes; const uint8_t *initial; } TensorInfo;

typedef struct { const char *name; unsigned width; u64 value; } SymbolInfo;

/* A call of a kernel at a `run` or `task` statement; `signal_places` are places among what the process produces. */
typedef struct {
    uint32_t kernel;
    u64 cycles;
    void (*effect)(Machine *, const u64 *);
    uint32_t scalar_count;
    uint32_t read_count;
    const uint32_t *reads;
    uint32_t write_count;
    const uint32_t *writes;
    u64 heap;
    const char *statement;
    uint32_t wait_count;
    const uint32_t *waits;
    uint32_t signal_count;
    const uint32_t *signals, *signal_places;
} Site;

typedef struct {
    const char *name;
    void (*run)(Machine *, Process *);
    const char *const *statements;
    uint32_t produce_count;
    const uint32_t *produces;
    uint32_t consume_count;
    const uint32_t *consumes;
    uint32_t loop_depth;
} ProcessInfo;

typedef struct {
    const char *name;
    uint32_t kernel_count, channel_count, process_count, slot_count, symbol_count, tensor_count, workers;
    const char *const *kernels;
    const ChannelInfo *channels;
    const ProcessInfo *processes;
    const char *const *slots;
    const SymbolInfo *symbols;
    const TensorInfo *tensors;
    u64 sizes[RESOURCES];
    u64 (*place)(Machine *, u64 task, u64 key);
    uint32_t most_scalars, most_reads;
} ProgramInfo;

extern const ProgramInfo *const wsp_programs[];
extern const size_t wsp_program_count;

/* A heap of entries, smallest (time, kind, number) first. */

typedef struct { u64 time, number, value; void *subject; int kind; } Entry;
typedef struct { Entry *entries; size_t count, room; } Heap;

void wsp_push(Machine *m, Heap *heap, Entry entry);
Entry wsp_pop(Heap *heap);

/* State of a run. */

typedef struct { int reason; u64 since; const char *subject, *statement; } Waiting;

/* Who waits at a channel; in this order those who came at one instant are served. */
enum { PROCESS_PARTY, TASK_PARTY };
typedef struct { int kind; u64 number; void *subject; } Party;

/* What is taken from a channel. */
enum { NOTHING, TOKEN, CLOSED };

typedef struct { u64 seen, value; } Token;

typedef struct {
    const ChannelInfo *info;
    u64 capacity;
    uint32_t index, producers;
    Token *tokens;
    size_t first, count, room;
    Heap takers, senders;
    bool seen_closed;
    u64 sent, taken;
} Channel;

/* A scope, and what it holds of complete tasks while it is open; `tasks` in flight refer to it. */
typedef struct Scope { struct Scope *outer; bool open; u64 tasks, slots, entries, heap; } Scope;

struct Process {
    const ProcessInfo *info;
    uint32_t index, pc;
    u64 time;
    bool done, queued, moved, stalled, pending, without_scopes;
    Waiting waiting;
    int delivered;
    u64 token;
    u64 *operands; /* the key, then the scalars of a call */
    u64 awaited, in_flight;
    u64 *rounds, *counts;
    Scope *scope;
    u64 *signalling;
    bool *closed;
};

typedef struct {
    uint32_t index;
    Heap ready;
    u64 places, busy, tasks, time;
    Task *task;
    bool startable;
} Worker;

/* A node of a list of tasks that depend on one, or of processes that wait for it. */
typedef struct Node { struct Node *next; void *subject; } Node;

/* A task among the readers of a tensor. */
typedef struct Reader { struct Reader *before, *after; Task *task; bool listed; } Reader;

struct Task {
    Task *before, *after; /* in flight, by number */
    u64 number, mark;
    const Site *site;
    Process *process;
    Worker *worker;
    Scope *scope;
    u64 nodes, missing, time_started;
    bool started;
    uint32_t sent;
    Waiting waiting;
    Node *dependents, *watchers;
    Reader *readers;
    u64 *scalars;
};

typedef struct Block { struct Block *before, *after; } Block;

typedef struct { const char *code, *process, *statement; char message[600]; } Failure;

/* What a caller gives to a run, by index; a tensor that is NULL is as the program has it. */
typedef struct {
    u64 *symbols, *sizes, *capacities;
    bool *without_scopes; /* of a process: it is executed as if its scopes were not there */
    uint8_t **tensors;
    u64 max_steps;
} Inputs;

struct Machine {
    const ProgramInfo *info;
    const Inputs *inputs;
    u64 steps, most_steps;
    u64 turn_steps, mark_of_progress; /* of the process that goes on */
    bool marked;
    const char *spinning;
    u64 sizes[RESOURCES];
    Block blocks;
    jmp_buf failed;
    Failure failure;
    u64 now;
    Heap events, sweeps[2], startable;
    int sweep; /* of the two, the one that is served */
    int64_t current_index;
    Process *current;
    Entry *due;
    size_t due_room;
    u64 *symbols, *slots;
    uint8_t **tensors;
    u64 stall_count[STALL_REASONS], stall_cycles[STALL_REASONS];
    u64 used[RESOURCES], high_water[RESOURCES];
    Process *processes;
    Channel *channels;
    Worker *workers;
    Process **stalled;
    size_t stalled_count;
    Task *first_task, *last_task, *free_tasks;
    Node *free_nodes;
    Scope *free_scopes;
    Task **writers;
    Reader **readers;
    Task **found;
    size_t found_count, found_room;
    u64 mark;
    uint32_t *assignments;
    size_t issued, assignment_room;
    u64 *kernel_runs, *kernel_cycles;
};

/* memory.c */
void *wsp_allocate(Machine *m, size_t count, size_t size);
void *wsp_grow(Machine *m, void *old, size_t used, size_t room, size_t size);
void wsp_release(void *block);
void wsp_release_all(Machine *m);

/* agenda.c */
enum { FAILED = 1, LEFT, SPINS };
enum { KERNEL_ENDS, TOKEN_SEEN, CLOSE_SEEN, PROCESS_GOES_ON };
void wsp_fail(Machine *m, const char *code, const char *process, const char *statement, const char *format, ...);
void wsp_after(Machine *m, u64 cycles, int kind, u64 number, void *subject);
size_t wsp_collect_due(Machine *m);
void wsp_make_runnable(Machine *m, Process *p);
Process *wsp_next_runnable(Machine *m);
bool wsp_is_settled(const Machine *m);
void wsp_count_step(Machine *m);

/* channels.c */
bool wsp_channel_send(Machine *m, Channel *c, Party party, u64 value);
int wsp_channel_take(Machine *m, Channel *c, Party party, u64 *value);
void wsp_producer_closes(Machine *m, Channel *c);
void wsp_token_seen(Machine *m, Channel *c);
void wsp_close_seen(Machine *m, Channel *c);

/* waits.c */
void wsp_wait(Machine *m, Process *p, int reason, const char *subject);
void wsp_end_wait(Machine *m, Process *p);
void wsp_wake(Machine *m, Process *p);
void wsp_stall(Machine *m, Process *p, int reason);
void wsp_freed(Machine *m);
void wsp_deliver(Machine *m, Entry taker, int what, u64 value);
void wsp_let_go(Machine *m, Entry sender);

/* resources.c */
extern const char *const wsp_resource_names[RESOURCES];
extern const char *const wsp_reason_names[];
int wsp_shortage(const Machine *m, const Site *site, u64 nodes, const Worker *worker);
void wsp_charge(Machine *m, const Site *site, u64 nodes, Worker *worker);
void wsp_free(Machine *m, u64 slots, u64 entries, u64 heap);

/* tensor_map.c */
void wsp_find_dependencies(Machine *m, uint32_t reads, const uint32_t *read, uint32_t writes, const uint32_t *written);
void wsp_map_add(Machine *m, Task *task);
void wsp_map_remove(Machine *m, Task *task);

/* tasks.c */
void wsp_add_node(Machine *m, Node **list, void *subject);
int wsp_issue(Machine *m, Process *p, const Site *site);
void wsp_start_tasks(Machine *m);
void wsp_kernel_ends(Machine *m, Task *task);
void wsp_signal(Machine *m, Task *task);
void wsp_complete(Machine *m, Task *task);
void wsp_one_less(Machine *m, Task *task);
void wsp_count_kernel(Machine *m, const Site *site);
void wsp_close_channel(Machine *m, Process *p, uint32_t place);

/* steps.c: what generated state machines call; those that return false have blocked the process */
void wsp_go(Process *p, uint32_t pc);
void wsp_may_send(Machine *m, Process *p, uint32_t place);
bool wsp_send(Machine *m, Process *p, uint32_t channel, u64 value);
bool wsp_receive(Machine *m, Process *p, uint32_t channel, uint32_t slot);
bool wsp_consume(Machine *m, Process *p, uint32_t channel, uint32_t slot, uint32_t at_end);
void wsp_may_signal(Machine *m, Process *p, const Site *site);
bool wsp_task(Machine *m, Process *p, const Site *site);
bool wsp_await_tensors(Machine *m, Process *p, uint32_t reads, const uint32_t *read, uint32_t writes,
                       const uint32_t *written);
bool wsp_elapse(Machine *m, Process *p, u64 cycles);
void wsp_run_kernel(Machine *m, Process *p, const Site *site);
void wsp_load(Machine *m, Process *p, uint32_t slot, uint32_t tensor);
bool wsp_wait_own(Machine *m, Process *p);
void wsp_begin_scope(Machine *m, Process *p);
void wsp_end_scope(Machine *m, Process *p);
void wsp_end(Machine *m, Process *p);

/* arithmetic.c */
u64 wsp_div(Machine *m, u64 a, u64 b);
u64 wsp_mod(Machine *m, u64 a, u64 b);
u64 wsp_eq(u64 a, u64 b);
u64 wsp_ne(u64 a, u64 b);
u64 wsp_lt(u64 a, u64 b);
u64 wsp_le(u64 a, u64 b);
u64 wsp_gt(u64 a, u64 b);
u64 wsp_ge(u64 a, u64 b);
u64 wsp_min(u64 a, u64 b);
u64 wsp_max(u64 a, u64 b);
void wsp_bad_worker(Machine *m, u64 task, u64 worker);
float wsp_settled_float(float value);
double wsp_settled_double(double value);
float wsp_min_float(float a, float b);
float wsp_max_float(float a, float b);
double wsp_min_double(double a, double b);
double wsp_max_double(double a, double b);
u64 wsp_element(Machine *m, const TensorInfo *info, const uint8_t *data, u64 element);

/* wait_graph.c: who waits for whom, names of a cycle printed as a JSON list */
void wsp_print_cycle(Machine *m);

/* trials.c: another execution after a deadlock, with other settings and within a bound of steps */
typedef struct { uint32_t knob; u64 value; } Setting;
typedef struct { Setting *settings; size_t count; } Settings;
enum { COMPLETED, FURTHER, DEADLOCK, ERROR, UNKNOWN };
typedef struct {
    int outcome;
    u64 *demand; /* the most that it had of each resource, then of each channel */
    Settings exhausted; /* where it was a deadlock */
    const char *error;
} Trial;
u64 wsp_progress(const Machine *m);
Settings wsp_exhausted(Machine *m, const Machine *of);
Trial wsp_try(Machine *m, const Settings *changed, u64 most_steps, u64 *steps);

/* mitigations.c, report.c, result.c */
void wsp_print_mitigations(Machine *m);
bool wsp_scopes_hold_what_is_wanted(const Machine *m);
void wsp_print_deadlock(Machine *m);
void wsp_print_result(Machine *m, int outcome);

/* run.c */
Machine *wsp_machine(const ProgramInfo *info, const Inputs *inputs, u64 most_steps);
int wsp_finish(Machine *m);
void wsp_release_machine(Machine *m);
bool wsp_run(const ProgramInfo *info, const Inputs *inputs);

#endif
