// The gauges: every number as a visitor reads it, how full its bar is, and what pictures that know nothing score.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fillGauges, GAUGES, layGauges } from '../../leakage/ui/components/live/gauges.js';
import { openPage } from './page.js';
import { recorded } from './recorded.js';

/** @typedef {import('../../leakage/ui/components/live/gauges.js').Scores} Scores */

const { meta: META, end } = recorded();

/**
 * Empty gauges on a page; `fill` brings values, `read` tells what is seen of a gauge.
 * @param {import('node:test').TestContext} t
 */
function gauges(t) {
  const { document } = openPage(t);
  const host = document.createElement('div');
  document.body.append(host);
  layGauges(host);
  const of = (/** @type {string} */ id) => /** @type {HTMLElement} */ (host.querySelector(`.gle-gauge-${id}`));
  return {
    host,
    of,
    /** @param {Scores} scores @param {object | null} [meta] @param {unknown} [first] */
    fill: (scores, meta = META, first = null) => fillGauges(host, { scores, meta: /** @type {any} */ (meta), first }),
    /** @param {string} id */
    read(id) {
      const gauge = of(id);
      const ticks = /** @type {HTMLElement[]} */ ([...gauge.querySelectorAll('.gle-bar .gle-tick')]);
      return {
        value: gauge.querySelector('.gle-value')?.textContent,
        full: /** @type {HTMLElement} */ (gauge.querySelector('.gle-fill')).style.transform,
        marks: [...gauge.querySelectorAll('.gle-marks span')].map((mark) => mark.textContent),
        ticks: ticks.map((tick) => tick.style.left),
        ranks: ticks.map((tick) => tick.dataset.rank),
      };
    },
    value: (/** @type {string} */ id) => of(id).querySelector('.gle-value')?.textContent,
    full: (/** @type {string} */ id) => /** @type {HTMLElement} */ (of(id).querySelector('.gle-fill')).style.transform,
    term: (/** @type {string} */ id) => of(id).querySelector('.gle-gauge-name small')?.textContent,
  };
}

test('six gauges stand in order, with plain words and a dash, before anything is known', (t) => {
  const { host, fill, of } = gauges(t);
  assert.deepEqual(
    [...host.children].map((gauge) => [gauge.className, gauge.querySelector('.gle-gauge-name')?.firstChild?.textContent]),
    [
      ['gle-gauge gle-gauge-rank', 'Could it be picked out of a line-up of 100? '],
      ['gle-gauge gle-gauge-psnr', 'How close is the stolen picture '],
      ['gle-gauge gle-gauge-ssim', 'How alike are the shapes '],
      ['gle-gauge gle-gauge-lpips', 'How different it looks '],
      ['gle-gauge gle-gauge-label', 'Are the classes guessed '],
      ['gle-gauge gle-gauge-loss', 'Does its gradient match '],
    ],
  );
  assert.deepEqual([...host.children].map((gauge) => gauge.querySelector('.gle-value')?.textContent), Array(6).fill('–')); // prettier-ignore
  fill({}, null);
  for (const { id } of GAUGES) {
    assert.equal(of(id).querySelector('.gle-value')?.textContent, '–');
    assert.equal(of(id).querySelectorAll('.gle-value small').length, 0); // no unit without a number
    assert.equal(of(id).querySelectorAll('.gle-tick').length, id === 'rank' ? 1 : 0); // the random mark is known before
  }
  layGauges(host);
  assert.equal(host.children.length, 6);
});

test('the answer of the recorded run, as it is read from the page', (t) => {
  const { read, fill, term, of } = gauges(t);
  fill({ ...end.scores, loss: 4.253696204159496e-7 }, META, 232.76510620117188);
  assert.deepEqual(read('rank'), {
    ...{ value: 'rank 1 of 100', full: 'scaleX(1.0000)' },
    ...{ marks: ['random rank 50.5', 'mean colour rank 55', 'out of focus rank 4'], ticks: ['50.00%', '45.45%', '96.97%'] }, // 45, 96 of 99
    ranks: ['0', '0', '0'],
  });
  assert.deepEqual(read('psnr'), {
    ...{ value: '50.6 dB', full: 'scaleX(0.8438)' }, // 50.629 of 60
    ...{ marks: ['grey 10.9', 'mean picture 10.5'], ticks: ['18.16%', '17.46%'], ranks: ['0', '1'] },
  });
  assert.deepEqual(read('ssim'), {
    ...{ value: '1.00', full: 'scaleX(0.9998)' },
    ...{ marks: ['grey 0.06', 'mean picture 0.07'], ticks: ['6.34%', '6.70%'], ranks: ['0', '1'] },
  });
  assert.deepEqual(read('lpips'), {
    ...{ value: '0.00', full: 'scaleX(1.0000)' },
    ...{ marks: ['grey 0.74', 'mean picture 0.63'], ticks: ['26.49%', '36.80%'], ranks: ['0', '1'] },
  });
  assert.deepEqual(read('label'), {
    ...{ value: '1 of 1', full: 'scaleX(1.0000)' },
    ...{ marks: ['blind guess 10 %'], ticks: ['10.00%'], ranks: ['0'] },
  });
  assert.deepEqual(read('loss'), {
    ...{ value: '4.3·10⁻⁷', full: 'scaleX(1.0000)' }, // 8.7 decades
    ...{ marks: ['start 233', 'no gradient at all 552'], ticks: [], ranks: [] }, // 23.5 squared
  });
  assert.deepEqual(GAUGES.map(({ id }) => term(id)), ['', '(PSNR)', '(SSIM)', '(LPIPS, squeeze)', '(labels)', '(distance)']); // prettier-ignore
  assert.equal(/** @type {HTMLElement} */ (of('lpips').querySelector('.gle-gauge-head')).title, META.lpips?.words);
  assert.equal(/** @type {HTMLElement} */ (of('psnr').querySelector('.gle-gauge-head')).title, '');
});

test('a blind guess among thousands of classes is a fraction of a per cent', (t) => {
  const { fill, read } = gauges(t);
  fill({ label_accuracy: 0 }, { ...META, classes: 5749 });
  assert.deepEqual(read('label').marks, ['blind guess 0.02 %']);
});

test('the numbers follow the step that is shown, also backwards, and a dash follows a number', (t) => {
  const { fill, read, of } = gauges(t);
  const at = (/** @type {number | null} */ psnr) => {
    fill({ psnr });
    const { value, full } = read('psnr');
    return [value, full];
  };
  assert.deepEqual(at(30), ['30.0 dB', 'scaleX(0.5000)']);
  assert.deepEqual(at(15), ['15.0 dB', 'scaleX(0.2500)']);
  assert.deepEqual(at(75), ['75.0 dB', 'scaleX(1.0000)']); // more does not fit
  assert.deepEqual(at(-3), ['-3.0 dB', 'scaleX(0.0000)']);
  assert.deepEqual(at(null), ['–', 'scaleX(0.0000)']);
  assert.equal(of('psnr').querySelectorAll('.gle-tick').length, 2); // not two more with every value
});

test('the rank of a batch is a median, among as many as stand in the line-up', (t) => {
  const { fill, read } = gauges(t);
  const batch = { ...META, batch: 4, lineup: { size: 21, words: '' }, baselines: {} };
  fill({ rank: 5.5, identified: 0.5 }, batch);
  assert.deepEqual(read('rank'), {
    ...{ value: 'median rank 5.5 of 21', full: 'scaleX(0.7750)' }, // (21 - 5.5) / 20
    ...{ marks: ['random rank 11', 'picked out 2 of 4'], ticks: ['50.00%'], ranks: ['0'] },
  });
  fill({ rank: 21, identified: 0 }, batch);
  assert.deepEqual([read('rank').value, read('rank').full], ['median rank 21 of 21', 'scaleX(0.0000)']);
  assert.deepEqual(read('rank').marks, ['random rank 11', 'picked out 0 of 4']);
  fill({ rank: 81, identified: 0 }, { ...META, baselines: {} });
  assert.deepEqual([read('rank').value, read('rank').full], ['rank 81 of 100', 'scaleX(0.1919)']); // 19 / 99
  assert.deepEqual(read('rank').marks, ['random rank 50.5']); // one picture: nobody else to pick out
  fill({ rank: 1 }, { ...META, lineup: { size: 1, words: '' } });
  assert.equal(read('rank').full, 'scaleX(0.0000)');
});

test('LPIPS is better where it is smaller, and where it is off the gauge says so', (t) => {
  const { fill, read, term, of } = gauges(t);
  fill({ lpips: 0.25 });
  assert.deepEqual([read('lpips').value, read('lpips').full], ['0.25', 'scaleX(0.7500)']);
  fill({}, { ...META, lpips: { net: '', words: 'Not installed.' } });
  assert.deepEqual([read('lpips').value, read('lpips').ticks, term('lpips')], ['off', [], '(LPIPS)']);
  assert.deepEqual(read('lpips').marks, ['why, and how to get it: in the table below ']);
  assert.equal(/** @type {HTMLElement} */ (of('lpips').querySelector('.gle-gauge-head')).title, 'Not installed.');
});

test('labels are counted, or given', (t) => {
  const { fill, value, full } = gauges(t);
  fill({ label_accuracy: 0.75 }, { ...META, batch: 8 });
  assert.deepEqual([value('label'), full('label')], ['6 of 8', 'scaleX(0.7500)']);
  fill({ label_accuracy: 0 }, { ...META, batch: 8 });
  assert.deepEqual([value('label'), full('label')], ['0 of 8', 'scaleX(0.0000)']);
  fill({ label_accuracy: 1 }, { ...META, labels_granted: true });
  assert.deepEqual([value('label'), full('label')], ['given', 'scaleX(1.0000)']);
});

test('the bar follows where the text stays as it is', (t) => {
  const { fill, value, full } = gauges(t);
  fill({}, { ...META, labels_granted: true });
  assert.deepEqual([value('label'), full('label')], ['given', 'scaleX(0.0000)']);
  fill({ label_accuracy: 1 }, { ...META, labels_granted: true });
  assert.deepEqual([value('label'), full('label')], ['given', 'scaleX(1.0000)']);
  const cosine = { ...META, loss_name: 'cosine distance' };
  fill({ loss: 0.001 }, cosine, 1);
  fill({ loss: 0.001 }, cosine, 1000); // another run
  assert.deepEqual([value('loss'), full('loss')], ['0.001', 'scaleX(1.0000)']);
});

test('three baselines keep their colours, and a tick never leaves the bar', (t) => {
  const { fill, read } = gauges(t);
  fill({ psnr: 20 }, { ...META, baselines: { same_class: { psnr: 12 }, grey: { psnr: 90 }, noise: { psnr: 5 } } });
  const { marks, ticks, ranks } = read('psnr');
  assert.deepEqual(
    [marks, ticks, ranks],
    [
      ['grey 90.0', 'same class 12.0'],
      ['100.00%', '20.00%'],
      ['0', '2'],
    ],
  );
});

test('the match counts decades below the start, six are full', (t) => {
  const { fill, read } = gauges(t);
  const at = (/** @type {number | null} */ loss, /** @type {object} */ meta, /** @type {unknown} */ first) => {
    fill({ loss }, meta, first);
    const { value, full } = read('loss');
    return [value, full];
  };
  const cosine = { ...META, loss_name: 'cosine distance' };
  assert.deepEqual(at(0.001, cosine, 1), ['0.001', 'scaleX(0.5000)']);
  assert.deepEqual(read('loss').marks, ['start 1']);
  assert.deepEqual(at(1e-6, cosine, 1), ['1.0·10⁻⁶', 'scaleX(1.0000)']);
  assert.deepEqual(at(2, cosine, 1), ['2', 'scaleX(0.0000)']);
  assert.deepEqual(at(0, cosine, 1), ['0', 'scaleX(1.0000)']);
  assert.deepEqual(at(0.01, cosine, null), ['0.01', 'scaleX(0.0000)']); // the start is not known
  assert.deepEqual(read('loss').marks, []);
  // Squared: a gradient of zeros is at 10 squared, nearer than the start.
  const squared = { ...META, received: { ...META.received, norm: 10 } };
  assert.deepEqual(at(0.1, squared, 1e6), ['0.1', 'scaleX(0.5000)']);
  assert.deepEqual(read('loss').marks, ['start 1,000,000', 'no gradient at all 100']);
  // Relative, squared or not: a gradient of zeros is at 1.
  for (const loss_name of ['squared relative gradient distance', 'relative gradient distance']) {
    assert.deepEqual(at(0.001, { ...squared, loss_name }, 1e6), ['0.001', 'scaleX(0.5000)']);
    assert.deepEqual(read('loss').marks, ['start 1,000,000', 'no gradient at all 1']);
  }
});

test('in a comparison terms stand without parentheses', (t) => {
  const { fill, term, host } = gauges(t);
  host.parentElement?.classList.add('gle-compare');
  fill({ psnr: 1 });
  assert.deepEqual(GAUGES.map(({ id }) => term(id)), ['', 'PSNR', 'SSIM', 'LPIPS, squeeze', 'labels', 'distance']); // prettier-ignore
});
