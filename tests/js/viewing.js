// One run on the stage of a page, with everything that a test reads of it.
import { RunView } from '../../leakage/ui/components/live/view.js';
import { brushOf, openPage } from './page.js';
import { frame, recorded, verdict } from './recorded.js';

export const META_OF_R = { ...recorded().meta, run: 'r', seq: undefined, private: '/api/runs/r/private.png', steps: 40 };
export const RUNNING = { kind: 'state', run: 'r', status: 'running' };
export const END = {
  kind: 'end',
  run: 'r',
  status: 'done',
  answer: 3,
  scores: { psnr: 33.3, psnr_each: [33.3] },
  verdict: verdict('recognizable'),
};

/** Frames 1 to 4: step, loss and PSNR are easily told apart. */
export const FRAMES = [1, 2, 3, 4].map((seq) =>
  frame(seq, {
    step: 10 * seq,
    loss: 1 / seq,
    scores: { psnr: 10 + seq, ssim: seq / 10 },
    labels: [seq % 2],
    verdict: verdict(`v${seq}`),
    note: { turn: seq },
  }),
);

/**
 * A view on the page, with everything that is read from it.
 * @param {import('node:test').TestContext} t
 * @param {{ calm?: boolean, autoplay?: boolean, base?: string, run?: object }} [options]
 */
export function show(t, { calm = false, autoplay = true, base = '/gle', run = {} } = {}) {
  const page = openPage(t, { calm });
  const host = /** @type {HTMLElement} */ (page.component('live').querySelector('.gle-stage'));
  const view = new RunView(/** @type {HTMLTemplateElement} */ (host.querySelector('template')), { base, autoplay });
  host.append(view.root);
  view.reset({ id: 'r', title: 'One', ...run });
  const one = (/** @type {string} */ name) => /** @type {HTMLElement} */ (view.root.querySelector(`.gle-${name}`));
  const text = (/** @type {string} */ name) => one(name).textContent;
  const on = (/** @type {string} */ name) => brushOf(one(name).querySelector('canvas')).drawn.map(({ source }) => source);
  const hear = (/** @type {any[]} */ ...events) => events.forEach((event) => view.receive(event));
  const seen = () => ({
    ...{
      picture: on('guess')
        .at(-1)
        ?.replace(/.*frames/, ''),
      now: text('now'),
      psnr: text('gauge-psnr .gle-value'),
    },
    ...{ loss: text('gauge-loss .gle-value'), verdict: text('word'), why: text('why'), guessed: text('guess figcaption') },
  });
  return { page, host, view, one, text, on, hear, seen };
}
