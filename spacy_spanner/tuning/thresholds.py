"""The best thresholds of a component on development data, from one pass of scoring.

A head reports the spans over the threshold of their label, with scores that do not depend on it. So
the spans under any threshold are among those under a very low one, and are scored without the model.
Legend: N candidates, C labels, K cuts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Dict, List, NamedTuple, Optional

import numpy

from ..analysis.scores import Calibration, Counts, calibration
from ..batch import SpanPrediction
from ..pipeline.outputs import flat_choice
from ..pipeline.scaling import Scaling
from .scaling import RAW, fit_scaling

GAP = 1e-6  # no threshold is put between scores that are closer
# Where flat entities have to be chosen again for each threshold:
N_CUTS = 48  # thresholds of all labels together
N_LABEL_CUTS = 16  # thresholds of one label, in each round over the labels
ROUNDS = 2
DIGITS = 9  # of thresholds and scalings in files


@dataclass(frozen=True)
class Candidates:
    """Every span that a component scores over the floor of its label, with the scores of its head."""

    prediction: SpanPrediction
    correct: numpy.ndarray  # (N,) bool
    gold_counts: numpy.ndarray  # (C,) gold spans of each label
    n_gold: int  # also those with labels that the component does not know
    floors: numpy.ndarray  # (C,) the lowest threshold of each label that can be tried
    rule: Optional[str] = None  # how flat entities are chosen; None where spans may overlap

    @property
    def labels(self) -> numpy.ndarray:
        """(N,)"""
        return self.prediction.spans[:, 3]

    def keep(self, thresholds: numpy.ndarray, scaling: Scaling = RAW) -> numpy.ndarray:
        """Which candidates the component would write under thresholds (C,).  (N,) bool"""
        keep = self.prediction.scores > scaling.raw_thresholds(thresholds)[self.labels]
        if self.rule is not None:
            over = self.prediction.take(keep)
            over.scores = scaling.calibrate(over.scores, over.spans[:, 3])
            keep[keep] = flat_choice(over, thresholds, self.rule)
        return keep

    def counts(self, thresholds: numpy.ndarray, scaling: Scaling = RAW) -> Counts:
        """The counts of what `keep` keeps."""
        return self.counts_of(self.keep(thresholds, scaling))

    def counts_of(self, kept: numpy.ndarray) -> Counts:
        """The counts of some of the candidates; kept: (N,) bool"""
        tp = int(self.correct[kept].sum())
        return Counts(tp, self.n_gold - tp, int(kept.sum()) - tp)

    def scaled(self, scaling: Scaling) -> Candidates:
        """The same with these confidences as their scores."""
        scores = scaling.calibrate(self.prediction.scores, self.labels)
        floors = scaling.calibrate(self.floors, numpy.arange(len(self.floors)))
        return replace(self, prediction=replace(self.prediction, scores=scores), floors=floors)


class ThresholdSetting(NamedTuple):
    """Thresholds for calibrated scores, and the scores they give."""

    threshold: float
    thresholds: numpy.ndarray  # (C,) float32
    scaling: Scaling
    counts: Counts
    calibration: Calibration  # of the spans that are kept


class Cuts(NamedTuple):
    """Thresholds to try on a list of scores."""

    thresholds: numpy.ndarray  # (K,) float32
    above: numpy.ndarray  # (K,) how many scores are over each
    correct: numpy.ndarray  # (K,) how many of them are correct


def tune(
    candidates: Candidates,
    current: numpy.ndarray,
    *,
    threshold: float = 0.5,
    scaling: Scaling = RAW,
    per_label: bool = False,
    fit: bool = False,
    min_gold: int = 10,
) -> List[ThresholdSetting]:
    """The current setting and the best one. The F of the best is never lower.

    current: (C,) thresholds of the labels, for scores calibrated by `scaling`.
    threshold: The current threshold of labels without their own.
    per_label: Also search a threshold for each label that has at least `min_gold` gold spans.
    fit: Also fit temperature and biases to the spans that are kept.
    """
    now = make_setting(candidates, threshold, current, scaling)
    search = partial(searched, candidates, per_label=per_label, min_gold=min_gold)
    # The first of equals is taken, so that nothing changes without a gain.
    best = highest([now, *search(scaling)])
    if not fit or not best.counts.tp:  # nothing that is found is right: there is nothing to fit to
        return [now, best]
    # Not from the current scaling, which may have been fitted to other weights.
    plain = highest(search(RAW))
    kept = candidates.keep(plain.thresholds)
    part = candidates.prediction.scores[kept], candidates.correct[kept], candidates.labels[kept]
    # Biases of labels order spans anew, which another F follows from.
    ranked = highest(search(fit_scaling(*part, len(candidates.gold_counts))))
    found = highest([rescaled(candidates, setting) for setting in (ranked, plain, best)])
    return [now, found if found.counts.f_score >= best.counts.f_score else best]


def highest(settings: List[ThresholdSetting]) -> ThresholdSetting:
    """The first one of the highest F."""
    return max(settings, key=lambda setting: setting.counts.f_score)


def searched(
    candidates: Candidates, scaling: Scaling, *, per_label: bool, min_gold: int
) -> List[ThresholdSetting]:
    """The best common threshold of confidences by this scaling, and the best ones of labels."""
    scaled = candidates.scaled(scaling)
    common = numpy.full(len(candidates.gold_counts) + 1, best_threshold(scaled), dtype="float32")
    found = [common]
    if per_label:
        found.append(label_thresholds(scaled, common, min_gold=min_gold))
    return [make_setting(candidates, float(own[-1]), own[:-1], scaling) for own in found]


def rescaled(candidates: Candidates, setting: ThresholdSetting) -> ThresholdSetting:
    """The same choice of spans, with a temperature and a bias fitted to just these."""
    kept = candidates.keep(setting.thresholds, setting.scaling)
    scores = candidates.scaled(setting.scaling).prediction.scores[kept]
    part = scores, candidates.correct[kept], candidates.labels[kept]
    again = fit_scaling(*part, before=setting.scaling.temperature)
    stored = numpy.append(setting.thresholds, numpy.float32(setting.threshold))
    # 1, which lets nothing through, stays 1.
    calibrated = again.calibrate(stored, numpy.zeros(len(stored), dtype="int64"))
    stored = numpy.where(stored < 1, calibrated, stored)
    scaling = setting.scaling.then(again.temperature, again.bias).rounded(DIGITS)
    return make_setting(candidates, float(stored[-1]), stored[:-1], scaling)


def make_setting(
    candidates: Candidates, threshold: float, thresholds: numpy.ndarray, scaling: Scaling
) -> ThresholdSetting:
    """thresholds: (C,) for calibrated scores."""
    kept = candidates.keep(thresholds, scaling)
    scores = scaling.calibrate(candidates.prediction.scores, candidates.labels)[kept]
    curve = calibration(scores.astype("float64"), candidates.correct[kept])
    counts = candidates.counts_of(kept)
    return ThresholdSetting(round(threshold, DIGITS), thresholds, scaling, counts, curve)


def best_threshold(candidates: Candidates) -> float:
    """The one threshold of the highest F: exactly, or of `N_CUTS` where entities are flat."""
    floor = candidates.floors.max(initial=0)
    cuts = make_cuts(candidates.prediction.scores, candidates.correct, floor)
    if candidates.rule is None:
        f_scores = 2 * cuts.correct / numpy.maximum(cuts.above + candidates.n_gold, 1)
        return float(cuts.thresholds[f_scores.argmax()])
    n_labels = len(candidates.gold_counts)
    tried = thin(cuts, N_CUTS)
    f_scores = [candidates.counts(numpy.full(n_labels, t)).f_score for t in tried]
    return float(tried[int(numpy.argmax(f_scores))])


def label_thresholds(
    candidates: Candidates, start: numpy.ndarray, *, min_gold: int
) -> numpy.ndarray:
    """Thresholds of the labels, no worse than `start`, which is (C + 1,) as the result is: the last
    is the common one, which labels with little gold keep.  float32"""
    numbers = [i for i, count in enumerate(candidates.gold_counts) if count >= min_gold]
    cuts = {}
    for i in numbers:
        is_label = candidates.labels == i
        scores = candidates.prediction.scores[is_label]
        cuts[i] = make_cuts(
            scores, candidates.correct[is_label], candidates.floors[i], extra=start[i]
        )
    if candidates.rule is None:
        return exact_labels(candidates, start, cuts)
    return climb_labels(candidates, start, cuts)


def exact_labels(
    candidates: Candidates, start: numpy.ndarray, cuts: Dict[int, Cuts]
) -> numpy.ndarray:
    """The best micro F over all combinations of cuts, by Dinkelbach's method: F is a ratio of sums
    over labels, so for a guess of F each label on its own takes the cut that most exceeds it; the F
    of these cuts is the next guess, until it no longer rises."""
    result = start.copy()
    best = candidates.counts(result[:-1]).f_score
    while True:
        tried = result.copy()
        for i, cut in cuts.items():
            tried[i] = cut.thresholds[(2 * cut.correct - best * cut.above).argmax()]
        f_score = candidates.counts(tried[:-1]).f_score
        if f_score <= best:
            return result
        result, best = tried, f_score


def climb_labels(
    candidates: Candidates, start: numpy.ndarray, cuts: Dict[int, Cuts]
) -> numpy.ndarray:
    """Coordinate ascent: one label after the other takes the threshold of the best F."""
    result = start.copy()
    best = candidates.counts(result[:-1]).f_score
    for _ in range(ROUNDS):
        before = best
        for i, cut in cuts.items():
            for threshold in thin(cut, N_LABEL_CUTS):
                tried = result.copy()
                tried[i] = threshold
                f_score = candidates.counts(tried[:-1]).f_score
                if f_score > best:
                    result, best = tried, f_score
        if best == before:
            break
    return result


def make_cuts(
    scores: numpy.ndarray, correct: numpy.ndarray, floor: float, *, extra: Optional[float] = None
) -> Cuts:
    """Thresholds halfway between neighbouring scores over the floor, from the highest down. `extra` is
    one more, put first. At least one score is over each of the others."""
    is_over = scores > floor
    scores, correct = scores[is_over], correct[is_over]
    order = numpy.argsort(-scores, kind="stable")
    ranked = numpy.append(scores[order].astype("float64"), -1.0)
    n_correct = numpy.cumsum(numpy.append(0, correct[order]))
    above = numpy.flatnonzero(ranked[:-1] - ranked[1:] > GAP) + 1  # (K,)
    halves = numpy.maximum((ranked[above - 1] + ranked[above]) / 2, floor)
    thresholds = halves.astype("float32")
    if extra is not None or not len(above):
        value = numpy.float32(floor if extra is None else extra)
        thresholds = numpy.append(value, thresholds)
        above = numpy.append((scores > value).sum(), above)
    return Cuts(thresholds, above, n_correct[above])


def thin(cuts: Cuts, size: int) -> numpy.ndarray:
    """At most `size` of the thresholds, with about equally many correct spans between them, high to low."""
    wanted = numpy.linspace(0, cuts.correct.max(initial=0), size)
    order = numpy.argsort(cuts.correct, kind="stable")
    places = numpy.searchsorted(cuts.correct[order], wanted).clip(max=len(order) - 1)
    return numpy.unique(cuts.thresholds[order[places]])[::-1]
