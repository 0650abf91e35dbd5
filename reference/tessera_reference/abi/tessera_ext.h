/*
 * Extensions of the Tessera runtime: what a conformance suite, a debugger or a benchmark asks beyond tessera.h.
 *
 * A library exports those that it has; each says by being there that the library answers the method of the protocol of
 * that name (docs/protocol.md), and how follows from its line there:
 *
 *   inputs   a handle or a pointer as such; text and words as NUL-terminated UTF-8; bytes as their address and size;
 *            whole numbers as int64_t; everything else as its JSON text, the types being those of the protocol. What
 *            is left out is NULL, TESSX_ABSENT for a number, 0 for a switch.
 *   outputs  a pointer to each handle, pointer, number or switch. One text, one run of bytes, or else the JSON text of
 *            the whole result, through a buffer of the caller: *needed is how many bytes it takes, of a text with its
 *            NUL. Where that is more than capacity nothing is written, TESS_OK is returned, and the caller asks again;
 *            out may be NULL if capacity is 0.
 *
 * In JSON texts a handle or a pointer is the number that it is as a uintptr_t, bytes are hexadecimal digits, and a
 * tensor is {"$tensor": {"dtype": ..., "shape": [...], "bits": "..."}}.
 *
 * The statuses are those of tessera.h. What is refused for another reason is TESS_ERR_INVALID_VALUE, and what the
 * library does not do TESS_ERR_UNSUPPORTED; tessxOutcome then says more.
 */
#ifndef TESSERA_EXT_H
#define TESSERA_EXT_H

#include <stddef.h>
#include <stdint.h>

#include "tessera.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An optional number that is left out */
#define TESSX_ABSENT INT64_MIN

typedef struct tessxGraph* tessxGraph_t;

/* The session */

/*
 * Who answers, what it claims and which arithmetic it declares: session.open, without what the caller knows itself.
 *   out  JSON, {implementation?: object, documents?: [text], capabilities?: {*: capability}, arithmetic?: arithmetic}
 */
tessStatus_t tessxHello(char* out, size_t capacity, size_t* needed);

/*
 * Forgets everything: a new machine, without contexts. Handles and memory of before are no more. session.reset.
 */
tessStatus_t tessxReset(void);

/*
 * What the last call that failed came to, of any thread, where its status does not tell all.
 *   out  JSON, {rejected: rejected} or {unsupported: {feature: text}}; empty if no call has failed
 */
tessStatus_t tessxOutcome(char* out, size_t capacity, size_t* needed);

/* The machine, its schedule, and what work did (runtime specification) */

/*
 * The devices of the machine: their ids, targets and memory.
 *   out  JSON, {devices: [device; 1..]}
 * RT-04.2-04, RT-19.A-05
 */
tessStatus_t tessxDevices(char* out, size_t capacity, size_t* needed);

/*
 * What the memory of one rank holds once all work of the mesh is done.
 *   out  the bytes
 * Feature rank-memory. RT-04.6-08 to 13
 */
tessStatus_t tessxPeek(tessMesh_t mesh, int64_t rank, void* devPtr, int64_t bytes, void* out, size_t capacity,
                       size_t* needed);

/*
 * Writes the memory of one rank once all work of the mesh is done.
 *   data, dataSize  bytes, and how many
 * Feature rank-memory. RT-04.6-08 to 13
 */
tessStatus_t tessxPoke(tessMesh_t mesh, int64_t rank, void* devPtr, const void* data, size_t dataSize);

/*
 * The last call that failed: function, argument, what was given, what is allowed.
 *   out  the text
 * Feature last-error. RT-07-03
 */
tessStatus_t tessxLastError(char* out, size_t capacity, size_t* needed);

/*
 * What programs did wrong with memory since the last reset.
 *   out  JSON, {findings: [finding]}
 * Feature memory-findings. RT-04.4-14, RT-04.4-18 to 20
 */
tessStatus_t tessxFindings(char* out, size_t capacity, size_t* needed);

/*
 * How choices are made, before any work is queued. Where untimed, everything takes no time, so that every order that
 * the rules allow can be chosen.
 *   policy  fifo, seeded, replay
 *   seed  TESSX_ABSENT where left out
 *   choices  JSON, choices; NULL where left out
 * Feature schedule-control. RT-06-01, RT-12-01, RT-12-03, RT-12-04
 */
tessStatus_t tessxSetSchedule(const char* policy, int64_t seed, const char* choices, int untimed);

/*
 * Which of how many was chosen, each time there was a choice; choices can be replayed.
 *   out  JSON, {choices: choices, widths: [int>=1]}
 * Feature schedule-control. RT-06-01, RT-12-01, RT-12-03, RT-12-04
 */
tessStatus_t tessxGetSchedule(char* out, size_t capacity, size_t* needed);

/*
 * What is to go wrong from now on in work of a context; replaces what was said before.
 *   faults  JSON, [fault]
 * Feature fault-injection. RT-07-04, RT-07-07, RT-19.A-02, RT-19.A-04
 */
tessStatus_t tessxSetFaults(tessContext_t context, const char* faults);

/*
 * Limits the time of the machine that work of a context may take; 0 for no limit.
 * Feature timeout. RT-19.A-09
 */
tessStatus_t tessxSetTimeout(tessContext_t context, int64_t nanoseconds);

/*
 * The collective as this one rank issues it, with the op, axis and root that it has; the n-th of each rank of the
 * stream meet.
 *   collective  all_reduce, reduce_scatter, all_gather, broadcast
 *   op  TESSX_ABSENT where left out
 *   axis  NULL where left out
 *   root  TESSX_ABSENT where left out
 *   algorithm  NULL where left out
 *   descriptor  JSON, descriptor; NULL where left out
 *   policy  JSON, policy; NULL where left out
 * Feature per-rank-issue. RT-07-08, RT-07-09, RT-11-08, RT-11-09, RT-19.A-07, RT-19.A-08
 */
tessStatus_t tessxIssue(tessMesh_t mesh, int64_t rank, const char* collective, void* buffer, int64_t count,
                        int64_t dtype, tessStream_t stream, int64_t op, const char* axis, int64_t root,
                        const char* algorithm, const char* descriptor, const char* policy);

/*
 * What is attached to later launches and collectives.
 *   descriptor  JSON, descriptor
 * Feature descriptor-access. RT-11-01 to 07
 */
tessStatus_t tessxSetDescriptor(tessContext_t context, const char* descriptor);

/*
 * The descriptors of the launches and collectives queued on the stream so far, in order; of what is captured, each time
 * it is replayed.
 *   out  JSON, {descriptors: [carried]}
 * Feature descriptor-access. RT-11-01 to 07
 */
tessStatus_t tessxDescriptors(tessStream_t stream, char* out, size_t capacity, size_t* needed);

/*
 * Ends the capture on a stream, and gives the graph of what was captured.
 *   graph  out
 * Feature graph-replay. RT-12-07
 */
tessStatus_t tessxGraphInstantiate(tessStream_t stream, tessxGraph_t* graph);

/*
 * The nodes of a graph, each with the indices of those that it directly follows.
 *   out  JSON, {nodes: [node]}
 * Feature graph-replay. RT-12-05, RT-12-06, RT-06-11
 */
tessStatus_t tessxGraphNodes(tessxGraph_t graph, char* out, size_t capacity, size_t* needed);

/*
 * Replays a graph on a stream of the mesh that it was captured on.
 * Feature graph-replay. RT-12-08, RT-12-09
 */
tessStatus_t tessxGraphLaunch(tessxGraph_t graph, tessStream_t stream);

/*
 * Ends a graph; replays that are queued still run.
 * Feature graph-replay. RT-12-07
 */
tessStatus_t tessxGraphDestroy(tessxGraph_t graph);

/*
 * The kernels that are resident now. A persistent kernel is resident from when it starts until its stream is
 * synchronized or destroyed.
 *   out  JSON, {kernels: [text]}
 * Feature persistent-kernels. RT-06-13, RT-15-04
 */
tessStatus_t tessxResident(tessMesh_t mesh, char* out, size_t capacity, size_t* needed);

/*
 * What the cache in the directory TESS_CACHE_DIR holds.
 *   out  JSON, {entries: [cache_entry]}
 * Feature cache-probe. RT-08.2-01, RT-08.2-02
 */
tessStatus_t tessxCacheEntries(char* out, size_t capacity, size_t* needed);

/*
 * How often the cache helped since the last tessInit, and how often not.
 *   hits  out
 *   misses  out
 * Feature cache-probe. RT-08.2-03 to 06
 */
tessStatus_t tessxCacheUse(int64_t* hits, int64_t* misses);

/*
 * What the machine says it is from now on.
 *   driver  NULL where left out
 *   abi_hash  NULL where left out
 *   arch  NULL where left out
 * Feature cache-probe. RT-08.2-03 to 05
 */
tessStatus_t tessxSetIdentity(const char* driver, const char* abi_hash, const char* arch);

/*
 * What the next tessInit finds; others are unset.
 *   variables  JSON, variables
 * Feature env-vars. RT-19.C-01 to 05
 */
tessStatus_t tessxSetEnvironment(const char* variables);

/*
 * What the context found in its environment; null where a variable is unset.
 *   out  JSON, {numerics: text or null, deterministic: bool or null, cache_dir: text or null, autotune: bool or null,
 *     log_level: text or null}
 * Feature env-vars. RT-19.C-01 to 05
 */
tessStatus_t tessxSettings(tessContext_t context, char* out, size_t capacity, size_t* needed);

/*
 * What was logged since the last reset.
 *   out  JSON, {lines: [log_line]}
 * Feature env-vars. RT-19.C-05
 */
tessStatus_t tessxLog(char* out, size_t capacity, size_t* needed);

/*
 * What became of a module: tessExplain of section 17, as text and as a value.
 *   out  JSON, {text: text, explanation: explanation}
 * Feature explain. RT-17-03, RT-17-08, RT-17-09
 */
tessStatus_t tessxExplain(tessModule_t module, char* out, size_t capacity, size_t* needed);

/*
 * By which algorithm the collective would run, and why; the next one runs by it, and the args of its slices in a trace
 * name it as algorithm.
 *   collective  all_reduce, reduce_scatter, all_gather, broadcast
 *   axis  NULL for none
 *   out  JSON, {algorithm: algorithm, source: hint/environment/autotuner/default}
 * Feature algorithm-control. RT-13-06 to 08
 */
tessStatus_t tessxCollectivePlan(tessMesh_t mesh, const char* collective, int64_t count, int64_t dtype,
                                 const char* axis, char* out, size_t capacity, size_t* needed);

/*
 * A schedule's hint, or an autotuner's result.
 *   collective  all_reduce, reduce_scatter, all_gather, broadcast
 *   algorithm  NULL for none
 *   source  hint, autotuner
 * Feature algorithm-control. RT-13-03 to 07
 */
tessStatus_t tessxSetAlgorithm(tessContext_t context, const char* collective, const char* algorithm,
                               const char* source);

/*
 * What modules and work of a context may do. trusted_keys are Ed25519 public keys: modules must be signed by one
 * (feature module-signing).
 *   trusted_keys  JSON, [data]; NULL where left out
 * Feature runtime-policy. RT-15-02, RT-15-05, RT-15-07
 */
tessStatus_t tessxSetModulePolicy(tessContext_t context, int forbid_fast_math, int enforce_determinism,
                                  const char* trusted_keys);

/*
 * Limits the device memory that the queued work of a stream may refer to at a time; 0 for no limit.
 * Feature stream-memory-limits. RT-15-03
 */
tessStatus_t tessxSetStreamLimit(tessStream_t stream, int64_t bytes);

/* What is fixed between programs, modules and the runtime (runtime specification, sections 8, 9, 10 and 19.B) */

/*
 * The id of each dtype known at the binary interface.
 *   out  JSON, {ids: {*: int}}
 * RT-19.B-01 to 13
 */
tessStatus_t tessxDtypeIds(char* out, size_t capacity, size_t* needed);

/*
 * The address spaces, with their numbers in LLVM, NVVM and ROCDL.
 *   out  JSON, {spaces: [address_space]}
 * RT-09-01 to 05, RT-09-09
 */
tessStatus_t tessxAddressSpaces(char* out, size_t capacity, size_t* needed);

/*
 * Where the arguments lie, in bytes. The signature is as in the specification's sample: name(Q*, int B, float scale).
 *   out  JSON, {parameters: [parameter], end_of_last_argument: int>=0, size: int>=0, alignment: int>=0}
 * RT-10.1-03 to 07, RT-10.1-13
 */
tessStatus_t tessxParameterLayout(const char* signature, char* out, size_t capacity, size_t* needed);

/*
 * A parameter buffer of some arguments, in declared order.
 *   values  JSON, [value]
 *   out  the bytes
 * RT-10.1-01, RT-10.1-02
 */
tessStatus_t tessxPack(const char* signature, const char* values, void* out, size_t capacity, size_t* needed);

/*
 * The arguments in a parameter buffer, in declared order.
 *   buffer, bufferSize  bytes, and how many
 *   out  JSON, {values: [exact]}
 * RT-10.1-01, RT-10.1-02, RT-10.1-13
 */
tessStatus_t tessxUnpack(const char* signature, const void* buffer, size_t bufferSize, char* out, size_t capacity,
                         size_t* needed);

/*
 * A module image as tessModuleLoad takes it, of a program (dsl) or of IR text, for the machine's devices where there
 * are no targets, with the module's defaults. The collectives of its functions yield its plans. signing_key is an
 * Ed25519 private key; ir_pack (false) leaves the binaries out.
 *   at  dsl, graph, tile, target; NULL where left out
 *   targets  JSON, [text]; NULL where left out
 *   abi_version  JSON, version; NULL where left out
 *   policy  JSON, policy; NULL where left out
 *   signing_key, signing_keySize  bytes, and how many; NULL where left out
 *   out  the bytes
 * RT-04.5-04, RT-04.5-14, RT-08.1-09, RT-08.1-10, RT-15-05, RT-16-02, RT-16-03
 */
tessStatus_t tessxCompile(const char* source, const char* at, const char* targets, const char* abi_version,
                          const char* policy, const void* signing_key, size_t signing_keySize, int ir_pack, void* out,
                          size_t capacity, size_t* needed);

/*
 * What an image says about itself, whatever ABI version it is of; the digest of the source IR is the implementation's
 * choice.
 *   image, imageSize  bytes, and how many
 *   out  JSON, {abi_version: version, targets: [text], ir_hash: data, sections: [section], kernels: [kernel], policy:
 *     policy or null, collective_plans: [plan]}
 * RT-08.1-01 to 10, RT-08.1-12, RT-16-01
 */
tessStatus_t tessxInspect(const void* image, size_t imageSize, char* out, size_t capacity, size_t* needed);

/* Single operations */

/*
 * One operation, under the numerics policy of a context of tessInit and launch flags. The results in order and, with
 * the feature descriptor-access, the descriptor that governed the work.
 *   inputs  JSON, [tensor]
 *   attributes  JSON, object
 *   level  strict, deterministic, fast; NULL where left out
 *   context  a context, or NULL for none
 *   flags  TESSX_ABSENT where left out
 *   descriptor  JSON, descriptor; NULL where left out
 *   out  JSON, {outputs: [tensor], descriptor?: descriptor}
 * Feature operation-access. RT-04.7-02 to 05, RT-04.7-10, RT-06-09, RT-11-02 to 07
 */
tessStatus_t tessxNumericsEvaluate(const char* operation, const char* inputs, const char* attributes, const char* level,
                                   tessContext_t context, int64_t flags, const char* descriptor, char* out,
                                   size_t capacity, size_t* needed);

/*
 * In which order an element of the result is reduced (its flat index, 0 where left out), and how a node of the tree
 * computes; shapes are those of the operands.
 *   shapes  JSON, [shape]
 *   attributes  JSON, object; NULL where left out
 *   element  TESSX_ABSENT where left out
 *   out  JSON, {tree: tree, arithmetic: model}
 * Feature operation-access. RT-06-04, RT-11-02, LANG-10-01
 */
tessStatus_t tessxNumericsDeclared(const char* operation, const char* dtype, const char* shapes, const char* attributes,
                                   int64_t element, char* out, size_t capacity, size_t* needed);

/* Programs and IR texts (language specification) */

/*
 * The declarations of each module, in source order.
 *   out  JSON, {modules: [module]}
 * LANG-02.3-01 to 03
 */
tessStatus_t tessxLanguageParse(const char* source, char* out, size_t capacity, size_t* needed);

/*
 * Checks a program.
 *   out  JSON, {warnings: [diagnostic]}
 * LANG-01-05, LANG-12-01 to 03
 */
tessStatus_t tessxLanguageVerify(const char* source, char* out, size_t capacity, size_t* needed);

/*
 * Checks a text of one IR module or several, at a level, graph where left out.
 *   at  graph, schedule, tile, target; NULL where left out
 *   target  NULL where left out
 *   out  JSON, {warnings: [diagnostic]}
 * Feature {at}-ir-text. LANG-01-03, LANG-01-06, LANG-05-01, LANG-06.1-01 to 05, LANG-07.2-01 to 06, LANG-08.1-01,
 * LANG-08.1-04, LANG-08.1-05, LANG-08.1-11
 */
tessStatus_t tessxLanguageVerifyIr(const char* text, const char* at, const char* target, char* out, size_t capacity,
                                   size_t* needed);

/*
 * Runs a function or a kernel of an IR text: the results of the one, the buffers of the other afterwards, in order.
 *   inputs  JSON, {*: tensor}
 *   at  graph, schedule, tile, target
 *   target  NULL where left out
 *   out  JSON, outputs
 * Feature {at}-ir-text. LANG-04-03, LANG-08.2-01, LANG-08.2-03, LANG-08-01
 */
tessStatus_t tessxLanguageExecuteIr(const char* text, const char* function, const char* inputs, const char* at,
                                    const char* target, char* out, size_t capacity, size_t* needed);

/*
 * A program at a lower level.
 *   to  graph, schedule, tile, target, llvm, ptx, amdgcn
 *   target  NULL where left out
 *   schedule  JSON, schedule; NULL where left out
 *   out  JSON, {functions: [function], text: text}
 * LANG-02-01, LANG-08-01 to 03, LANG-08.2-01 to 04, LANG-08.2-13, LANG-08.2-14, LANG-12-04
 */
tessStatus_t tessxLanguageLower(const char* source, const char* to, const char* target, const char* schedule, char* out,
                                size_t capacity, size_t* needed);

/*
 * Runs a function of a program at a level of IR, graph where left out.
 *   inputs  JSON, {*: tensor}
 *   level  strict, deterministic, fast; NULL where left out
 *   at  graph, schedule, tile, target, native; NULL where left out
 *   target  NULL where left out
 *   schedule  JSON, schedule; NULL where left out
 *   out  JSON, outputs
 * LANG-04-01, LANG-04-03, LANG-08.2-01, LANG-08.2-03, LANG-10-08 to 10
 */
tessStatus_t tessxLanguageExecute(const char* source, const char* function, const char* inputs, const char* level,
                                  const char* at, const char* target, const char* schedule, char* out, size_t capacity,
                                  size_t* needed);

/*
 * Runs a function of a program on every rank of a mesh, row-major.
 *   ranks  JSON, [{*: tensor}]
 *   mesh  NULL where left out
 *   level  strict, deterministic, fast; NULL where left out
 *   out  JSON, {ranks: [outputs]}
 * Feature mesh-execution. LANG-05.2-05, LANG-08.3-03, LANG-09-05, LANG-09-06
 */
tessStatus_t tessxLanguageExecuteRanks(const char* source, const char* function, const char* ranks, const char* mesh,
                                       const char* level, char* out, size_t capacity, size_t* needed);

/* What all ranks compute together (collectives specification) */

/*
 * One collective by one of the algorithms, among the ranks of each group.
 *   inputs  JSON, [tensor; 1..]
 *   op  NULL where left out
 *   root  TESSX_ABSENT where left out
 *   algorithm  NULL where left out
 *   groups  JSON, [rank_group; 1..]; NULL where left out
 *   per_node  TESSX_ABSENT where left out
 *   chunk  TESSX_ABSENT where left out
 *   level  strict, deterministic, fast; NULL where left out
 *   wire  NULL where left out
 *   qscheme  NULL where left out
 *   block  TESSX_ABSENT where left out
 *   seed  TESSX_ABSENT where left out
 *   partials  JSON, [int>=1; 2]; NULL where left out
 *   out  JSON, {outputs: [tensor], algorithm?: text, messages?: [message]}
 * Feature operation-access. COLL-03.2-04, COLL-02.2-03, COLL-02.3-01, COLL-02.4-03, COLL-02.4-05, COLL-02.5-01 to 03,
 * COLL-03.1-02 to 04, COLL-04.4-01 to 04, COLL-07.2-02, LANG-09-05, LANG-09-06, RT-06-03, RT-06-04, RT-13-01, RT-13-03
 * to 05, RT-13-09
 */
tessStatus_t tessxCollectivesRun(const char* operation, const char* inputs, const char* op, int64_t root,
                                 const char* algorithm, const char* groups, int64_t per_node, int64_t chunk,
                                 const char* level, int messages, const char* wire, const char* qscheme, int64_t block,
                                 int64_t seed, const char* partials, char* out, size_t capacity, size_t* needed);

/*
 * Each pair is a rank that sends its buffer and a rank that receives it.
 *   inputs  JSON, [tensor; 1..]
 *   pairs  JSON, [rank_pair]
 *   chunk  TESSX_ABSENT where left out
 *   out  JSON, {outputs: [tensor], messages?: [message]}
 * Feature operation-access. COLL-02.1-03
 */
tessStatus_t tessxCollectivesSendRecv(const char* inputs, const char* pairs, int64_t chunk, int messages, char* out,
                                      size_t capacity, size_t* needed);

/*
 * When every message of a collective over a buffer of count elements leaves and arrives, in picoseconds, in order of
 * arrival.
 *   devices  JSON, [int>=0; 1..]; NULL where left out
 *   root  TESSX_ABSENT where left out
 *   chunk  TESSX_ABSENT where left out
 *   down  JSON, [text]; NULL where left out
 *   path  NULL where left out
 *   cuts  JSON, [link_cut]; NULL where left out
 *   out  JSON, {transfers: [transfer], duration: int>=0, trace?: text}
 * Feature message-times. COLL-03.1-03, COLL-04.2-01 to 04, COLL-04.3-01, COLL-06-01, COLL-06-08, COLL-08-19
 */
tessStatus_t tessxCollectivesTransfers(const char* operation, const char* algorithm, int64_t count,
                                       int64_t element_bytes, const char* topology, const char* devices, int64_t root,
                                       int64_t chunk, const char* down, const char* path, const char* cuts, int trace,
                                       char* out, size_t capacity, size_t* needed);

/*
 * A limiter of chunks on links, each with so many credits.
 *   credits  JSON, {*: int>=1}
 * Feature credit-limiter. COLL-04.2-01, COLL-04.2-02
 */
tessStatus_t tessxCollectivesLimiter(const char* credits, int64_t* limiter);

/*
 * Issues one of the ready chunks for which every link on its way has a credit, takes these credits, and tells its id;
 * null where there is no such chunk.
 *   ready  JSON, [ready_chunk; 1..]
 *   out  JSON, {chunk: text or null}
 * Feature credit-limiter. COLL-04.2-03, COLL-04.2-04
 */
tessStatus_t tessxCollectivesAcquire(int64_t limiter, const char* ready, char* out, size_t capacity, size_t* needed);

/*
 * The chunk has arrived: its credits are back.
 * Feature credit-limiter. COLL-04.2-03
 */
tessStatus_t tessxCollectivesRelease(int64_t limiter, const char* chunk);

/*
 * One all-reduce of the buffers of all ranks, under a context's policy.
 *   inputs  JSON, [tensor; 1..]
 *   op  sum, max, min
 *   level  strict, deterministic, fast; NULL where left out
 *   context  a context, or NULL for none
 *   wire  NULL where left out
 *   descriptors  JSON, [descriptor]; NULL where left out
 *   out  JSON, {outputs: [tensor]}
 * Feature operation-access. RT-11-08, RT-11-09, RT-13-01, RT-13-09, LANG-15-10, LANG-15-16
 */
tessStatus_t tessxCollectivesAllReduce(const char* inputs, const char* op, const char* level, tessContext_t context,
                                       const char* wire, const char* descriptors, char* out, size_t capacity,
                                       size_t* needed);

/*
 * A topology by its name or its JSON text: nodes and edges.
 *   out  JSON, {nodes: [graph_node], edges: [edge]}
 * Feature topology. COLL-03.3-01 to 03, COLL-03.3-06
 */
tessStatus_t tessxCollectivesTopology(const char* topology, char* out, size_t capacity, size_t* needed);

/*
 * The way between two devices.
 *   path  NULL where left out
 *   down  JSON, [text]; NULL where left out
 *   environment  JSON, environment; NULL where left out
 *   out  JSON, {path: text, links: [text], fallback: bool}
 * Feature auto-transport. COLL-03.2-01 to 03, COLL-03.2-05, COLL-03.2-07
 */
tessStatus_t tessxCollectivesRoute(const char* topology, int64_t source, int64_t target, const char* path,
                                   const char* down, const char* environment, char* out, size_t capacity,
                                   size_t* needed);

/*
 * Which algorithm a collective of so many bytes takes, and why.
 *   topology  NULL where left out
 *   algorithm  NULL where left out
 *   tuned  NULL where left out
 *   environment  JSON, environment; NULL where left out
 *   out  JSON, {algorithm: text, source: hint/environment/autotuner/default, table: [size_row]}
 * Feature auto-algorithm. COLL-03.1-01, COLL-03.1-02, COLL-03.1-04, COLL-03.2-04, COLL-03.2-06, COLL-08-12, COLL-08-17
 */
tessStatus_t tessxCollectivesSelect(const char* collective, int64_t bytes, int64_t ranks, const char* topology,
                                    const char* algorithm, const char* tuned, const char* environment, char* out,
                                    size_t capacity, size_t* needed);

/*
 * The chunk sizes and chunks in flight that a topology allows.
 *   out  JSON, {chunk_bytes: range, max_inflight: range}
 * Feature topology. COLL-03.3-04, COLL-03.3-05
 */
tessStatus_t tessxCollectivesCheckChunks(const char* topology, int64_t chunk_bytes, int64_t max_inflight, char* out,
                                         size_t capacity, size_t* needed);

/*
 * What a message costs in the model of section 5.2, in picoseconds.
 *   picoseconds  out
 * Feature cost-model. COLL-05.2-01
 */
tessStatus_t tessxCollectivesEstimate(int64_t alpha, int64_t hops, int64_t bytes, int64_t bandwidth,
                                      int64_t* picoseconds);

/*
 * How well two queues overlap.
 *   compute  JSON, [interval]
 *   communication  JSON, [interval]
 *   out  JSON, {score: fraction}
 * Feature cost-model. COLL-05.2-02, COLL-05.2-03
 */
tessStatus_t tessxCollectivesOverlapScore(const char* compute, const char* communication, char* out, size_t capacity,
                                          size_t* needed);

/*
 * The autotuner's knobs after each measurement.
 *   measurements  JSON, [measurement]
 *   knobs  JSON, knobs
 *   limits  JSON, knob_limits; NULL where left out
 *   out  JSON, {steps: [tuning_step]}
 * Feature autotune. COLL-05.1-01, COLL-05.1-02, COLL-05.3-01 to 03, COLL-08-18
 */
tessStatus_t tessxCollectivesTune(const char* measurements, const char* knobs, const char* limits, char* out,
                                  size_t capacity, size_t* needed);

/*
 * How a collective slices a tensor.
 *   shape  JSON, shape
 *   chunk  JSON, chunk_size; NULL where left out
 *   chunk_bytes  JSON, int or text; NULL where left out
 *   tile  JSON, [int; 2]; NULL where left out
 *   out  JSON, {chunks: [chunk_run]}
 * Feature chunk-ranges. COLL-02.3-01 to 03, COLL-08-01, COLL-08-09
 */
tessStatus_t tessxCollectivesChunks(const char* shape, const char* dtype, const char* chunk, const char* chunk_bytes,
                                    const char* tile, char* out, size_t capacity, size_t* needed);

/*
 * What a tensor becomes on the wire, in its shape, and what a receiver restores of it, in its dtype.
 *   input  JSON, tensor
 *   qscheme  NULL where left out
 *   block  TESSX_ABSENT where left out
 *   out  JSON, {payload: tensor, scales?: tensor, block?: int>=1, restored: tensor}
 * Feature compression-probe. COLL-02.5-01, COLL-02.5-02, COLL-02.5-06 to 08, COLL-06-06
 */
tessStatus_t tessxCollectivesCompress(const char* input, const char* dtype, const char* qscheme, int64_t block,
                                      char* out, size_t capacity, size_t* needed);

/*
 * The bytes that travel for a buffer of these tensors, in a form of the implementation's own.
 *   inputs  JSON, [tensor; 1..]
 *   dtype  NULL where left out
 *   qscheme  NULL where left out
 *   block  TESSX_ABSENT where left out
 * Feature wire-packing. COLL-02.4-01, COLL-02.4-05, COLL-02.5-02, COLL-06-06
 */
tessStatus_t tessxCollectivesPack(const char* inputs, const char* dtype, const char* qscheme, int64_t block, void* out,
                                  size_t capacity, size_t* needed);

/*
 * The tensors, of these types, that a receiver makes of bytes of tessxCollectivesPack.
 *   tensors  JSON, [tensor_type; 1..]
 *   dtype  NULL where left out
 *   qscheme  NULL where left out
 *   block  TESSX_ABSENT where left out
 *   out  JSON, {outputs: [tensor]}
 * Feature wire-packing. COLL-02.4-01, COLL-02.5-02, COLL-06-06
 */
tessStatus_t tessxCollectivesUnpack(const void* wire, size_t wireSize, const char* tensors, const char* dtype,
                                    const char* qscheme, int64_t block, char* out, size_t capacity, size_t* needed);

/*
 * What is sent of a gradient and what is left over, step by step.
 *   gradients  JSON, [tensor; 1..]
 *   qscheme  NULL where left out
 *   block  TESSX_ABSENT where left out
 *   out  JSON, {sent: [tensor], residuals: [tensor]}
 * Feature error-feedback. COLL-02.5-04, COLL-06-07
 */
tessStatus_t tessxCollectivesFeedback(const char* gradients, const char* dtype, const char* qscheme, int64_t block,
                                      char* out, size_t capacity, size_t* needed);

/*
 * The k elements of largest magnitude of the flat tensor, indices as int64.
 *   input  JSON, tensor
 *   out  JSON, {indices: tensor, values: tensor, rest: tensor}
 * Feature topk-sparsity. COLL-02.5-05, COLL-02.5-09
 */
tessStatus_t tessxCollectivesSparsify(const char* input, int64_t k, char* out, size_t capacity, size_t* needed);

/*
 * The tensor that a receiver makes of a message of sparsify.
 *   indices  JSON, tensor
 *   values  JSON, tensor
 *   shape  JSON, shape
 *   out  JSON, {output: tensor}
 * Feature topk-sparsity. COLL-02.5-09
 */
tessStatus_t tessxCollectivesDensify(const char* indices, const char* values, const char* shape, char* out,
                                     size_t capacity, size_t* needed);

/*
 * When each unit runs: one rank on each of the devices, on all of the topology where left out, node by node.
 *   units  JSON, [work_unit]
 *   devices  JSON, [int>=0; 1..]; NULL where left out
 *   max_inflight  TESSX_ABSENT where left out
 *   out  JSON, {timeline: [slot], duration: int>=0, idle: idle_times}
 * Feature two-queue. COLL-01-02, COLL-02.1-02, COLL-02.1-03, COLL-04.1-01 to 03, COLL-04.2-04, COLL-08-06
 */
tessStatus_t tessxCollectivesSimulate(const char* units, const char* topology, const char* devices,
                                      int64_t max_inflight, char* out, size_t capacity, size_t* needed);

/*
 * The pipelines of section 7, their units and when each ran.
 *   devices  JSON, [int>=0; 1..]; NULL where left out
 *   out  JSON, {units: [work_unit], timeline: [slot], duration: int>=0, idle: idle_times}
 * Feature two-queue. COLL-07.1-01 to 04, COLL-07.2-01, COLL-07.2-03, COLL-07.2-04, COLL-07.3-01, COLL-07.3-02
 */
tessStatus_t tessxCollectivesPipeline(const char* kind, int64_t layers, int64_t bytes, int64_t picoseconds,
                                      const char* topology, const char* devices, char* out, size_t capacity,
                                      size_t* needed);

/*
 * The tokens of each rank (tokens, features) on their way to the experts, of which each rank has count / ranks
 * neighbouring ones.
 *   inputs  JSON, [tensor; 1..]
 *   experts  JSON, [token_experts; 1..]
 *   dtype  NULL where left out
 *   out  JSON, {buckets: [bucket]}
 * Feature expert-buckets. COLL-07.2-01, COLL-07.2-02, COLL-07.2-04
 */
tessStatus_t tessxCollectivesDispatch(const char* inputs, const char* experts, int64_t count, const char* dtype,
                                      char* out, size_t capacity, size_t* needed);

/*
 * What a text of Graph IR with tessera.collective operations says, and a text that says the same.
 *   out  JSON, {functions: [function], text: text}
 * Feature graph-ir-text. COLL-02.1-01, COLL-02.1-05
 */
tessStatus_t tessxCollectivesRead(const char* text, char* out, size_t capacity, size_t* needed);

/*
 * A function of such a text on every rank: ranks are the inputs of each rank by parameter name, row-major over the
 * mesh.
 *   ranks  JSON, [{*: tensor}]
 *   mesh  NULL where left out
 *   level  strict, deterministic, fast; NULL where left out
 *   out  JSON, {ranks: [outputs]}
 * Feature mesh-execution. COLL-02.1-01, COLL-02.1-05
 */
tessStatus_t tessxCollectivesExecute(const char* text, const char* function, const char* ranks, const char* mesh,
                                     const char* level, char* out, size_t capacity, size_t* needed);

/*
 * What a function becomes on the queues of a device, in the order in which it is put there.
 *   tile  TESSX_ABSENT where left out
 *   max_inflight  TESSX_ABSENT where left out
 *   depth  TESSX_ABSENT where left out
 *   out  JSON, {units: [unit]}
 * Feature graph-ir-text. COLL-08-09, COLL-08-10
 */
tessStatus_t tessxCollectivesPlan(const char* text, const char* function, int64_t tile, int64_t max_inflight,
                                  int64_t depth, char* out, size_t capacity, size_t* needed);

/*
 * The units of a function's plan, executed on every rank.
 *   ranks  JSON, [{*: tensor}]
 *   mesh  NULL where left out
 *   level  strict, deterministic, fast; NULL where left out
 *   tile  TESSX_ABSENT where left out
 *   max_inflight  TESSX_ABSENT where left out
 *   depth  TESSX_ABSENT where left out
 *   seed  TESSX_ABSENT where left out
 *   topology  NULL where left out
 *   picoseconds  TESSX_ABSENT where left out
 *   out  JSON, {ranks: [outputs], units: [unit], order: [progress], timeline?: [unit_slot], duration?: int>=0}
 * Feature plan-execution. COLL-01-02, COLL-02.1-02, COLL-02.3-04, COLL-02.3-05, COLL-02.4-01, COLL-02.4-02,
 * COLL-02.4-04, COLL-08-09, COLL-08-10
 */
tessStatus_t tessxCollectivesExecutePlan(const char* text, const char* function, const char* ranks, const char* mesh,
                                         const char* level, int64_t tile, int64_t max_inflight, int64_t depth,
                                         int64_t seed, const char* topology, int64_t picoseconds, char* out,
                                         size_t capacity, size_t* needed);

/* Messages between host and IO_CPU (host messages) */

/*
 * What the endpoint has: devices by the names that target_device takes, PEs, their memories, kernels.
 *   out  JSON, {devices: [{name: text, sip: int>=0}; 1..], places: [place; 1..], memories: [host_memory; 1..],
 *     builtins: [builtin], queue_depth?: int>=1}
 * HIO-D3-07
 */
tessStatus_t tessxHostIoDescribe(char* out, size_t capacity, size_t* needed);

/*
 * A new endpoint of another size, with fresh memory.
 *   machine  JSON, machine_size
 * Feature endpoint-control. HIO-D1-01
 */
tessStatus_t tessxHostIoOpen(const char* machine);

/*
 * Frames are sent one after the other without waiting for answers.
 *   frames  JSON, [text]
 *   buffers  JSON, [host_buffer]; NULL where left out
 *   seed  TESSX_ABSENT where left out
 *   out  JSON, {answers: [text], sinks?: [host_buffer]}
 * HIO-D2-01, HIO-D3-04, HIO-D3-10 to 12
 */
tessStatus_t tessxHostIoExchange(const char* frames, const char* buffers, int64_t seed, char* out, size_t capacity,
                                 size_t* needed);

/*
 * Bytes of a PE's memory, without a message.
 *   place  JSON, place
 *   out  the bytes
 * Feature device-memory-probe. HIO-D5-01
 */
tessStatus_t tessxHostIoMemory(const char* place, int64_t pa, int64_t nbytes, void* out, size_t capacity,
                               size_t* needed);

/*
 * From now on these PEs fail whatever they are given, and no others do.
 *   places  JSON, [place]
 * Feature fault-injection. HIO-D7-31
 */
tessStatus_t tessxHostIoFail(const char* places);

/*
 * The hops of an answered request: path from the host to the component that ended last and back, each hop beginning
 * where the one before ended, and branches those towards the other PEs of a launch.
 *   out  JSON, {path: [hop; 1..], branches: [hop], latency: int>=1}
 * Feature hop-trace. HIO-D5-26, HIO-Verification-03 to 06
 */
tessStatus_t tessxHostIoTrace(const char* correlation_id, const char* request_id, char* out, size_t capacity,
                              size_t* needed);

/*
 * The modelled components of which every latency is made, from the host to the memory of a PE.
 *   out  JSON, {components: [component; 1..]}
 * Feature hop-trace. HIO-D5-26, HIO-D7-45
 */
tessStatus_t tessxHostIoComponents(char* out, size_t capacity, size_t* needed);

/*
 * All requests that were answered, as a trace in the Chrome format (schemas/trace.schema.json).
 *   out  the text
 * Feature hop-trace. HIO-Verification-05
 */
tessStatus_t tessxHostIoTimeline(char* out, size_t capacity, size_t* needed);

/*
 * The frames that the runtime sends to this endpoint for an example, attention (tensors, a kernel, its output read
 * back) or fill (tensors of one value, read back), and whether its outputs have the bits of the runtime's own path.
 *   out  JSON, {frames: [text], outputs_equal: bool}
 * Feature host-runtime-bridge. HIO-D2-05, HIO-D2-06, HIO-D2-08
 */
tessStatus_t tessxHostIoRuntimeFrames(const char* program, char* out, size_t capacity, size_t* needed);

/* Programs of channels, processes and tasks, their packages, and runs of these (CSP specification) */

/*
 * What comes of a program of processes and channels, with kernels by name.
 *   program  JSON, wsp_program
 *   out  JSON, wsp_ending
 * WSP-01.2-01, WSP-02.1-03, WSP-02.2-02, WSP-02.3-03, WSP-02.4-05, WSP-03.1-01, WSP-03.2-03, WSP-03.3-03
 */
tessStatus_t tessxWspExecute(const char* program, char* out, size_t capacity, size_t* needed);

/*
 * The package of a program for a target.
 *   program  JSON, object
 *   out  JSON, {package: text, diagnostics: [text]}
 * Feature wsp-packages. WSP-01.3-04, WSP-01.3-05, WSP-07-01, WSP-07.2-14
 */
tessStatus_t tessxWspCompile(const char* program, const char* target, char* out, size_t capacity, size_t* needed);

/*
 * What a package says of itself.
 *   out  JSON, {name: text, target: text, phase: int, kernels: [text], channels: [text], processes: [text], slots:
 *     [text], symbols: [text], tensors: [text]}
 * Feature wsp-packages. WSP-07.2-14
 */
tessStatus_t tessxWspLoad(const char* package, char* out, size_t capacity, size_t* needed);

/*
 * Runs a package to its end: completion, an error or a deadlock.
 *   symbols  JSON, {*: text}; NULL where left out
 *   tensors  JSON, {*: data}; NULL where left out
 *   resources  JSON, {*: int>=1}; NULL where left out
 *   seed  TESSX_ABSENT where left out
 *   out  JSON, wsp_outcome
 * Feature wsp-packages. WSP-01.1-01, WSP-01.2-01, WSP-03.3-03, WSP-03.4.2-01
 */
tessStatus_t tessxWspRun(const char* package, const char* symbols, const char* tensors, const char* resources,
                         int64_t seed, char* out, size_t capacity, size_t* needed);

/*
 * A run that has not begun.
 *   symbols  JSON, {*: text}; NULL where left out
 *   tensors  JSON, {*: data}; NULL where left out
 *   resources  JSON, {*: int>=1}; NULL where left out
 *   seed  TESSX_ABSENT where left out
 *   run  out
 * Feature wsp-steps. WSP-03.4.2-06
 */
tessStatus_t tessxWspStart(const char* package, const char* symbols, const char* tensors, const char* resources,
                           int64_t seed, int64_t* run);

/*
 * All that happens at the next instants of time, at most so many.
 *   out  JSON, wsp_outcome
 * Feature wsp-steps. WSP-03.4.2-06
 */
tessStatus_t tessxWspStep(int64_t run, int64_t instants, char* out, size_t capacity, size_t* needed);

/*
 * The statistics of a run as they stand.
 *   out  JSON, wsp_outcome
 * Feature wsp-steps. WSP-03.4.2-01, WSP-03.4.2-06
 */
tessStatus_t tessxWspStatistics(int64_t run, char* out, size_t capacity, size_t* needed);

/*
 * The capability matrix of a target.
 *   out  JSON, {phase: int>=1, directives: wsp_states, csp: wsp_states, predicates: wsp_states}
 * Feature wsp-capabilities. WSP-01.3-01, WSP-01.3-09, WSP-05.2-01 to 03
 */
tessStatus_t tessxWspCapabilities(const char* target, char* out, size_t capacity, size_t* needed);

/*
 * The architecture model of a target.
 *   out  JSON, {memory: [object], exec_units: [object], sync: [object], dispatch: object, timing: object}
 * Feature arch-model. WSP-05.1-01 to 05
 */
tessStatus_t tessxWspArchitecture(const char* target, char* out, size_t capacity, size_t* needed);

#ifdef __cplusplus
}
#endif

#endif /* TESSERA_EXT_H */
