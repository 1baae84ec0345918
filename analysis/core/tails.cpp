#include "analysis/core/tails.hpp"

#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>

namespace specdec::core {

double normal_tail(double z) { return boost::math::cdf(boost::math::complement(boost::math::normal(), z)); }

double t_tail(double t, double degrees_of_freedom) {
  return boost::math::cdf(boost::math::complement(boost::math::students_t(degrees_of_freedom), t));
}

double t_half_width_95(double degrees_of_freedom) {
  return boost::math::quantile(boost::math::students_t(degrees_of_freedom), 0.975);
}

}  // namespace specdec::core
