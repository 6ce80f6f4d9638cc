"""Charts of training runs."""

from racer_viewer.render.plots.chart import Chart
from racer_viewer.render.plots.curves_view import CurvesView
from racer_viewer.render.plots.figures import CHARTS, charts_of
from racer_viewer.render.plots.sparkline import Sparkline

__all__ = ["CHARTS", "Chart", "CurvesView", "Sparkline", "charts_of"]
