"""Charts of training runs, drawn from their `Curves`."""

from racer_viewer.render.plots.chart import Chart
from racer_viewer.render.plots.curves_view import CurvesView
from racer_viewer.render.plots.figures import CHARTS, charts_of
from racer_viewer.render.plots.small_curve import SmallCurve

__all__ = ["CHARTS", "Chart", "CurvesView", "SmallCurve", "charts_of"]
