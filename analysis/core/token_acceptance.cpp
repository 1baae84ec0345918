#include "analysis/core/token_acceptance.hpp"

#include "analysis/core/checks.hpp"

// Highway compiles this file once per instruction set and picks one at run time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "analysis/core/token_acceptance.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h must be included before highway.h.
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace specdec::core::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class Tag>
HWY_INLINE void accept(Tag d, const float* target, const float* draft, double* acceptance) {
  const hn::Rebind<float, Tag> narrow;
  const auto p = hn::PromoteTo(d, hn::LoadU(narrow, target));
  const auto q = hn::PromoteTo(d, hn::LoadU(narrow, draft));
  const auto difference = hn::Sub(q, p);
  const auto ratio = hn::Exp(d, hn::Min(difference, hn::Zero(d)));
  hn::StoreU(hn::IfThenElse(hn::IsNaN(difference), difference, ratio), d, acceptance);
}

void accept_tokens(const float* target, const float* draft, double* acceptance, std::size_t n) {
  const hn::ScalableTag<double> wide;
  const std::size_t lanes = hn::Lanes(wide);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) accept(wide, target + i, draft + i, acceptance + i);
  for (; i < n; ++i) accept(hn::CappedTag<double, 1>(), target + i, draft + i, acceptance + i);
}

}  // namespace
}  // namespace specdec::core::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace specdec::core {

HWY_EXPORT(accept_tokens);

void token_acceptance(std::span<const float> target_logprob, std::span<const float> draft_logprob,
                      std::span<double> acceptance) {
  require_same_size("token_acceptance", "target_logprob", target_logprob.size(), "draft_logprob", draft_logprob.size());
  require_same_size("token_acceptance", "target_logprob", target_logprob.size(), "acceptance", acceptance.size());
  HWY_DYNAMIC_DISPATCH(accept_tokens)
  (target_logprob.data(), draft_logprob.data(), acceptance.data(), acceptance.size());
}

}  // namespace specdec::core
#endif
