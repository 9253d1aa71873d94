// Below the last beat: what the lesson does not show, its sources, and, with notes, what teachers need: the notes, worksheets and slides.
import { element } from '../dom.js';
import { say } from './phrases.js';
import { link } from './source.js';

/**
 * @param {import('./lesson.js').LessonData} lesson
 * @param {import('./source.js').Source} source
 */
export function afterwards(lesson, source) {
  const box = element('section', 'gle-after');
  const sources = element('ul', '');
  sources.append(...lesson.source.map((words) => element('li', '', words)));
  box.append(element('h2', '', say('caveat')), element('p', '', lesson.caveat), element('h2', '', say('source')), sources);
  if (!lesson.notes) return box;
  const notes = element('details', 'gle-notes');
  const print = [
    link(source.handout(lesson.id), say('worksheet')),
    link(source.handout(`${lesson.id}-solution`), say('solution')),
    link(source.handout(`${lesson.id}-plan`), say('hallPlan')),
  ];
  notes.append(element('summary', '', say('notes')), element('p', '', lesson.notes), line(say('toPrint'), print));
  for (const [id, run] of Object.entries(lesson.runs)) if (run.film) notes.append(line(`${run.title}:`, source.slides(id)));
  box.append(notes);
  return box;
}

/**
 * @param {string} words
 * @param {HTMLElement[]} links
 */
function line(words, links) {
  const made = element('p', 'gle-foot', words);
  for (const one of links) made.append(' ', one);
  return made;
}
