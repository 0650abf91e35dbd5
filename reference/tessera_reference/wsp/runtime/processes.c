/* What processes do: values of expressions, kernels, and statements. */
#include "program.h"

/* The value of an expression now; of `select` only the chosen operand is evaluated. */
static u64 wsp_value(Machine *m, const Expression *e) {
    switch (e->op) {
    case CONSTANT: return e->value;
    case SYMBOL: return m->symbols[e->value];
    case SLOT: return m->slots[e->value].value;
    case INPUT_TASK: return m->task_input;
    case INPUT_KEY: return m->key_input;
    }
    u64 a = wsp_value(m, e->operands[0]);
    if (e->op == SELECT) return wsp_value(m, e->operands[a != 0 ? 1 : 2]);
    if (e->op == NOT) return ~a;
    u64 b = wsp_value(m, e->operands[1]);
    if ((e->op == DIV || e->op == MOD) && b == 0)
        wsp_fail(m, "DIVISION_BY_ZERO", "%" PRIu64 " is divided by zero", a);
    switch (e->op) {
    case ADD: return a + b;
    case SUB: return a - b;
    case MUL: return a * b;
    case DIV: return a / b;
    case MOD: return a % b;
    case AND: return a & b;
    case OR: return a | b;
    case XOR: return a ^ b;
    case SHL: return a << (b & 63);
    case SHR: return a >> (b & 63);
    case EQ: return a == b;
    case NE: return a != b;
    case LT: return a < b;
    case LE: return a <= b;
    case GT: return a > b;
    case GE: return a >= b;
    case MIN: return a < b ? a : b;
    default: return a > b ? a : b;
    }
}

/* The worker on which the dispatch policy places a task. */
static u64 wsp_worker(Machine *m, u64 task, u64 key) {
    m->task_input = task;
    m->key_input = key;
    u64 worker = wsp_value(m, m->worker);
    if (worker >= m->workers_count)
        wsp_fail(m, "WORKER_OUT_OF_RANGE", "the policy places task %" PRIu64 " on worker %" PRIu64 " of %" PRIu32, task,
                 worker, m->workers_count);
    return worker;
}

/* The instructions of a kernel call, over tensors whose dtype and count are known, those of one instruction equal.
 *
 * Integers are computed without signs, which wrap as two's complement does; only orders look at the sign bit. Floats are
 * computed as double and rounded once: sums and products of two fp32 are the same so.
 */

static bool is_float(const Tensor *t) { return t->dtype == FP32 || t->dtype == FP64; }

static u64 bits_at(const Tensor *t, u64 place) {
    const uint8_t *at = t->data + place * t->width;
    u64 bits = 0;
    for EACH(byte, t->width) bits |= (u64)at[byte] << 8 * byte;
    return bits;
}

static void set_bits(const Tensor *t, u64 place, u64 bits) {
    uint8_t *at = t->data + place * t->width;
    for EACH(byte, t->width) at[byte] = (uint8_t)(bits >> 8 * byte);
}

static double number_of(const Tensor *t, u64 bits) {
    union { uint32_t bits; float value; } narrow = {(uint32_t)bits};
    union { u64 bits; double value; } wide = {bits};
    return t->dtype == FP32 ? narrow.value : wide.value;
}

/* The bits of a number, rounded to the dtype; every NaN is the quiet one. */
static u64 bits_of_number(const Tensor *t, double number) {
    bool single = t->dtype == FP32;
    union { float value; uint32_t bits; } narrow = {single ? (float)number : 0};
    union { double value; u64 bits; } wide = {number};
    if (isnan(number)) return single ? UINT32_C(0x7FC00000) : UINT64_C(0x7FF8000000000000);
    return single ? narrow.bits : wide.bits;
}

/* A u64 as an element: integers wrap, floats round to nearest even, bool is 1 where it is not 0. */
static u64 element_bits(const Tensor *t, u64 value) {
    if (t->dtype == BOOL) return value != 0;
    if (t->dtype == FP32) return bits_of_number(t, (float)value);
    return t->dtype == FP64 ? bits_of_number(t, (double)value) : value;
}

/* An operand: the elements of a tensor, or else one value as the bits of an element. */
typedef struct { const Tensor *tensor; u64 bits; } Source;

static Source source(Machine *m, const Statement *s, const u64 *scalars, const Operand *operand, const Tensor *like) {
    if (operand->kind == OF_TENSOR) return (Source){&m->tensors[s->tensors.items[operand->value]], 0};
    return (Source){NULL, element_bits(like, operand->kind == OF_SCALAR ? scalars[operand->value] : operand->value)};
}

static u64 bits_from(const Source *s, u64 place) { return s->tensor != NULL ? bits_at(s->tensor, place) : s->bits; }

/* Two elements combined; NaN wins over other elements, and -0 is below +0. */
static u64 combined(const Tensor *d, int op, u64 a, u64 b) {
    bool floats = is_float(d), below;
    double x = number_of(d, a), y = number_of(d, b);
    switch (op) {
    case KERNEL_ADD: return floats ? bits_of_number(d, x + y) : a + b;
    case KERNEL_SUB: return floats ? bits_of_number(d, x - y) : a - b;
    case KERNEL_MUL: return floats ? bits_of_number(d, x * y) : a * b;
    }
    if (floats && (isnan(x) || isnan(y))) return bits_of_number(d, NAN);
    u64 unused = 64 - 8 * d->width, sign = d->dtype <= I64 ? UINT64_C(1) << 63 : 0;
    below = floats ? x < y || (x == y && signbit(x)) : ((a << unused) ^ sign) < ((b << unused) ^ sign);
    return below == (op == KERNEL_MIN) ? a : b;
}

/* In element order. */
static u64 sum(const Tensor *d, const Tensor *terms) {
    u64 total = bits_at(terms, 0);
    for (u64 each = 1; each < terms->count; each++) total = combined(d, KERNEL_ADD, total, bits_at(terms, each));
    return is_float(d) ? bits_of_number(d, number_of(d, total)) : total;
}

static void apply(Machine *m, const Statement *s, const u64 *scalars, const Instruction *instruction) {
    const Tensor *d = &m->tensors[s->tensors.items[instruction->destination]];
    Source a = source(m, s, scalars, &instruction->operands[0], d);
    Source b = source(m, s, scalars, &instruction->operands[1], d);
    if (instruction->op == KERNEL_SUM) {
        set_bits(d, 0, sum(d, a.tensor));
        return;
    }
    for (u64 place = 0; place < d->count; place++) {
        u64 bits = bits_from(&a, place);
        if (instruction->op == KERNEL_IOTA) bits = combined(d, KERNEL_ADD, element_bits(d, place), bits);
        if (instruction->op >= KERNEL_ADD) bits = combined(d, instruction->op, bits, bits_from(&b, place));
        set_bits(d, place, bits);
    }
}

/* Execute the instructions of a kernel on its tensors, and count it. */
static void wsp_apply(Machine *m, const Statement *s, const u64 *scalars) {
    Kernel *kernel = &m->kernels[s->kernel];
    for EACH(each, kernel->instructions_count) apply(m, s, scalars, &kernel->instructions[each]);
    kernel->runs++;
    kernel->cycles += s->cycles;
}

/* An element as u64: integers extend in two's complement, floats must be whole. */
static u64 as_u64(Machine *m, const Tensor *t, u64 place) {
    u64 bits = bits_at(t, place), sign = UINT64_C(1) << (8 * t->width - 1);
    if (t->dtype <= I64) return (bits ^ sign) - sign;
    if (!is_float(t)) return bits;
    double value = number_of(t, bits);
    if (!(value >= 0 && value < 18446744073709551616.0 && (double)(u64)value == value))
        wsp_fail(m, "SLOT_VALUE", "%s[%" PRIu64 "] is no whole number from 0 below 2^64", t->name, place);
    return (u64)value;
}

/* The statements of a process. One that waits is executed again when it need not wait any more; `phase` is how far it is. */

static bool send(Machine *m, Process *p, const Statement *s) {
    Channel *c = &m->channels[s->channel];
    if (p->phase++ > 0) return true;
    if (p->closed[s->channel]) wsp_fail(m, "SEND_AFTER_CLOSE", "%s has closed %s", p->name, c->name);
    if (wsp_channel_send(m, c, of_process(m, p), wsp_value(m, s->value))) return true;
    wsp_wait(m, &p->waiting, CHANNEL_FULL_WAIT, c->name);
    return false;
}

/* The process has a token or its end, or waits. */
static int take(Machine *m, Process *p, const Statement *s) {
    Channel *c = &m->channels[s->channel];
    if (p->phase++ == 0) p->taken = wsp_channel_take(m, c, of_process(m, p));
    if (p->taken.what == NOTHING) wsp_wait(m, &p->waiting, CHANNEL_EMPTY_WAIT, c->name);
    if (p->taken.what == CLOSED && s->kind == RECEIVE)
        wsp_fail(m, "RECEIVE_AFTER_CLOSE", "%s is closed and empty", c->name);
    if (p->taken.what == TOKEN) {
        m->slots[s->into].value = p->taken.value;
        wsp_observe(m, "arrival", (u64)(p - m->processes), s->channel, p->taken.value);
    }
    return p->taken.what;
}

static void evaluate(Machine *m, Process *p, const Statement *s) {
    for EACH(scalar, s->scalars_count) p->operands[1 + scalar] = wsp_value(m, s->scalars[scalar]);
}

/* Issue a task, when all that it needs is free; its operands are those of the first attempt. */
static bool task(Machine *m, Process *p, const Statement *s) {
    if (p->phase == 0) {
        for EACH_OF(signal, s->signals)
            if (p->closed[*signal])
                wsp_fail(m, "SEND_AFTER_CLOSE", "a task of %s signals a channel that it has closed", p->name);
        p->operands[0] = s->key == NULL ? 0 : wsp_value(m, s->key);
        evaluate(m, p, s);
        p->phase = 1;
    }
    int reason = wsp_issue(m, p, s);
    if (reason != NOT_WAITING) {
        wsp_stall(m, p, reason);
        return false;
    }
    p->time = m->now;
    return true;
}

/* True if the process need not wait for the tasks that were found. */
static bool await_found(Machine *m, Process *p) {
    p->missing = wsp_await_found(m, of_process(m, p));
    if (p->missing > 0) wsp_wait(m, &p->waiting, TASK_WAIT, "tasks");
    return p->missing == 0;
}

static bool await_tensors(Machine *m, Process *p, List reads, List writes) {
    wsp_find_dependencies(m, reads, writes);
    return await_found(m, p);
}

static bool await_own(Machine *m, Process *p) {
    if (p->phase++ > 0) return true;
    m->found.count = 0;
    for (Task *task = m->tasks.after; task != &m->tasks; task = task->after)
        if (task->process == p) wsp_add_pointer(&m->found, task);
    return await_found(m, p);
}

static bool load(Machine *m, Process *p, const Statement *s) {
    const Tensor *t = &m->tensors[s->tensor];
    if (p->phase++ == 0) {
        p->operands[0] = wsp_value(m, s->element);
        if (!await_tensors(m, p, (List){1, &s->tensor}, (List){0, NULL})) return false;
    }
    u64 place = p->operands[0];
    if (place >= t->count)
        wsp_fail(m, "ELEMENT_OUT_OF_RANGE", "%s has %" PRIu64 " elements, and no %" PRIu64, t->name, t->count, place);
    m->slots[s->slot].value = as_u64(m, t, place);
    return true;
}

/* Execute a kernel in the time of the process; it changes its tensors at its end. */
static bool run_kernel(Machine *m, Process *p, const Statement *s) {
    u64 process = (u64)(p - m->processes);
    if (p->phase == 0) {
        evaluate(m, p, s);
        p->phase = 1;
        if (!await_tensors(m, p, s->reads, s->writes)) return false;
    }
    if (p->phase++ == 1 && s->cycles > 0) {
        wsp_after(m, s->cycles, PROCESS_GOES_ON, process, p);
        return false;
    }
    wsp_apply(m, s, p->operands + 1);
    wsp_observe(m, "kernel", process, s->kernel, s->cycles);
    return true;
}

static void begin_scope(Machine *m, Process *p) {
    if (p->without_scopes == 0) *(Scope *)wsp_add(&p->scopes, sizeof(Scope)) = (Scope){.serial = ++m->scopes};
}

/* Free what complete tasks of the scope held; no barrier. */
static void end_scope(Machine *m, Process *p) {
    if (p->without_scopes > 0) return;
    Scope scope = ((Scope *)p->scopes.items)[--p->scopes.count];
    if (scope.held[TASK_RING] == 0) return;
    wsp_free(m, scope.held);
    wsp_freed(m);
}

/* The repeat before its turns. */
static void repeat(Machine *m, const Statement *s, Statement *turns) {
    turns->turn = 0;
    turns->turns = wsp_value(m, s->count);
}

/* True if a repeat has another turn. */
static bool turn(Machine *m, Statement *s) {
    if (s->turn == s->turns) return false;
    wsp_count_step(m);
    if (s->index != NONE) m->slots[s->index].value = s->turn;
    s->turn++;
    return true;
}

/* Execute a statement. True if the process goes on. */
static bool wsp_execute(Machine *m, Process *p) {
    Statement *s = p->at;
    bool done = true, jumps = false;
    if (p->phase == 0 && s->kind < TURN) wsp_count_step(m);
    switch (s->kind) {
    case RUN: done = run_kernel(m, p, s); break;
    case TASK: done = task(m, p, s); break;
    case SEND: done = send(m, p, s); break;
    case RECEIVE:
    case CONSUME:
        done = take(m, p, s) != NOTHING;
        jumps = p->taken.what == CLOSED;
        break;
    case CLOSE:
    case LEAVE: wsp_close_channel(m, p, s->channel); break;
    case SCOPE: begin_scope(m, p); break;
    case COND: jumps = wsp_value(m, s->when) == 0; break;
    case REPEAT: repeat(m, s, s + 1); break;
    case LOAD: done = load(m, p, s); break;
    case WAIT: done = await_own(m, p); break;
    case TURN: jumps = !turn(m, s); break;
    case END_SCOPE: end_scope(m, p); break;
    case JUMP: jumps = true; break;
    case END: p->done = true; break;
    }
    if (!done || p->done) return false;
    p->phase = 0;
    p->at += jumps ? s->jump : 1;
    return true;
}
