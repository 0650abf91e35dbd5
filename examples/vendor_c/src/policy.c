/* The numerics policy of a context (section 4.7).
 *
 * In force is the policy that was set on the context, else the one that the module brings, else the runtime's own
 * (AMB-RT-46). Results are always deterministic here; `stableReductions` chooses the pairwise order of sums.
 */
#include "acme.h"

static const tessNumericsPolicy own = {.stableReductions = 0, .deterministic = 1, .rngStateless = 1, .allowFastMath = 0};

tessNumericsPolicy policy_in_force(const Context* context, const tessNumericsPolicy* of_module) {
  return context->has_policy ? context->policy : of_module ? *of_module : own;
}

static bool is_switch(int value) { return value == 0 || value == 1; }

tessStatus_t tessSetNumericsPolicy(tessContext_t ctx, const tessNumericsPolicy* policy) {
  Context* context;
  runtime_lock();
  tessStatus_t status = context_of(ctx, "tessSetNumericsPolicy", &context);
  if (!status && !policy) status = invalid("tessSetNumericsPolicy: policy is NULL");
  if (!status && !(is_switch(policy->stableReductions) && is_switch(policy->deterministic) &&
                   is_switch(policy->rngStateless) && is_switch(policy->allowFastMath)))
    status = defect("policy_takes_any_number")
                 ? TESS_OK
                 : invalid("tessSetNumericsPolicy: policy has a field that is neither 0 nor 1");
  if (!status) {
    context->policy = *policy;
    context->has_policy = true;
    if (defect("policy_fields_exchanged")) context->policy.rngStateless = policy->allowFastMath;
    if (defect("policy_never_loosened")) context->policy.deterministic = 1;
  }
  runtime_unlock();
  return status;
}

tessStatus_t tessGetNumericsPolicy(tessContext_t ctx, tessNumericsPolicy* policy) {
  Context* context;
  runtime_lock();
  tessStatus_t status = context_of(ctx, "tessGetNumericsPolicy", &context);
  if (!status && !policy) status = invalid("tessGetNumericsPolicy: policy is NULL; it is where the policy goes");
  if (!status) *policy = policy_in_force(context, NULL);
  runtime_unlock();
  return status;
}
