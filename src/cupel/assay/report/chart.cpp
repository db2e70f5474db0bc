#include "cupel/assay/report/chart.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "cupel/assay/report/xml_text.h"

namespace cupel {
namespace {

constexpr int kRowHeight = 26;
constexpr int kTimeHeight = 132;
constexpr int kTimeTop = 8;
constexpr int kTimeBottom = 112;

std::string number(double value) {
  return fmt::format("{:.2f}", value);
}

pugi::xml_node add_svg(pugi::xml_node parent, int height, const std::string& title,
                       const std::string& description) {
  pugi::xml_node svg = add(parent, "svg",
                           {{"class", "chart"},
                            {"width", "100%"},
                            {"height", std::to_string(height)},
                            {"role", "img"},
                            {"aria-label", title + ". " + description}});
  add(svg, "title", {}, title);
  add(svg, "desc", {}, description);
  return svg;
}

void add_line(pugi::xml_node svg, const std::string& style, const std::string& x1,
              const std::string& y1, const std::string& x2, const std::string& y2) {
  add(svg, "line", {{"class", style}, {"x1", x1}, {"y1", y1}, {"x2", x2}, {"y2", y2}});
}

void add_grid(pugi::xml_node svg, const Scale& scale, std::span<const GuideLine> guides) {
  for (const double tick : scale.ticks()) {
    add_line(svg, "grid", scale.at(tick), "0", scale.at(tick), "100%");
  }
  for (const GuideLine& g : guides) {
    add_line(svg, g.style, scale.at(g.value), "0", scale.at(g.value), "100%");
  }
}

// "mark pass" and the like.
std::string marked(const char* part, const IntervalMark& mark) {
  return mark.style.empty() ? std::string(part) : fmt::format("{} {}", part, mark.style);
}

}  // namespace

Scale::Scale(double low, double high) : Scale(low, high, {-HUGE_VAL, HUGE_VAL}) {}

Scale::Scale(double low, double high, Interval bounds) {
  const double least = 1e-6 * std::max(1.0, std::abs(high));
  if (!(high - low > least)) {
    low -= least / 2;
    high = low + least;
  }
  const double extent = high - low;
  const double rough = extent * 1.1 / 5;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  const double fraction = rough / power;
  step_ = power * (fraction <= 1 ? 1 : fraction <= 2 ? 2 : fraction <= 5 ? 5 : 10);
  low_ = std::max(low - 0.05 * extent, bounds.low);
  high_ = std::min(high + 0.05 * extent, bounds.high);
  if (!(high_ > low_)) high_ = low_ + extent;
  const double first = std::ceil(low_ / step_ - 1e-9);
  for (int i = 0; (first + i) * step_ <= high_ + 1e-9 * step_; ++i) {
    const double tick = (first + i) * step_;
    ticks_.push_back(std::abs(tick) < 1e-9 * step_ ? 0 : tick);
  }
}

std::string Scale::tick_label(double tick) const {
  const int digits = std::clamp(static_cast<int>(std::ceil(-std::log10(step_) - 1e-9)), 0, 9);
  return fmt::format("{:.{}f}", tick, digits);
}

double Scale::share(double value) const {
  return std::clamp((value - low_) / (high_ - low_), 0.0, 1.0);
}

std::string Scale::at(double value) const {
  return fmt::format("{:.2f}%", 1 + 98 * share(value));
}

void add_interval_chart(pugi::xml_node parent, const Scale& scale, const IntervalMark& mark,
                        std::span<const GuideLine> guides, const std::string& title,
                        const std::string& description) {
  pugi::xml_node svg = add_svg(parent, kRowHeight, title, description);
  add_grid(svg, scale, guides);
  const std::string middle = std::to_string(kRowHeight / 2);
  if (mark.wider) {
    add_line(svg, marked("thin", mark), scale.at(mark.wider->low), middle,
             scale.at(mark.wider->high), middle);
  }
  add_line(svg, marked("bar", mark), scale.at(mark.interval.low), middle,
           scale.at(mark.interval.high), middle);
  for (const double end : {mark.interval.low, mark.interval.high}) {
    add_line(svg, marked("cap", mark), scale.at(end), std::to_string(kRowHeight / 2 - 6),
             scale.at(end), std::to_string(kRowHeight / 2 + 6));
  }
  add(svg, "circle",
      {{"class", marked("dot", mark)}, {"cx", scale.at(mark.value)}, {"cy", middle}, {"r", "4.5"}});
}

void add_axis(pugi::xml_node parent, const Scale& scale, std::span<const GuideLine> guides) {
  pugi::xml_node svg = add(parent, "svg",
                           {{"class", "chart axis"},
                            {"width", "100%"},
                            {"height", guides.empty() ? "22" : "38"},
                            {"aria-hidden", "true"}});
  for (const double tick : scale.ticks()) {
    add_line(svg, "grid", scale.at(tick), "0", scale.at(tick), "5");
    // A label at an end stays inside.
    const double share = scale.share(tick);
    const char* anchor = share < 0.04 ? "start" : share > 0.96 ? "end" : "middle";
    add(svg, "text", {{"x", scale.at(tick)}, {"y", "18"}, {"text-anchor", anchor}},
        scale.tick_label(tick));
  }
  for (const GuideLine& g : guides) {
    if (g.style != "margin") continue;
    const double share = scale.share(g.value);
    add_line(svg, g.style, scale.at(g.value), "0", scale.at(g.value), "24");
    add(svg, "text",
        {{"class", "guide"},
         {"x", scale.at(g.value)},
         {"y", "34"},
         {"text-anchor", share < 0.1   ? "start"
                         : share > 0.9 ? "end"
                                       : "middle"}},
        fmt::format("margin {:g}", g.value));
  }
}

void add_time_chart(pugi::xml_node parent, const Scale& scale, std::span<const TimePoint> points,
                    const std::string& title, const std::string& description) {
  pugi::xml_node svg = add_svg(parent, kTimeHeight, title, description);
  const auto y = [&](double value) {
    return number(kTimeBottom - (kTimeBottom - kTimeTop) * scale.share(value));
  };
  // The labels of the ticks stand at the left, and the style makes the drawing as much narrower.
  svg.attribute("class").set_value("chart time");
  pugi::xml_node plot = add(svg, "g", {{"transform", "translate(44 0)"}});
  for (const double tick : scale.ticks()) {
    add_line(plot, "grid", "0", y(tick), "100%", y(tick));
    add(plot, "text", {{"x", "-6"}, {"y", y(tick)}, {"dy", "4"}, {"text-anchor", "end"}},
        scale.tick_label(tick));
  }
  const auto n = static_cast<double>(points.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    const IntervalMark& mark = points[i].mark;
    const std::string x = fmt::format("{:.2f}%", (static_cast<double>(i) + 0.5) * 100 / n);
    pugi::xml_node group = add(plot, "g");
    add(group, "title", {}, points[i].label);
    add_line(group, marked("bar", mark), x, y(mark.interval.low), x, y(mark.interval.high));
    add(group, "circle",
        {{"class", marked("dot", mark)}, {"cx", x}, {"cy", y(mark.value)}, {"r", "4.5"}});
  }
  const std::string below = std::to_string(kTimeHeight - 4);
  add(plot, "text", {{"x", "0"}, {"y", below}}, points.front().when);
  add(plot, "text", {{"x", "100%"}, {"y", below}, {"text-anchor", "end"}}, points.back().when);
}

}  // namespace cupel
