"""New verdicts for recordings after a change of the rule, without computing an attack again: `python -m leakage record --verdicts`."""

import logging
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any

import torch
from pydantic import JsonValue
from torch import Tensor

from leakage.data.images import Pixels
from leakage.evaluation import metrics
from leakage.evaluation.baselines import Baselines, make_baselines, measure
from leakage.evaluation.lineup import pixel_ranks
from leakage.evaluation.perceptual import Perceptual
from leakage.evaluation.verdict import DISTANCES, RULE, unknown, verdict
from leakage.learn import grids, recordings
from leakage.learn.grids import GridRecording
from leakage.learn.planned import plan, planned_grid
from leakage.learn.recordings import RunRecording
from leakage.spec.experiment import Experiment, SpecError
from leakage.spec.words import CUT_SHORT
from leakage.workers.adapter import origins
from leakage.workers.private_pictures import load

EACH = {"psnr_each": "psnr", "ssim_each": "ssim", "lpips_each": "lpips"}
VerdictOfFrame = dict[str, JsonValue]
log = logging.getLogger(__name__)


def rejudge(only: Sequence[str]) -> None:
    """Give recordings the verdicts of today's rule, write them, and log each final word that changes. Raises SpecError for an unknown name.

    Args:
        only: the names of the recordings; empty: all.
    """
    everything = [*plan().runs, *plan().grids]
    if unknown_names := [name for name in only if name not in everything]:
        raise SpecError(f"There is no recording by the name of {unknown_names[0]!r}; expected are {', '.join(everything)}.")
    for name in only or everything:
        if name in plan().runs:
            run = recordings.load(name)
            fresh = _run(name, run)
            _log(f"{name}, {run.title}", run.word, fresh.word)
            recordings.write(recordings.FOLDER, name, fresh, (recordings.FOLDER / f"{name}.webp").read_bytes())
            recordings.load.cache_clear()
        else:
            grid, film = grids.load_grid(name), (grids.FOLDER / f"{name}.webp").read_bytes()
            recordings.write(grids.FOLDER, name, _grid(name, grid, film), film)
            grids.load_grid.cache_clear()


def _log(name: str, before: str, after: str) -> None:
    if before != after:
        log.info("%s: was %s, is %s.", name, before, after)


def _run(name: str, run: RunRecording) -> RunRecording:
    x, baselines = _private_and_baselines(run.experiment)
    end = run.end
    assert end.answer is not None  # what is recorded came to a picture
    scores = end.scores.model_dump()
    measured = {metric: _column(scores[key], x) for key, metric in EACH.items()} | {
        distance: _column(scores[distance], x) for distance in DISTANCES if scores[distance] is not None
    }
    cut_short = end.ending is not None and end.ending.how != "answer"
    final = verdict(measured, baselines.reference, cut_short=cut_short)
    picked = {end.answer: float(baselines.reference.identified(measured).double().mean())}
    verdicts: dict[int, VerdictOfFrame] = {end.answer: {"word": final["word"], "why": final["why"]}}
    pictures = recordings.pictures_of(name)[1:] if len(x) > 1 else []
    pictures_by_index = dict(zip(run.film.places, pictures, strict=True)) if pictures else {}
    for index, ssim in enumerate(run.columns["ssim"]):
        if index == end.answer or ssim is None:
            continue
        quick = _recorded_scores(run, index, x) if len(x) == 1 else _measured_scores(pictures_by_index.get(index), x, baselines)
        if quick:
            word = verdict(quick, baselines.reference)
            verdicts[index] = {"word": word["word"], "why": word["why"]}
            picked[index] = float(baselines.reference.identified(quick).double().mean())
    before = run.columns.get("identified")
    columns = dict(run.columns)
    if before:
        columns["identified"] = tuple(picked.get(index, value) for index, value in enumerate(before))
    kept_scores = {**_dict(run.result["scores"]), "identified": picked[end.answer]}
    result = {**run.result, "scores": kept_scores, "verdict": {key: _plain(value) for key, value in final.items() if key != "rule"}}
    return run.model_copy(update={"columns": columns, "verdicts": tuple(_where_it_changes(verdicts)), "rule": RULE, "result": result})


def _recorded_scores(run: RunRecording, index: int, x: Tensor) -> dict[str, Tensor]:
    """Return the recorded scores of one frame of a run with a single picture.

    Args:
        run: the recording.
        index: the number of the frame.
        x: the private picture (1, C, H, W).

    Returns:
        "psnr" (dB), "ssim", "lpips" (unknown) and "rank_pixel" of the picture, (1,) each.
    """
    psnr, ssim, rank = (_column([run.columns[name][index]], x) for name in ("psnr", "ssim", "rank"))
    return {"psnr": psnr, "ssim": ssim, "lpips": unknown(psnr), "rank_pixel": rank}


def _measured_scores(pictures: Pixels | None, x: Tensor, baselines: Baselines) -> dict[str, Tensor] | None:
    """Return the scores of a guess by its recorded pictures; None if the recording does not have them.

    Args:
        pictures: the guess, uint8 (B, H, W, 3).
        x: the private pictures (B, C, H, W).
        baselines: their `lineup` is used.

    Returns:
        "psnr" (dB), "ssim", "lpips" (unknown) and "rank_pixel" of each picture, (B,).
    """
    if pictures is None:
        return None
    guess = _tensor(pictures, x)
    psnr = metrics.psnr(guess, x)
    return {"psnr": psnr, "ssim": metrics.ssim(guess, x), "lpips": unknown(psnr), "rank_pixel": pixel_ranks(guess, x, baselines.lineup)}


def _grid(name: str, grid: GridRecording, film: bytes) -> GridRecording:
    planned, rows = planned_grid(name), recordings.rows_of(film, grid.film.side, grid.film.batch)
    cells = []
    for cell in grid.cells:
        x, baselines = _private_and_baselines(planned.experiment(cell.choice))
        lpips = baselines.perceptual if "LPIPS" in cell.why else Perceptual("", "It was recorded without LPIPS.")
        measured = measure(_tensor(rows[cell.answer][: cell.batch], x), x, baselines.lineup, lpips)
        for score in ("psnr", "ssim"):
            exact = cell.scores[score]
            if cell.batch == 1 and exact is not None:
                measured[score] = torch.tensor([exact]).double()  # as measured before the film rounded the picture
        word = verdict(measured, baselines.reference, cut_short=cell.word == CUT_SHORT)
        _log(f"{name}, {planned.title}, {cell.choice}", cell.word, word["word"])
        scores = {**cell.scores, "identified": float(baselines.reference.identified(measured).double().mean())}
        cells.append(cell.model_copy(update={"word": word["word"], "why": word["why"], "scores": scores}))
    return grid.model_copy(update={"cells": tuple(cells)})


def _private_and_baselines(experiment: Experiment) -> tuple[Tensor, Baselines]:
    pictures, size, channels = experiment.pictures, experiment.size, experiment.channels
    return _load_private(Experiment(pictures=pictures, size=size, channels=channels, seed=experiment.seed).model_dump_json())


@lru_cache(maxsize=64)
def _load_private(pictures: str) -> tuple[Tensor, Baselines]:
    """Return the private pictures (B, C, H, W) of an experiment, which is given as JSON, and the baselines for guesses of them."""
    experiment = Experiment.model_validate_json(pictures)
    x, y = load(experiment, {})
    return x, make_baselines(origins(experiment), x, y, seed=experiment.seed)


def _tensor(pictures: Pixels, x: Tensor) -> Tensor:
    """Return pictures uint8 (B, H, W, 3) as float32 (B, C, H, W) in [0, 1], with as many channels as x; 1 channel is the first of the 3."""
    return torch.from_numpy(pictures[..., : x.shape[1]].copy()).permute(0, 3, 1, 2).float() / 255


def _column(values: Sequence[float | None] | None, x: Tensor) -> Tensor:
    return torch.tensor([torch.nan if value is None else value for value in values or [None] * len(x)]).double()


def _where_it_changes(verdicts: Mapping[int, VerdictOfFrame]) -> list[tuple[int, VerdictOfFrame]]:
    return [next(group) for _, group in groupby(sorted(verdicts.items()), key=lambda item: item[1]["word"])]


def _dict(value: JsonValue) -> dict[str, JsonValue]:
    assert isinstance(value, dict)
    return value


def _plain(value: Any) -> JsonValue:
    return list(value) if isinstance(value, tuple) else value
