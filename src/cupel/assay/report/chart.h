// Inline SVG of the HTML report. Horizontal places are percentages of the width, so that a chart
// fills any page without scaling its text or its marks.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <pugixml.hpp>

#include "cupel/assay/interval.h"

namespace cupel {

// A linear scale with about five round ticks.
class Scale {
 public:
  // Holds low and high and some room. Any finite values; a scale of no extent is widened.
  Scale(double low, double high);
  // The same, but not beyond `bounds`.
  Scale(double low, double high, Interval bounds);

  double low() const { return low_; }
  double high() const { return high_; }
  std::span<const double> ticks() const { return ticks_; }
  std::string tick_label(double tick) const;  // with as many digits as the step needs

  // In [0, 1]; values beyond an end are put on it.
  double share(double value) const;
  // "12.34%", from 1% to 99% so that marks on an end are not cut.
  std::string at(double value) const;

 private:
  double low_;
  double high_;
  double step_ = 1;
  std::vector<double> ticks_;
};

// A value with its interval on a scale.
struct IntervalMark {
  double value = 0;
  Interval interval;                   // thick
  std::optional<Interval> wider = {};  // thin, for example 95 % around 90 %
  std::string style = {};              // class: "pass", "regression", "inconclusive" or none
};

// A vertical line that a reader compares with.
struct GuideLine {
  double value = 0;
  std::string style;  // "zero" or "margin"
};

// One row: <svg role="img"> with title and description for screen readers.
void add_interval_chart(pugi::xml_node parent, const Scale& scale, const IntervalMark& mark,
                        std::span<const GuideLine> guides, const std::string& title,
                        const std::string& description);

// The ticks and their labels, below rows on the same scale; hidden from screen readers, which get
// the numbers of each row.
void add_axis(pugi::xml_node parent, const Scale& scale, std::span<const GuideLine> guides);

// Values over time, the first at the left, one column each.
struct TimePoint {
  IntervalMark mark;
  std::string when;   // stands below the first and the last
  std::string label;  // shown when pointed at
};
// At least one point.
void add_time_chart(pugi::xml_node parent, const Scale& scale, std::span<const TimePoint> points,
                    const std::string& title, const std::string& description);

}  // namespace cupel
